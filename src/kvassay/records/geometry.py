"""geometry.json: exactly what the cache of this model holds."""

from __future__ import annotations

from typing import ClassVar, Literal

from kvassay.records.base import Frozen, NonNegativeInt, Record

LayerKind = Literal["full", "sliding", "chunked", "mla", "cross", "recurrent", "none"]

# Bytes of one element of a fixed state.
STATE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class State(Frozen):
    """A tensor of fixed size that a layer keeps per request, whatever its length: `parts` × `elements_per_part` of `dtype`.

    Tensor parallelism splits it over `parts`: heads, groups or channels.
    """

    name: str
    parts: NonNegativeInt
    elements_per_part: NonNegativeInt
    dtype: str

    @property
    def bytes(self) -> int:
        return self.parts * self.elements_per_part * STATE_BYTES[self.dtype]


class Layer(Frozen):
    """One cache of one decoder layer; a layer that keeps two (self and cross, attention and state) has two entries of one `index`.

    `kv_heads`, and `k_dim` and `v_dim` in elements per head. `window` in tokens, None when it keeps all. `owner` says whether it
    stores K and V; a sharer has `reads_from` = the owner's index. `module` is the attention module's name in transformers.
    tokens_per_entry: tokens that one stored row stands for (1, or more where the model compresses its own cache).
    encoder_tokens: rows of a cross cache, None for every other kind.
    indexer_dim: elements of the key that a sparse-attention indexer stores beside each row, 0 without one.
    """

    index: NonNegativeInt
    kind: LayerKind
    owner: bool
    reads_from: int | None
    kv_heads: NonNegativeInt
    k_dim: NonNegativeInt
    v_dim: NonNegativeInt
    window: int | None
    module: str
    tokens_per_entry: int = 1
    encoder_tokens: int | None = None
    indexer_dim: NonNegativeInt = 0
    states: tuple[State, ...] = ()


class CacheBytes(Frozen):
    """Bytes of one request's cache: per further token, per token if nothing were dropped, of full windows, fixed.

    `indexer_per_token` comes on top of `growth_per_token`: keys of a sparse-attention indexer, never in the chosen formats.
    """

    growth_per_token: NonNegativeInt
    all_tokens_per_token: NonNegativeInt
    window_bytes: NonNegativeInt
    fixed_per_request: NonNegativeInt
    indexer_per_token: NonNegativeInt = 0


class ByteParts(Frozen):
    """`total_bytes` split by what the bytes are."""

    payload: NonNegativeInt
    scales: NonNegativeInt
    padding: NonNegativeInt


class Draft(Frozen):
    """Layers that only speculation uses, priced apart: nothing of them is in the model's own bytes."""

    source: str
    layers: tuple[Layer, ...]
    bytes: CacheBytes
    total_bytes: NonNegativeInt


class Geometry(Record):
    """Cache layout of one model and its native price at `context_tokens`."""

    artifact: ClassVar[str] = "geometry.json"
    schema_id: ClassVar[str] = "kvassay.geometry/1"

    model_type: str
    native_dtype: str
    assumptions: tuple[str, ...]
    max_position_embeddings: NonNegativeInt | None
    layers: tuple[Layer, ...]
    bytes: CacheBytes
    context_tokens: NonNegativeInt
    total_bytes: NonNegativeInt
    parts: ByteParts
    draft: Draft | None = None

    @property
    def owners(self) -> tuple[Layer, ...]:
        """Caches of K and V, in order: what a map gives formats to."""
        return tuple(layer for layer in self.layers if layer.owner)
