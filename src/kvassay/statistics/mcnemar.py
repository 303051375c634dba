"""Exact McNemar test: under no difference, each item whose answer changed was won or lost with equal chance."""

from __future__ import annotations

import math
from fractions import Fraction

from kvassay.errors import BadInput


def exact_mcnemar_p(right_to_wrong: int, wrong_to_right: int) -> float:
    """Two-sided exact p from the items that changed; 1.0 when none did. Raises BadInput for a negative count."""
    fewer, changed = min(right_to_wrong, wrong_to_right), right_to_wrong + wrong_to_right
    if fewer < 0:
        raise BadInput(f"paired counts: {right_to_wrong} and {wrong_to_right} must not be negative")
    tail = sum(math.comb(changed, k) for k in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 2**changed)))
