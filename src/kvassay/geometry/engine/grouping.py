"""Layers of several kinds in equal groups: what an engine with one page size for all groups pads, against how many groups it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from kvassay.errors import BadInput
from kvassay.geometry.configuration.keys import MOST_LAYERS
from kvassay.records.geometry import Geometry

# Sizes times kinds are tried one by one.
MOST_KINDS = 64
# Below this ratio of the largest to the smallest count vLLM sizes groups by the largest.
ALMOST_EQUAL = 1.25


@dataclass(frozen=True)
class KindGroups:
    """One kind of layer: how many there are, in how many groups, and how many layers that hold nothing fill the last one."""

    kind: str
    layers: int
    groups: int
    padding_layers: int

    @property
    def padding_per_layer(self) -> float:
        """Padding layers per real layer of this kind."""
        return self.padding_layers / self.layers


@dataclass(frozen=True)
class Grouping:
    """Groups of `size` layers. groups × size = layers + padding."""

    size: int
    kinds: tuple[KindGroups, ...]

    @property
    def groups(self) -> int:
        """Groups over all kinds: each pins at least one page per request."""
        return sum(kind.groups for kind in self.kinds)

    @property
    def padding_layers(self) -> int:
        """Layers that hold nothing, over all kinds."""
        return sum(kind.padding_layers for kind in self.kinds)

    @property
    def padding_per_layer(self) -> float:
        """Padding layers per real layer of the kinds that are padded, 0 where none is."""
        padded = sum(kind.layers for kind in self.kinds if kind.padding_layers)
        return self.padding_layers / padded if padded else 0.0


def kind_counts(geometry: Geometry) -> dict[str, int]:
    """How many caches of each kind one request has; windows of different length are kinds of their own. Readers hold nothing."""
    holders = [layer for layer in geometry.layers if layer.owner or layer.states]
    return dict(Counter(layer.kind if layer.window is None else f"{layer.kind} {layer.window}" for layer in holders))


def grouping(counts: Mapping[str, int], size: int) -> Grouping:
    """The layers of `counts` (kind to layers) in groups of `size`; kinds without layers are left out. Raises BadInput."""
    there = _checked(counts)
    if size < 1:
        raise BadInput(f"group size {size}: must be at least 1")
    return _grouping(there, size)


def grouping_trade_off(counts: Mapping[str, int]) -> tuple[Grouping, ...]:
    """The groupings that no other size beats in both groups and padding, from most groups to fewest. Raises BadInput.

    There is no one best size: fewer groups pin fewer pages per request, less padding wastes less of each page.
    """
    there = _checked(counts)
    front: list[Grouping] = []
    every = [_grouping(there, size) for size in range(1, max(there.values()) + 1)]
    for each in sorted(every, key=lambda its: (its.padding_layers, its.groups)):
        if not front or each.groups < front[-1].groups:
            front.append(each)
    return tuple(front)


def smallest_grouping(counts: Mapping[str, int]) -> Grouping:
    """How vLLM groups by default: by the smallest count, or by the largest where all counts are almost equal. Raises BadInput."""
    there = _checked(counts)
    least, most = min(there.values()), max(there.values())
    return _grouping(there, most if most < ALMOST_EQUAL * least else least)


def _grouping(counts: Mapping[str, int], size: int) -> Grouping:
    groups = {kind: ceil(layers / size) for kind, layers in counts.items()}
    return Grouping(size, tuple(KindGroups(kind, counts[kind], many, many * size - counts[kind]) for kind, many in groups.items()))


def _checked(counts: Mapping[str, int]) -> dict[str, int]:
    there = {kind: layers for kind, layers in counts.items() if layers}
    layers = sum(there.values())
    if not there or min(there.values()) < 0 or layers > MOST_LAYERS or len(there) > MOST_KINDS:
        raise BadInput(f"{layers:,} layers of {len(there):,} kinds: must be 1 to {MOST_LAYERS:,} layers of at most {MOST_KINDS} kinds")
    return there
