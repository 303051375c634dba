"""Tensor parallelism: what one rank holds. Heads are divided, repeated where ranks outnumber them; a latent has none to divide."""

from __future__ import annotations

from collections.abc import Sequence

from kvassay.errors import BadInput
from kvassay.geometry.price import with_price
from kvassay.geometry.storage import PLAIN_STORAGE, Storage
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry, Layer, State


def per_rank(geometry: Geometry, pairs: Sequence[Pair], ranks: int, storage: Storage = PLAIN_STORAGE) -> Geometry:
    """The geometry that each of `ranks` ranks holds, priced with the same formats at the same context.

    Raises BadInput, naming the layer, where heads neither divide by the ranks nor the ranks by them.
    """
    layers = tuple(_on_rank(layer, ranks) for layer in geometry.layers)
    return with_price(geometry.model_copy(update={"layers": layers}), pairs, geometry.context_tokens, storage)


def _on_rank(layer: Layer, ranks: int) -> Layer:
    states = tuple(_state_on_rank(layer, state, ranks) for state in layer.states)
    heads = layer.kv_heads
    # One KV head that is a latent, or K serving as V, is held whole by every rank.
    if layer.owner and layer.v_dim:
        heads = _share(heads, ranks, f"layer {layer.index}: {heads} KV heads")
    return layer.model_copy(update={"kv_heads": heads, "states": states})


def _state_on_rank(layer: Layer, state: State, ranks: int) -> State:
    if state.parts <= 1:
        return state
    return state.model_copy(update={"parts": _share(state.parts, ranks, f"layer {layer.index}: {state.name} state of {state.parts} parts")})


def _share(parts: int, ranks: int, what: str) -> int:
    if parts % ranks == 0:
        return parts // ranks
    if ranks % parts == 0:
        return 1
    raise BadInput(f"--tp {ranks}: {what} neither divide by {ranks} nor repeat evenly over it; choose a number of ranks that fits")
