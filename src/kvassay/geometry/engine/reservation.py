"""What a paged engine sets aside for one request, which is more than the request holds: whole blocks, and a step's worth of tokens.

Source of the rules: the cache specifications of vLLM (full, sliding-window and chunked-local attention), where start-up sizing and
run-time admission share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvassay.errors import BadInput
from kvassay.geometry.engine.alike import alike_owners, row_bytes, state_bytes
from kvassay.geometry.engine.grouping import Grouping
from kvassay.geometry.price import layer_bytes_per_token, zip_owners
from kvassay.geometry.storage import PLAIN_STORAGE, Storage, rounded_up
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry, Layer, LayerKind


@dataclass(frozen=True)
class ReservedKind:
    """Layers of one kind that take as many blocks each. bytes: of all of them."""

    kind: LayerKind
    layers: int
    blocks_per_layer: int
    bytes: int


@dataclass(frozen=True)
class Reservation:
    """One request of `context_tokens` tokens, in an engine of `block_tokens` rows per block and at most `chunk_tokens` tokens per step."""

    context_tokens: int
    block_tokens: int
    chunk_tokens: int
    kinds: tuple[ReservedKind, ...]
    state_bytes: int

    @property
    def bytes_per_request(self) -> int:
        """Blocks of every layer, and fixed states."""
        return self.state_bytes + sum(kind.bytes for kind in self.kinds)

    @property
    def bytes_per_token_at_this_context(self) -> float:
        """No rate of the model: at another context it is another figure."""
        return self.bytes_per_request / self.context_tokens

    @property
    def blocks(self) -> dict[str, int]:
        """Blocks of one layer by kind, the most where layers of a kind differ."""
        most: dict[str, int] = {}
        for kind in self.kinds:
            most[kind.kind] = max(most.get(kind.kind, 0), kind.blocks_per_layer)
        return most


@dataclass(frozen=True)
class HybridFloor:
    """What a request of a hybrid takes however short it is: a block in every group, each as large as a recurrent state.

    block_tokens: tokens of one attention block. groups: of `group_size` layers each. page_bytes: one block of one layer.
    """

    block_tokens: int
    groups: int
    group_size: int
    page_bytes: int

    @property
    def tokens_per_request(self) -> int:
        """The floor in the tokens that the engine counts its pool in."""
        return self.groups * self.block_tokens

    @property
    def bytes_per_request(self) -> int:
        """The floor in bytes."""
        return self.groups * self.group_size * self.page_bytes

    def requests(self, pool_tokens: int) -> int:
        """The most requests that a pool of `pool_tokens` tokens serves at once: set by the floor, not by what they hold."""
        return pool_tokens // self.tokens_per_request


def window_blocks(tokens: int, window: int, block_tokens: int, chunk_tokens: int, *, straddling: bool = True) -> int:
    """Blocks of one windowed layer for a request of `tokens` tokens: what is still read, and one step of new tokens.

    straddling: a window that slides begins inside a block, so its ends share one block more than its length fills.
    """
    held = _blocks(window - 1 + chunk_tokens, block_tokens) + 1 if straddling else _blocks(window + chunk_tokens, block_tokens)
    return min(_blocks(tokens, block_tokens), held)


def reserve(
    geometry: Geometry, pairs: Sequence[Pair], context_tokens: int, chunk_tokens: int, storage: Storage = PLAIN_STORAGE
) -> Reservation:
    """The reservation for one request in blocks of `storage`; `pairs` in the order of the owners.

    Raises BadInput when a count is not positive.
    """
    for name, count in (("context", context_tokens), ("block", storage.block_tokens), ("chunk", chunk_tokens)):
        if count < 1:
            raise BadInput(f"{name} of {count} tokens: must be at least 1")
    kinds: dict[tuple[LayerKind, int], list[int]] = {}
    for (layer, pair), many in alike_owners(geometry, pairs).items():
        row = row_bytes(layer, pair, geometry.native_dtype, storage)
        blocks = _layer_blocks(layer, context_tokens, chunk_tokens, storage)
        kinds.setdefault((layer.kind, blocks), []).extend([blocks * storage.block_tokens * row] * many)
    return Reservation(
        context_tokens=context_tokens,
        block_tokens=storage.block_tokens,
        chunk_tokens=chunk_tokens,
        kinds=tuple(ReservedKind(kind, len(sizes), blocks, sum(sizes)) for (kind, blocks), sizes in kinds.items()),
        state_bytes=state_bytes(geometry),
    )


def floor_block_tokens(attention_row_bytes: int, state_bytes: int, multiple: int) -> int:
    """Tokens of the smallest block, a multiple of `multiple`, that takes at least the bytes of one layer's state.

    attention_row_bytes: K and V of one token in one layer; K alone gives a block twice too large.
    """
    if attention_row_bytes < 1 or multiple < 1:
        raise BadInput(f"block of a hybrid: {attention_row_bytes} bytes per token and a multiple of {multiple} must be at least 1")
    return max(rounded_up(-(-state_bytes // attention_row_bytes), multiple), multiple)


def hybrid_floor(geometry: Geometry, pairs: Sequence[Pair], multiple: int, groups: Grouping) -> HybridFloor | None:
    """The floor per request when the layers stand in `groups`; None for a model without both attention and recurrent layers."""
    rows = [
        layer_bytes_per_token(layer, pair, geometry.native_dtype) for layer, pair in zip_owners(geometry, pairs) if layer.kind != "cross"
    ]
    states = [sum(state.bytes for state in layer.states) for layer in geometry.layers if layer.kind == "recurrent"]
    if not rows or not states:
        return None
    # Every attention layer must reach the largest state, so the one of fewest bytes per token decides.
    block_tokens = floor_block_tokens(min(rows), max(states), multiple)
    return HybridFloor(block_tokens, groups.groups, groups.size, page_bytes=block_tokens * max(rows))


def _layer_blocks(layer: Layer, tokens: int, chunk_tokens: int, storage: Storage) -> int:
    block_tokens = storage.block_tokens
    if layer.window is None or layer.encoder_tokens is not None or storage.windows == "full":
        return _blocks(storage.rows(layer, tokens), block_tokens)
    # A chunk begins where a block does, unless blocks do not fill it.
    straddling = layer.kind != "chunked" or layer.window % block_tokens != 0
    return window_blocks(tokens, layer.window, block_tokens, chunk_tokens, straddling=straddling)


def _blocks(tokens: int, block_tokens: int) -> int:
    return -(-tokens // block_tokens)
