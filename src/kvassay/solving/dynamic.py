"""The multiple-choice knapsack by dynamic programming: all budgets of one additive resource at once, exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvassay.solving.candidates import Choice, Group
from kvassay.solving.milp import Solution

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Entries of the table of taken choices, one byte or two each: above it the integer program is the better way.
MOST_ENTRIES = 2**27
# Losses this close, relative to the largest, are ties: the cheaper map wins.
TIE = 1e-12


def fits(groups: Sequence[Group], budgets_bytes: Sequence[int]) -> bool:
    """Whether the table for these budgets stays small."""
    return bool(budgets_bytes) and len(groups) * (max(budgets_bytes) // _unit_bytes(groups) + 1) <= MOST_ENTRIES


def solve_budgets_at_once(groups: Sequence[Group], budgets_bytes: Sequence[int]) -> list[Solution | None]:
    """The choices of least loss for each budget (bytes per token), the cheapest among equal losses; None where no map is within it.

    best[b] is the least loss of the groups so far at exactly b units of bytes; one pass per choice extends it by one group.
    """
    import numpy as np

    unit = _unit_bytes(groups)
    width = max(budgets_bytes) // unit + 1
    best = np.full(width, np.inf)
    best[0] = 0.0
    taken = []
    for group in groups:
        best, choice = _extended(best, group, unit)
        taken.append(choice)
    largest = max((choice.weight_nats for group in groups for choice in group.choices), default=0.0)
    least = np.minimum.accumulate(best)
    return [_solution(groups, best, least, taken, budget // unit, unit, TIE * largest) for budget in budgets_bytes]


def _extended(best: NDArray[np.float64], group: Group, unit: int) -> tuple[NDArray[np.float64], NDArray[np.uint16]]:
    """The table with one group more, and which of its choices each entry took."""
    import numpy as np

    width = len(best)
    extended = np.full(width, np.inf)
    choice = np.zeros(width, dtype=np.uint16)
    for number, each in enumerate(group.choices):
        step = each.bytes_per_token // unit
        if step >= width:
            continue
        reached = best[: width - step] + each.weight_nats
        better = reached < extended[step:]
        extended[step:][better] = reached[better]
        choice[step:][better] = number
    return extended, choice


def _solution(
    groups: Sequence[Group],
    best: NDArray[np.float64],
    least: NDArray[np.float64],
    taken: Sequence[NDArray[np.uint16]],
    budget_units: int,
    unit: int,
    tie: float,
) -> Solution | None:
    import numpy as np

    at = min(budget_units, len(best) - 1)
    if at < 0 or not math.isfinite(least[at]):
        return None
    at = int(np.argmax(best[: at + 1] <= least[at] + tie))
    total = at * unit
    chosen: list[Choice] = []
    for group, choice in zip(reversed(groups), reversed(taken), strict=True):
        each = group.choices[int(choice[at])]
        chosen.append(each)
        at -= each.bytes_per_token // unit
    return Solution(tuple(reversed(chosen)), total, "optimal")


def _unit_bytes(groups: Sequence[Group]) -> int:
    """The largest number of bytes of which every choice takes a whole number."""
    return math.gcd(*(choice.bytes_per_token for group in groups for choice in group.choices)) or 1
