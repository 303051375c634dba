"""Layers that keep no cache of their own and read another layer's."""

from __future__ import annotations

from collections.abc import Sequence

from kvassay.geometry.configuration.keys import MOST_LAYERS, Keys
from kvassay.geometry.layouts.kinds import Kind


def readers_of(keys: Keys, kinds: Sequence[Kind]) -> list[int | None]:
    """For every layer the index of the owner that it reads, None where it owns its cache. Raises BadInput.

    The last `num_kv_shared_layers` read the last owner of their kind (Gemma 3n, Gemma 4); with `use_cla` each `cla_share_factor`-th
    layer owns what the ones after it read (Hunyuan).
    """
    layers = len(kinds)
    shared = keys.whole("num_kv_shared_layers", MOST_LAYERS, least=0) if keys.owns("num_kv_shared_layers") else 0
    if shared >= layers and shared:
        raise keys.refusal("num_kv_shared_layers", f"{shared} of {layers} layers: none is left to own a cache")
    if shared:
        return [None if index < layers - shared else _last_of_kind(keys, kinds, kinds[index], layers - shared) for index in range(layers)]
    if keys.owns("use_cla") and keys.flag("use_cla"):
        factor = keys.whole("cla_share_factor", MOST_LAYERS)
        return [None if index % factor == 0 else index - index % factor for index in range(layers)]
    return [None] * layers


def _last_of_kind(keys: Keys, kinds: Sequence[Kind], kind: Kind, owners: int) -> int:
    for index in range(owners - 1, -1, -1):
        if kinds[index] == kind:
            return index
    raise keys.refusal("num_kv_shared_layers", f"no layer of kind {kind} is left to own what the shared ones read")
