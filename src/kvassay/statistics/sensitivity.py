"""Whether a task can show anything: judged on the native arm and on the canary, the worst cache the engine can be made to serve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from kvassay.errors import BadInput

ALPHA = 0.05


@dataclass(frozen=True)
class Sensitivity:
    sensitive: bool
    reason: str


def judge_sensitivity(
    native_correct: Sequence[bool],
    canary_correct: Sequence[bool] | None,
    native_on_canary_items: Sequence[bool],
    chance: float,
    margin: float,
) -> Sensitivity:
    """Judge one task.

    native_correct: every item under native. canary_correct and native_on_canary_items: the items that the canary answered too,
    in the same order; canary_correct is None when no canary was served. chance: score of a guess, 0 to 1.

    Insensitive when the one-sided 95 % lower bound of the native score (Clopper-Pearson) is not above chance + margin, so that a
    fall to chance could hide within the margin; or when the canary does not take more than the margin from native (one-sided
    exact McNemar, 5 %), which for a native score near the ceiling means that the task is too easy.
    """
    if not native_correct:
        return Sensitivity(False, "no item was answered")
    right, n = sum(native_correct), len(native_correct)
    bound = lower_bound(right, n)
    if bound <= chance + margin:
        return Sensitivity(False, f"native is right on {right} of {n}, too near chance ({chance:.3f}) to fall by more than {margin:.3f}")
    if not canary_correct:
        return Sensitivity(False, "no canary answered, so it is not known whether a bad cache moves this task")
    if len(canary_correct) != len(native_on_canary_items):
        raise BadInput(f"sensitivity: {len(canary_correct)} canary items against {len(native_on_canary_items)} of native")
    pairs = list(zip(native_on_canary_items, canary_correct, strict=True))
    lost, won = pairs.count((True, False)), pairs.count((False, True))
    drop = (lost - won) / len(pairs)
    if drop <= margin or _one_sided_p(lost, won) >= ALPHA:
        ceiling = " at the ceiling, with no room under the margin" if right / n >= 1 - margin else ""
        return Sensitivity(False, f"the canary does not move it{ceiling}: {lost} answers lost and {won} won of {len(pairs)}")
    return Sensitivity(True, f"native is right on {right} of {n}, and the canary loses {lost} and wins {won} of {len(pairs)}")


def lower_bound(right: int, n: int, alpha: float = ALPHA) -> float:
    """One-sided Clopper-Pearson lower bound of a score: the p at which `right` or more of `n` has probability `alpha`."""
    if not 0 <= right <= n or n < 1:
        raise BadInput(f"score: {right} of {n} cannot be")
    low, high = 0.0, right / n
    for _ in range(60):
        middle = (low + high) / 2
        if _at_least(right, n, middle) < alpha:
            low = middle
        else:
            high = middle
    return low


def _at_least(right: int, n: int, p: float) -> float:
    return math.fsum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(right, n + 1))


def _one_sided_p(lost: int, won: int) -> float:
    changed = lost + won
    return float(Fraction(sum(math.comb(changed, k) for k in range(lost, changed + 1)), 2**changed))
