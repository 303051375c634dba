"""The frontier: the best predicted map of each budget, and the uniform pairs of the same menu beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvassay.capabilities import Capability
from kvassay.geometry.price import bytes_per_token, cached_elements, effective_bits, native_pairs
from kvassay.plan.budget import TokenBudget, check_budget
from kvassay.plan.legal import cheapest_pairs, uniform_pairs
from kvassay.plan.schema import Menu
from kvassay.records.frontier import Frontier, FrontierPoint, Pair
from kvassay.records.geometry import Geometry
from kvassay.solving.candidates import Group, PriceList, groups_of, pairs_of, predicted_kl_nats
from kvassay.solving.milp import solve_budgets
from kvassay.solving.served import served_by, why_not_served

GRID_REFINEMENTS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Problem:
    """What a frontier is computed from."""

    geometry: Geometry
    prices: PriceList
    menu: Menu
    capability: Capability
    budget: TokenBudget


def solve_frontier(problem: Problem, maps: int) -> Frontier:
    """The map at the budget, `maps` more between the cheapest legal map and native, and all uniform pairs.

    Points are maps whose layers differ; fewer come out where the menu does not hold that many. Where the target serves only
    uniform pairs, the points are those. Raises BadInput for a budget under the cheapest legal map.
    """
    geometry, capability = problem.geometry, problem.capability
    check_budget(problem.budget, geometry, problem.menu, capability)
    uniform = _uniform_points(problem)
    if capability.per_layer:
        points = _mixed_points(problem, maps)
    else:
        points = [point for point in uniform if why_not_served(capability, point.pairs) is None]
    return Frontier(
        target=capability.target,
        budget_bits=problem.budget.bits,
        budget_text=problem.budget.text,
        owner_layers=tuple(layer.index for layer in geometry.owners),
        points=tuple(points),
        uniform=tuple(uniform),
    )


def _uniform_points(problem: Problem) -> list[FrontierPoint]:
    """Every uniform pair of the menu, and native/native whether it is in the menu or not, by rising bits."""
    owners = len(problem.geometry.owners)
    native = native_pairs(problem.geometry)[0]
    pairs = dict.fromkeys((*uniform_pairs(problem.geometry, problem.menu, problem.capability), native))
    points = [_point(problem, (pair,) * owners, f"{pair.k}/{pair.v}", None, "enumerated") for pair in pairs]
    return sorted(points, key=lambda point: (point.bytes_per_token, point.predicted_kl_nats))


def _mixed_points(problem: Problem, maps: int) -> list[FrontierPoint]:
    geometry, capability = problem.geometry, problem.capability
    groups = groups_of(geometry, problem.prices, problem.menu, capability)
    at_budget = _best_mixed(groups, problem.budget.bytes_per_token, capability.max_formats)
    found: dict[tuple[Pair, ...], tuple[int, str]] = {}
    spread: list[tuple[Pair, ...]] = []
    for refinement in GRID_REFINEMENTS:
        grid = _grid(problem, maps * refinement)
        for budget_bytes, solution in zip(grid, solve_budgets(groups, grid, capability.max_formats), strict=True):
            pairs = pairs_of(groups, solution.taken)
            if len(set(pairs)) > 1:
                found.setdefault(pairs, (budget_bytes, solution.status))
        spread = [pairs for pairs in found if at_budget is None or pairs != at_budget[0]]
        if len(spread) >= maps:
            break
    chosen = {pairs: found[pairs] for pairs in _evenly(sorted(spread, key=lambda pairs: bytes_per_token(geometry, pairs)), maps)}
    if at_budget is not None:
        chosen[at_budget[0]] = (problem.budget.bytes_per_token, at_budget[1])
    points = [_point(problem, pairs, None, budget_bytes, status) for pairs, (budget_bytes, status) in chosen.items()]
    return _named(sorted(points, key=lambda point: (point.bytes_per_token, point.predicted_kl_nats)))


def _best_mixed(groups: tuple[Group, ...], budget_bytes: int, max_formats: int | None) -> tuple[tuple[Pair, ...], str] | None:
    """The best map at the budget; where that is uniform, the best of fewer bytes whose layers differ. None where there is none."""
    least = sum(min(choice.bytes_per_token for choice in group.choices) for group in groups)
    while budget_bytes >= least:
        solution = solve_budgets(groups, [budget_bytes], max_formats)[0]
        pairs = pairs_of(groups, solution.taken)
        if len(set(pairs)) > 1:
            return pairs, solution.status
        budget_bytes = solution.bytes_per_token - 1
    return None


def _grid(problem: Problem, steps: int) -> list[int]:
    """Budgets in bytes strictly between the cheapest legal map and native: half of them under the plan's budget, half above.

    Below the budget lie the maps that may be frozen, and those a team falls back to; an even grid would mostly show maps nobody asks for.
    """
    geometry = problem.geometry
    low = bytes_per_token(geometry, cheapest_pairs(geometry, problem.menu, problem.capability))
    high = bytes_per_token(geometry, native_pairs(geometry))
    middle = min(max(problem.budget.bytes_per_token, low), high)
    below = 0 if middle == low else steps if middle == high else (steps + 1) // 2
    return sorted({*_between(low, middle, below), *_between(middle, high, steps - below)})


def _between(low: int, high: int, count: int) -> list[int]:
    return [low + (high - low) * step // (count + 1) for step in range(1, count + 1)]


def _evenly(ordered: Sequence[tuple[Pair, ...]], count: int) -> list[tuple[Pair, ...]]:
    """`count` of the maps, evenly spread over their order, both ends included."""
    if len(ordered) <= count:
        return list(ordered)
    return [ordered[round(at * (len(ordered) - 1) / max(count - 1, 1))] for at in range(count)]


def _point(problem: Problem, pairs: tuple[Pair, ...], name: str | None, budget_bytes: int | None, status: str) -> FrontierPoint:
    geometry = problem.geometry
    held = bytes_per_token(geometry, pairs)
    return FrontierPoint(
        name=name or "",
        budget_bits=8 * (held if budget_bytes is None else budget_bytes) / cached_elements(geometry),
        bits=effective_bits(geometry, pairs),
        bytes_per_token=held,
        predicted_kl_nats=predicted_kl_nats(geometry, problem.prices, pairs),
        pairs=pairs,
        served_by=served_by(pairs),
        solver_status=status,
    )


def _named(points: list[FrontierPoint]) -> list[FrontierPoint]:
    """Names say the bits; maps of equal bits get a letter."""
    seen: dict[str, int] = {}
    named = []
    for point in points:
        name = f"mixed_{point.bits:.3f}"
        seen[name] = seen.get(name, 0) + 1
        named.append(point.model_copy(update={"name": name if seen[name] == 1 else f"{name}_{seen[name]}"}))
    return named
