"""Percentiles of latencies, as numpy and the common load generators define them.

The p-th percentile of n sorted values stands at rank p/100 · (n − 1), counted from zero; between two values it is interpolated
linearly (Hyndman and Fan 1996, type 7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kvassay.errors import BadInput
from kvassay.records.roadtest import Percentiles

P99_NEEDS = 1000


def percentile(sorted_values: Sequence[float], percent: float) -> float:
    """The `percent`-th percentile (0 to 100) of values already sorted upwards. Raises BadInput when there are none."""
    if not sorted_values:
        raise BadInput("percentile: no values")
    rank = percent / 100 * (len(sorted_values) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(sorted_values) - 1)
    return sorted_values[below] + (rank - below) * (sorted_values[above] - sorted_values[below])


def percentiles(values_ms: Sequence[float]) -> Percentiles:
    """p50, p90, p99 and mean of `values_ms`; p99 is null under 1,000 values, everything is null without values.

    Raises BadInput for a value that is negative or not finite.
    """
    if any(not math.isfinite(value) or value < 0 for value in values_ms):
        raise BadInput("percentiles: a latency is negative or not finite")
    count = len(values_ms)
    if not count:
        why = "no values"
        return Percentiles(p50=None, p50_reason=why, p90=None, p90_reason=why, p99=None, p99_reason=why, mean=None, mean_reason=why, n=0)
    ordered = sorted(values_ms)
    enough = count >= P99_NEEDS
    return Percentiles(
        p50=percentile(ordered, 50),
        p90=percentile(ordered, 90),
        p99=percentile(ordered, 99) if enough else None,
        p99_reason=None if enough else f"{count} values; a 99th percentile is quoted from {P99_NEEDS:,} on",
        mean=math.fsum(ordered) / count,
        n=count,
    )
