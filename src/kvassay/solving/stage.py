"""Stage `solve`: budget to candidate maps. No model is needed."""

from __future__ import annotations

from kvassay.capabilities import CAPABILITIES
from kvassay.plan.budget import token_budget
from kvassay.records.frontier import Frontier
from kvassay.records.geometry import Geometry
from kvassay.records.scores import Scores
from kvassay.solving.candidates import PriceList
from kvassay.solving.frontier import Problem, solve_frontier
from kvassay.stage import StageInput


def solve(stage: StageInput) -> Frontier:
    """The frontier of this run. Raises BadInput for a budget under the cheapest legal map, or a missing score."""
    geometry, plan = stage.run.read(Geometry), stage.plan
    problem = Problem(
        geometry=geometry,
        prices=PriceList(stage.run.read(Scores)),
        menu=plan.formats,
        capability=CAPABILITIES[plan.target],
        budget=token_budget(plan.budget, geometry),
    )
    frontier = solve_frontier(problem, plan.ladder.maps)
    if len(frontier.points) < plan.ladder.maps:
        stage.progress.note(f"solve: the menu holds only {len(frontier.points)} different best maps, {plan.ladder.maps} were asked for")
    return frontier
