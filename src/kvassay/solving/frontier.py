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
from kvassay.solving.candidates import Group, PriceList, above_floor, groups_of, pairs_of, predicted_kl_nats
from kvassay.solving.dynamic import fits, solve_budgets_at_once
from kvassay.solving.milp import Solution, solve_budgets
from kvassay.solving.served import served_by, why_not_served

GRID_REFINEMENTS = (1, 2, 4)

Found = dict[tuple[Pair, ...], tuple[int, str]]


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
    """The map at the budget and up to `maps` others, by rising bits."""
    groups = groups_of(problem.geometry, problem.prices, problem.menu, problem.capability)
    at_budget = _best_maps(problem, groups, [problem.budget.bytes_per_token])
    chosen = _spread_maps(problem, groups, maps, leave_out=at_budget) | at_budget
    points = [_point(problem, pairs, "", budget_bytes, status) for pairs, (budget_bytes, status) in chosen.items()]
    return _named(sorted(points, key=lambda point: (point.bytes_per_token, point.predicted_kl_nats)))


def _spread_maps(problem: Problem, groups: tuple[Group, ...], maps: int, leave_out: Found) -> Found:
    """Up to `maps` different maps over the grid of budgets.

    Where losses at the noise floor tie, many budgets have one and the same best map: the measured losses then tell them apart.
    """
    found: Found = {}
    for source in (groups, tuple(above_floor(group) for group in groups)):
        for refinement in GRID_REFINEMENTS:
            best = _best_maps(problem, source, _grid(problem, maps * refinement))
            found |= {pairs: how for pairs, how in best.items() if pairs not in leave_out and pairs not in found}
            if len(found) >= maps:
                by_size = sorted(found, key=lambda pairs: bytes_per_token(problem.geometry, pairs))
                return {pairs: found[pairs] for pairs in _evenly(by_size, maps)}
    return found


def _best_maps(problem: Problem, groups: tuple[Group, ...], budgets: Sequence[int]) -> Found:
    """The best map whose layers differ at each budget, with the first budget it was found at and the solver's word."""
    found: Found = {}
    solutions = _solve(groups, budgets, problem.capability.max_formats)
    for budget_bytes, solution in zip(budgets, solutions, strict=True):
        if solution is not None:
            found.setdefault(pairs_of(groups, solution.taken), (budget_bytes, solution.status))
    return found


def _solve(groups: tuple[Group, ...], budgets: Sequence[int], max_formats: int | None) -> list[Solution | None]:
    """By dynamic programming where bytes are the only bond; the integer program where formats are counted, or where the best is uniform."""
    if max_formats is not None or not fits(groups, budgets):
        return solve_budgets(groups, budgets, max_formats=max_formats, layers_differ=True)
    found = solve_budgets_at_once(groups, budgets)
    uniform = [at for at, each in enumerate(found) if each is not None and len(set(pairs_of(groups, each.taken))) == 1]
    again = solve_budgets(groups, [budgets[at] for at in uniform], layers_differ=True) if uniform else []
    for at, each in zip(uniform, again, strict=True):
        found[at] = each
    return found


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


def _point(problem: Problem, pairs: tuple[Pair, ...], name: str, budget_bytes: int | None, status: str) -> FrontierPoint:
    geometry = problem.geometry
    held = bytes_per_token(geometry, pairs)
    return FrontierPoint(
        name=name,
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
