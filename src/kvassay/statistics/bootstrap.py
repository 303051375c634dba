"""Percentile bootstrap intervals (Efron and Tibshirani 1993, chapter 13) over independent clusters.

Values that belong together (tokens of a document, answers of an item) are first reduced to one value per cluster; clusters are resampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvassay.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DRAWS_AT_ONCE = 4_000_000


def bootstrap_mean_interval(
    values: Sequence[float], seed: int, level: float = 0.95, resamples: int = 2000, weights: Sequence[float] | None = None
) -> tuple[float, float]:
    """Two-sided interval of the (weighted) mean of `values`, one value per cluster; weights are cluster sizes, all 1 when None.

    Returns (low, high) in the unit of `values`. Raises BadInput for fewer than two values, a value that is not finite,
    or weights that do not fit.
    """
    import numpy as np

    sizes = np.ones(len(values)) if weights is None else _checked(weights, "weights")
    if len(sizes) != len(values) or np.any(sizes <= 0):
        raise BadInput(f"bootstrap: {len(values)} values need as many weights, all above zero")
    return _interval(_checked(values, "values") * sizes, sizes, seed, level, resamples)


def bootstrap_ratio_interval(
    numerators: Sequence[float], denominators: Sequence[float], seed: int, level: float = 0.95, resamples: int = 2000
) -> tuple[float, float]:
    """Two-sided interval of Σ numerators ÷ Σ denominators, paired by cluster.

    Raises BadInput when fewer than two pairs are given, the lengths differ, or a resample's denominator is not above zero.
    """
    above, below = _checked(numerators, "numerators"), _checked(denominators, "denominators")
    if len(above) != len(below):
        raise BadInput(f"bootstrap: {len(above)} numerators and {len(below)} denominators do not pair up")
    return _interval(above, below, seed, level, resamples)


def _checked(values: Sequence[float], name: str) -> NDArray[np.float64]:
    import numpy as np

    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) < 2:
        raise BadInput(f"bootstrap: an interval needs at least two {name}, got {array.size}")
    if not np.all(np.isfinite(array)):
        raise BadInput(f"bootstrap: {name} hold a number that is not finite")
    return array


def _interval(above: NDArray[np.float64], below: NDArray[np.float64], seed: int, level: float, resamples: int) -> tuple[float, float]:
    import numpy as np

    if not 0 < level < 1 or resamples < 1:
        raise BadInput(f"bootstrap: level {level} must lie between 0 and 1, resamples {resamples} above 0")
    generator = np.random.default_rng(seed)
    clusters = len(above)
    batch = max(1, DRAWS_AT_ONCE // clusters)
    ratios = []
    for start in range(0, resamples, batch):
        drawn = generator.integers(0, clusters, size=(min(batch, resamples - start), clusters))
        totals = below[drawn].sum(axis=1)
        if np.any(totals <= 0):
            raise BadInput("bootstrap: the denominator of a resample is not above zero, so the ratio has no interval")
        ratios.append(above[drawn].sum(axis=1) / totals)
    low, high = np.quantile(np.concatenate(ratios), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
