"""Which maps of the frontier are measured: mixed ones evenly over bits, and beside each the best uniform pair at no more bytes."""

from __future__ import annotations

from collections.abc import Sequence

from kvassay.formats import NATIVE
from kvassay.plan.schema import LadderChoice
from kvassay.records.frontier import Frontier, FrontierPoint
from kvassay.records.ladder import RungKind


def chosen_mixed(points: Sequence[FrontierPoint], count: int, budget_bits: float) -> list[FrontierPoint]:
    """`count` mixed points evenly over bits, among them always the largest one within the budget.

    A point whose layers all have one pair is a uniform map and is left to the uniform side. All points when there are fewer.
    """
    mixed = sorted(
        (point for point in points if len(set(point.pairs)) > 1), key=lambda point: (point.bits, point.predicted_kl_nats, point.name)
    )
    if len(mixed) <= count:
        return mixed
    low, high = mixed[0].bits, mixed[-1].bits
    chosen: list[FrontierPoint] = []
    for step in range(count):
        left = [point for point in mixed if point not in chosen]
        chosen.append(nearest(left, low + (high - low) * step / (count - 1)))
    budgeted = best_within(mixed, budget_bits)
    if budgeted and budgeted not in chosen:
        chosen[chosen.index(nearest(chosen, budgeted.bits))] = budgeted
    return sorted(chosen, key=lambda point: point.bits)


def nearest(points: Sequence[FrontierPoint], bits: float) -> FrontierPoint:
    return min(points, key=lambda point: abs(point.bits - bits))


def best_within(points: Sequence[FrontierPoint], budget_bits: float) -> FrontierPoint | None:
    """The point of most bits that the budget allows."""
    return max((point for point in points if within_budget(point, budget_bits)), key=lambda point: point.bits, default=None)


def within_budget(point: FrontierPoint, budget_bits: float) -> bool:
    return point.bits <= budget_bits + 1e-9


def chosen_uniform(uniform: Sequence[FrontierPoint], mixed: Sequence[FrontierPoint], count: int, budget_bits: float) -> list[FrontierPoint]:
    """For every mixed map the best predicted uniform pair at no more bytes, then the best predicted others, `count` in all or more.

    Pairs within the budget come before others. native/native is the reference itself and is never measured.
    """
    real = [point for point in uniform if any(pair.k != NATIVE or pair.v != NATIVE for pair in point.pairs)]
    order = sorted(real, key=lambda point: (point.predicted_kl_nats, point.bytes_per_token, point.name))
    chosen: list[FrontierPoint] = []
    for point in mixed:
        best = next((other for other in order if other.bytes_per_token <= point.bytes_per_token), None)
        if best and best not in chosen:
            chosen.append(best)
    for point in sorted(order, key=lambda point: not within_budget(point, budget_bits)):
        if len(chosen) < count and point not in chosen:
            chosen.append(point)
    return sorted(chosen, key=lambda point: point.bits)


def rungs_of(frontier: Frontier, choice: LadderChoice) -> list[tuple[RungKind, FrontierPoint]]:
    """("mixed" or "uniform", point) of every map to measure, by rising bits."""
    mixed = chosen_mixed(frontier.points, choice.maps, frontier.budget_bits)
    uniform = chosen_uniform(frontier.uniform, mixed, choice.uniform, frontier.budget_bits)
    both: list[tuple[RungKind, FrontierPoint]] = [("mixed", point) for point in mixed] + [("uniform", point) for point in uniform]
    return sorted(both, key=lambda entry: (entry[1].bits, entry[0], entry[1].name))
