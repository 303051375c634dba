"""Paired comparison of an arm with its baseline on the same items: no worse than the margin, worse, or not shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from kvassay.errors import BadInput
from kvassay.records.evaluation import Comparison, ComparisonVerdict
from kvassay.statistics.mcnemar import exact_mcnemar_p
from kvassay.statistics.sensitivity import Sensitivity
from kvassay.statistics.tango import tango_interval

ALPHA = 0.05
POWER = 0.80
WORST_FIRST: tuple[ComparisonVerdict, ...] = ("worse", "not_shown", "no_worse")


@dataclass(frozen=True)
class PairedCounts:
    """Items by what baseline a and arm b answered."""

    both_right: int
    right_to_wrong: int
    wrong_to_right: int
    both_wrong: int

    @property
    def n(self) -> int:
        return self.both_right + self.right_to_wrong + self.wrong_to_right + self.both_wrong

    @property
    def a(self) -> float:
        """Score of the baseline, 0 to 1."""
        return (self.both_right + self.right_to_wrong) / self.n

    @property
    def b(self) -> float:
        """Score of the arm, 0 to 1."""
        return (self.both_right + self.wrong_to_right) / self.n


def count_pairs(a_correct: Sequence[bool], b_correct: Sequence[bool]) -> PairedCounts:
    """Count item by item, in the same order. Raises BadInput when there are no items or the numbers differ."""
    if len(a_correct) != len(b_correct) or not a_correct:
        raise BadInput(f"comparison: {len(a_correct)} items against {len(b_correct)}; both arms need the same items, at least one")
    pairs = list(zip((bool(x) for x in a_correct), (bool(x) for x in b_correct), strict=True))
    return PairedCounts(
        both_right=pairs.count((True, True)),
        right_to_wrong=pairs.count((True, False)),
        wrong_to_right=pairs.count((False, True)),
        both_wrong=pairs.count((False, False)),
    )


def compare(counts: PairedCounts, margin: float, sensitivity: Sensitivity | None = None) -> Comparison:
    """Compare arm b with baseline a by `counts`; `margin` is the loss that may be accepted, as a fraction.

    no_worse: the lower end of the two-sided 90 % Tango interval of b − a lies above −margin. worse: it does not, and the upper
    end lies below 0. not_shown: neither. With a `sensitivity` (None: not judged), an insensitive task shows nothing, and a fall
    to zero on a sensitive one is worse. Raises BadInput for a margin outside 0 to 1 or without items.
    """
    if counts.n < 1:
        raise BadInput("comparison: no items in common")
    needed = items_needed((counts.right_to_wrong + counts.wrong_to_right) / counts.n, margin)
    interval = tango_interval(counts.right_to_wrong, counts.wrong_to_right, counts.n, level=1 - 2 * ALPHA)
    p = exact_mcnemar_p(counts.right_to_wrong, counts.wrong_to_right)
    verdict, reason = _judge(counts, interval.low, interval.high, margin, needed, sensitivity)
    return Comparison(
        n=counts.n,
        a=counts.a,
        b=counts.b,
        right_to_wrong=counts.right_to_wrong,
        wrong_to_right=counts.wrong_to_right,
        difference=(counts.wrong_to_right - counts.right_to_wrong) / counts.n,
        interval=interval,
        mcnemar_p=p,
        difference_detected=p < ALPHA,
        margin=margin,
        verdict=verdict,
        items_needed=needed,
        reason=reason,
    )


def pooled_verdict(verdicts: Iterable[ComparisonVerdict]) -> ComparisonVerdict:
    """The worst of the primary endpoints; without any, nothing is shown."""
    found = set(verdicts)
    return next((verdict for verdict in WORST_FIRST if verdict in found), "not_shown")


def items_needed(disagreement: float, margin: float) -> int:
    """Paired items that show no loss above `margin` with 80 % power at one-sided 5 %, when `disagreement` of the answers differ
    and the arms are truly equal: (z₀.₉₅ + z₀.₈₀)² · disagreement ÷ margin², rounded; never fewer than the interval needs when
    not one answer differs.

    Raises BadInput for a disagreement or margin outside 0 to 1, or a margin of 0, which no number of items can show.
    """
    if not 0 <= disagreement <= 1 or not 0 < margin <= 1:
        raise BadInput(f"comparison: disagreement {disagreement} must lie in 0 to 1, and margin {margin} above 0 and at most 1")
    normal = NormalDist()
    by_power = (normal.inv_cdf(1 - ALPHA) + normal.inv_cdf(POWER)) ** 2 * disagreement / margin**2
    return max(math.floor(by_power + 0.5), _items_when_nothing_differs(margin))


def smallest_detectable_difference(disagreement: float, n: int) -> float:
    """Difference, as a fraction, that a two-sided 5 % test over `n` paired items finds with 80 % power (arXiv 2605.28873)."""
    if n < 1 or not 0 <= disagreement <= 1:
        raise BadInput(f"comparison: {n} items and a disagreement of {disagreement} have no detectable difference")
    normal = NormalDist()
    return (normal.inv_cdf(1 - ALPHA / 2) + normal.inv_cdf(POWER)) * math.sqrt(disagreement / n)


def _items_when_nothing_differs(margin: float) -> int:
    """Without a changed answer Tango's lower end is −z² / (n + z²); this is the first n that puts it above −margin."""
    square = NormalDist().inv_cdf(1 - ALPHA) ** 2
    return math.floor(square * (1 - margin) / margin) + 1


def _judge(
    counts: PairedCounts, low: float, high: float, margin: float, needed: int, sensitivity: Sensitivity | None
) -> tuple[ComparisonVerdict, str]:
    if sensitivity is not None and not sensitivity.sensitive:
        return "not_shown", f"the task can show nothing: {sensitivity.reason}"
    if sensitivity is not None and counts.b == 0 and counts.a > 0:
        return "worse", f"broken: the score fell to zero from {counts.a:.3f}"
    if low > -margin:
        return "no_worse", f"the loss is below {margin:.3f}: the interval starts at {low:+.3f}"
    if high < 0:
        return "worse", f"the loss is real: the interval ends at {high:+.3f}"
    if counts.n < needed:
        return "not_shown", f"{counts.n} of {needed:,} items needed for a margin of {margin:.3f}"
    return "not_shown", f"the interval {low:+.3f} to {high:+.3f} holds both no loss and a loss of {margin:.3f}"
