"""The multiple-choice knapsack as a mixed-integer program for HiGHS: one choice per group, least loss within the bytes.

HiGHS is called through scipy: the one inside highspy 1.16 writes a banner to stdout when it is made, and stdout is for reports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvassay.errors import KvassayError
from kvassay.solving.candidates import Choice, Group

TIME_LIMIT_S = 60.0
OPTIMAL, INFEASIBLE = 0, 2
# Losses are scaled so that the largest is WEIGHT_SCALE, and all bytes together weigh TIE_WEIGHT: of equal losses the cheaper wins, no
# loss above a millionth of the largest is outweighed, and both stay well above the solver's own tolerance of 1e-6.
WEIGHT_SCALE = 1e5
TIE_WEIGHT = 1e-1


@dataclass(frozen=True)
class Solution:
    """One taken choice per group, in the order of the groups. status: "optimal" when proven."""

    taken: tuple[Choice, ...]
    bytes_per_token: int
    status: str


def solve_budgets(
    groups: Sequence[Group], budgets_bytes: Sequence[int], *, max_formats: int | None = None, layers_differ: bool = False
) -> list[Solution | None]:
    """The best choices for each budget (bytes per token), None where no map is within it.

    max_formats: most different formats in the whole map. layers_differ: leave out maps that give every layer the same pair.
    """
    program = _Program(groups, max_formats, layers_differ)
    return [program.solve(budget) for budget in budgets_bytes]


class _Program:
    """Built once for all budgets. One binary column per choice, and one per format where formats are counted."""

    def __init__(self, groups: Sequence[Group], max_formats: int | None, layers_differ: bool) -> None:
        self.max_formats = max_formats
        self.choices = [choice for group in groups for choice in group.choices]
        ends = [sum(len(group.choices) for group in groups[: at + 1]) for at in range(len(groups))]
        self.columns_of = [range(end - len(group.choices), end) for group, end in zip(groups, ends, strict=True)]
        self.most_bytes = sum(max(choice.bytes_per_token for choice in group.choices) for group in groups)
        self.unit_bytes = math.gcd(*(choice.bytes_per_token for choice in self.choices)) or 1
        self.formats = sorted(set().union(*(choice.formats for choice in self.choices))) if max_formats else []
        self.costs = self._costs()
        self.fixed_rows = [self._one_per_group(), *self._few_formats(), *(self._layers_differ() if layers_differ else [])]

    def solve(self, budget_bytes: int) -> Solution | None:
        from scipy.optimize import Bounds, milp

        result = milp(
            self.costs,
            integrality=[1] * len(self.costs),
            bounds=Bounds(0, 1),
            constraints=[*self.fixed_rows, self._within(budget_bytes)],
            options={"mip_rel_gap": 0.0, "time_limit": TIME_LIMIT_S},
        )
        if result.status == INFEASIBLE:
            return None
        if result.status != OPTIMAL:
            raise KvassayError(f"solver: {result.message}")
        taken = tuple(self.choices[max(columns, key=lambda column: float(result.x[column]))] for columns in self.columns_of)
        total = sum(choice.bytes_per_token for choice in taken)
        if total > budget_bytes:
            raise KvassayError(f"solver: HiGHS gave {total} bytes for a budget of {budget_bytes}")
        return Solution(taken, total, "optimal")

    def _costs(self) -> list[float]:
        largest_nats = max(choice.weight_nats for choice in self.choices) or 1.0
        tie = TIE_WEIGHT / max(self.most_bytes, 1)
        costs = [WEIGHT_SCALE * choice.weight_nats / largest_nats + tie * choice.bytes_per_token for choice in self.choices]
        return costs + [0.0] * len(self.formats)

    def _one_per_group(self) -> Any:
        from scipy.optimize import LinearConstraint

        cells = [(row, column, 1.0) for row, columns in enumerate(self.columns_of) for column in columns]
        return LinearConstraint(self._matrix(cells, len(self.columns_of)), 1, 1)

    def _within(self, budget_bytes: int) -> Any:
        from scipy.optimize import LinearConstraint

        cells = [(0, column, choice.bytes_per_token / self.unit_bytes) for column, choice in enumerate(self.choices)]
        return LinearConstraint(self._matrix(cells, 1), ub=budget_bytes // self.unit_bytes)

    def _few_formats(self) -> list[Any]:
        """A format's column is 1 as soon as one choice uses it; their sum is bounded."""
        from scipy.optimize import LinearConstraint

        if not self.max_formats:
            return []
        used = {name: len(self.choices) + at for at, name in enumerate(self.formats)}
        uses = [(column, used[name]) for column, choice in enumerate(self.choices) for name in choice.formats]
        cells = [cell for row, (column, name) in enumerate(uses) for cell in ((row, column, 1.0), (row, name, -1.0))]
        total = [(0, name, 1.0) for name in used.values()]
        return [LinearConstraint(self._matrix(cells, len(uses)), ub=0), LinearConstraint(self._matrix(total, 1), ub=self.max_formats)]

    def _layers_differ(self) -> list[Any]:
        """For each pair that every layer may have: not all of its choices at once."""
        from scipy.optimize import LinearConstraint

        k_names = {choice.k for choice in self.choices if choice.k is not None}
        v_names = {choice.v for choice in self.choices if choice.v is not None}
        rows = []
        for k in sorted(k_names):
            for v in sorted(v_names):
                columns = [at for at, choice in enumerate(self.choices) if choice.k in (None, k) and choice.v in (None, v)]
                if len(columns) == len(self.columns_of):
                    rows.append(columns)
        cells = [(row, column, 1.0) for row, columns in enumerate(rows) for column in columns]
        return [LinearConstraint(self._matrix(cells, len(rows)), ub=len(self.columns_of) - 1)] if rows else []

    def _matrix(self, cells: Sequence[tuple[int, int, float]], rows: int) -> Any:
        from scipy.sparse import csr_array

        at_rows, at_columns, values = zip(*cells, strict=True)
        return csr_array((values, (at_rows, at_columns)), shape=(rows, len(self.choices) + len(self.formats)))
