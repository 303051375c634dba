"""Tango's score interval for the difference of two paired proportions (Statistics in Medicine 17, 1998, 891-908)."""

from __future__ import annotations

import math
from statistics import NormalDist

from kvassay.errors import BadInput
from kvassay.records.base import Interval

BISECTIONS = 100


def tango_interval(right_to_wrong: int, wrong_to_right: int, n: int, level: float = 0.90) -> Interval:
    """Two-sided interval of b − a as a fraction, when arm b lost `right_to_wrong` and won `wrong_to_right` of `n` items.

    The limits are the differences whose score statistic equals ± the normal quantile; they stay within −1 and 1, and have
    a width even when no item differs. Raises BadInput for counts that cannot be, or a level outside 0 to 1.
    """
    if n < 1 or min(right_to_wrong, wrong_to_right) < 0 or right_to_wrong + wrong_to_right > n:
        raise BadInput(f"paired counts: {right_to_wrong} lost and {wrong_to_right} won of {n} items cannot be")
    if not 0 < level < 1:
        raise BadInput(f"interval level {level}: must lie between 0 and 1")
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    low = _lower_limit(wrong_to_right, right_to_wrong, n, quantile)
    high = -_lower_limit(right_to_wrong, wrong_to_right, n, quantile)
    return Interval(low=low, high=high, level=level)


def score_statistic(won: int, lost: int, n: int, difference: float) -> float:
    """Tango's z for the hypothesis that the true difference is `difference`; 0 / 0 counts as 0.

    Positive when the observed difference (won − lost) / n is above it.
    """
    deviation = won - lost - n * difference
    variance = n * (2 * _lost_share(won, lost, n, difference) + difference * (1 - difference))
    if variance <= 0:
        return math.copysign(math.inf, deviation) if abs(deviation) > 1e-12 else 0.0
    return deviation / math.sqrt(variance)


def _lost_share(won: int, lost: int, n: int, difference: float) -> float:
    """Maximum-likelihood probability of a lost item when the true difference is `difference`: root of Tango's quadratic."""
    a = 2 * n
    b = -won - lost + (2 * n - won + lost) * difference
    c = -lost * difference * (1 - difference)
    root = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    return min(max(root, 0.0, -difference), (1 - difference) / 2)


def _lower_limit(won: int, lost: int, n: int, quantile: float) -> float:
    """The smallest difference that is not refused: the statistic falls as the difference rises, so bisection finds it."""
    refused, kept = -1.0, (won - lost) / n
    if score_statistic(won, lost, n, refused) <= quantile:
        return refused
    for _ in range(BISECTIONS):
        middle = (refused + kept) / 2
        if score_statistic(won, lost, n, middle) > quantile:
            refused = middle
        else:
            kept = middle
    return kept
