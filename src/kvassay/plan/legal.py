"""Which formats of a menu a layer may have: what the head size allows and the target serves."""

from __future__ import annotations

from collections.abc import Sequence

from kvassay.capabilities import Capability
from kvassay.errors import BadInput
from kvassay.formats import law
from kvassay.geometry.price import bytes_per_token, layer_bytes_per_token
from kvassay.plan.schema import Menu
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry, Layer


def legal_formats(names: Sequence[str], head_dim: int, native_dtype: str, capability: Capability) -> tuple[str, ...]:
    """The formats of `names` that fit a head of `head_dim` elements and that the target serves, in order."""
    return tuple(name for name in names if name in capability.formats and not law(name, native_dtype).why_illegal(head_dim))


def layer_pairs(layer: Layer, menu: Menu, native_dtype: str, capability: Capability) -> tuple[Pair, ...]:
    """The K/V pairs that one layer may have, in the menu's order."""
    k_names = legal_formats(menu.k, layer.k_dim, native_dtype, capability)
    v_names = legal_formats(menu.v, layer.v_dim, native_dtype, capability)
    return tuple(Pair(k=k, v=v) for k in k_names for v in v_names if capability.k_not_v or k == v)


def uniform_pairs(geometry: Geometry, menu: Menu, capability: Capability) -> tuple[Pair, ...]:
    """The pairs that every owner layer may have at once."""
    per_layer = [layer_pairs(layer, menu, geometry.native_dtype, capability) for layer in geometry.owners]
    return tuple(pair for pair in per_layer[0] if all(pair in pairs for pairs in per_layer[1:])) if per_layer else ()


def cheapest_pairs(geometry: Geometry, menu: Menu, capability: Capability) -> tuple[Pair, ...]:
    """The legal map of the fewest bytes, a pair per owner layer. Raises BadInput when no map is legal."""
    if not geometry.owners:
        raise BadInput(f"model_type {geometry.model_type}: no layer owns a KV cache, so there is no format to choose")
    if not capability.per_layer:
        uniform = uniform_pairs(geometry, menu, capability)
        if not uniform:
            raise BadInput(f"formats: no pair of the menu fits every layer and is served by {capability.target}")
        owners = len(geometry.owners)
        return (min(uniform, key=lambda pair: bytes_per_token(geometry, [pair] * owners)),) * owners
    return tuple(_cheapest(layer, menu, geometry.native_dtype, capability) for layer in geometry.owners)


def _cheapest(layer: Layer, menu: Menu, native_dtype: str, capability: Capability) -> Pair:
    pairs = layer_pairs(layer, menu, native_dtype, capability)
    if not pairs:
        raise BadInput(f"formats: no pair of the menu fits layer {layer.index} and is served by {capability.target}")
    return min(pairs, key=lambda pair: layer_bytes_per_token(layer, pair, native_dtype))
