"""Stage `freeze`: the choice, from measured points only."""

from __future__ import annotations

from collections.abc import Sequence

from kvassay.capabilities import CAPABILITIES, Capability
from kvassay.errors import BadInput
from kvassay.plan.budget import TokenBudget, token_budget
from kvassay.plan.schema import Plan
from kvassay.records.geometry import Geometry
from kvassay.records.kv_map import FrozenMap, KVMap, Provenance
from kvassay.records.ladder import Ladder, Rung
from kvassay.records.model import Model
from kvassay.solving.kv_map import build_kv_map
from kvassay.solving.recommend import recommend
from kvassay.stage import StageInput


def freeze(stage: StageInput) -> FrozenMap:
    """The map arm, the uniform arm beside it and the next smaller map for the fallback.

    Raises BadInput when no measured map is within the budget, or the gate where the budget is "smallest within gates".
    """
    run, plan = stage.run, stage.plan
    geometry, model, ladder = run.read(Geometry), run.read(Model), run.read(Ladder)
    budget = token_budget(plan.budget, geometry)
    capability = CAPABILITIES[plan.target]
    chosen = choose(ladder, plan, budget, capability)
    uniform = best_uniform(ladder, chosen)
    smaller = next_smaller(ladder, chosen)
    arm, reason = recommend(chosen, uniform, plan.seeds.bootstrap)

    def build(rung: Rung) -> KVMap:
        return build_kv_map(geometry, run.digest(Geometry.artifact), model.weights_sha256, plan.target, rung.pairs)

    return FrozenMap(
        **dict(build(chosen)),
        provenance=_provenance(chosen, budget),
        recommended_arm=arm,
        recommended_reason=reason,
        uniform=build(uniform) if uniform else None,
        uniform_reason=None if uniform else _why_no_uniform(chosen),
        uniform_provenance=_provenance(uniform, budget) if uniform else None,
        smaller=build(smaller) if smaller else None,
        smaller_reason=None if smaller else f"no map of fewer than {chosen.bytes_per_token:,} bytes per token was measured",
    )


def choose(ladder: Ladder, plan: Plan, budget: TokenBudget, capability: Capability) -> Rung:
    """The mixed rung of least measured KL within the budget; for "smallest", the one of fewest bytes within the gate.

    Where the target serves only uniform pairs, those stand in for mixed maps.
    """
    kind = "mixed" if capability.per_layer else "uniform"
    rungs = [rung for rung in ladder.rungs if rung.kind == kind]
    if plan.budget.smallest:
        return _smallest_within(rungs, plan.gates.kl_mean_nats)
    within = [rung for rung in rungs if rung.bytes_per_token <= budget.bytes_per_token]
    if not within:
        least = min((rung.bytes_per_token for rung in rungs), default=None)
        seen = f"the smallest measured has {least:,}" if least is not None else "none was measured"
        raise BadInput(
            f"ladder.json: no {kind} map within {budget.text} ({budget.bytes_per_token:,} bytes per token), {seen}; "
            "raise the budget or widen formats"
        )
    return min(within, key=lambda rung: (rung.kl_nats, rung.bytes_per_token))


def best_uniform(ladder: Ladder, chosen: Rung) -> Rung | None:
    """The uniform rung of least measured KL at no more bytes than `chosen`; None when there is none, or `chosen` is uniform itself."""
    if chosen.kind == "uniform":
        return None
    rivals = [rung for rung in ladder.rungs if rung.kind == "uniform" and rung.bytes_per_token <= chosen.bytes_per_token]
    return min(rivals, key=lambda rung: (rung.kl_nats, rung.bytes_per_token), default=None)


def next_smaller(ladder: Ladder, chosen: Rung) -> Rung | None:
    """The largest measured map, of either kind, under the bytes of `chosen`; of equal bytes the one of less KL."""
    below = [rung for rung in ladder.rungs if rung.bytes_per_token < chosen.bytes_per_token]
    return max(below, key=lambda rung: (rung.bytes_per_token, -rung.kl_nats), default=None)


def _smallest_within(rungs: Sequence[Rung], gate_nats: float) -> Rung:
    within = [rung for rung in rungs if rung.kl_nats <= gate_nats]
    if within:
        return min(within, key=lambda rung: (rung.bytes_per_token, rung.kl_nats))
    best = min(rungs, key=lambda rung: rung.kl_nats, default=None)
    seen = f"the best measured loses {best.kl_nats:.4g} nats at {best.bits:.3f} bits" if best else "none was measured"
    raise BadInput(f"ladder.json: no map is within gates.kl_mean_nats {gate_nats:g}: {seen}; widen formats or change the gate")


def _provenance(rung: Rung, budget: TokenBudget) -> Provenance:
    return Provenance(
        chosen_from=rung.name,
        measured_kl_nats=max(rung.kl_nats, 0.0),
        predicted_kl_nats=rung.predicted_kl_nats,
        budget=budget.text,
    )


def _why_no_uniform(chosen: Rung) -> str:
    if chosen.kind == "uniform":
        return "the target serves only uniform pairs, so the map arm is the best uniform pair itself"
    return f"no uniform pair of at most {chosen.bytes_per_token:,} bytes per token was measured"
