"""Which engines can serve a map."""

from __future__ import annotations

from collections.abc import Sequence

from kvassay.capabilities import CAPABILITIES, Capability
from kvassay.records.frontier import Pair


def why_not_served(capability: Capability, pairs: Sequence[Pair]) -> str | None:
    """One sentence when this engine cannot serve the map, else None."""
    names = {name for pair in pairs for name in (pair.k, pair.v)}
    if unknown := sorted(names.difference(capability.formats)):
        return f"{capability.target} does not serve {', '.join(unknown)}"
    if not capability.per_layer and len(set(pairs)) > 1:
        return f"{capability.target} serves one K/V pair for all layers"
    if not capability.k_not_v and any(pair.k != pair.v for pair in pairs):
        return f"{capability.target} serves K and V of a layer in one format"
    if capability.max_formats is not None and len(names) > capability.max_formats:
        return f"{capability.target} serves at most {capability.max_formats} formats in one map, this one has {len(names)}"
    return None


def served_by(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Targets that can serve the map."""
    return tuple(target for target, capability in CAPABILITIES.items() if why_not_served(capability, pairs) is None)
