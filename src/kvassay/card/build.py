"""The card from the artifacts of a run: pure, so that an approval can make it again and compare."""

from __future__ import annotations

from kvassay.capabilities import CAPABILITIES
from kvassay.card.arms import card_arms
from kvassay.card.evidence import Case, RunRecords
from kvassay.card.hardware import Surroundings
from kvassay.card.limits import limits_of
from kvassay.card.policy import judge, reasons_of, verdict_of
from kvassay.card.wording import without_paths
from kvassay.errors import BadInput
from kvassay.formats import law
from kvassay.plan.schema import Plan
from kvassay.records.card import (
    Calibration,
    Card,
    CardCorpora,
    CardModel,
    CardTarget,
    Decision,
    Envelope,
    Gate,
    OtherArm,
    Scope,
)
from kvassay.records.roadtest import CHECKS, Check

DECIDED_ARM = "map"


def build_card(records: RunRecords, plan: Plan, surroundings: Surroundings) -> Card:
    """One record of everything measured, and the decision over it; `side_files` are left to who writes the report.

    Raises BadInput when artifacts of different weights or targets lie in one run.
    """
    check_one_run(records, plan)
    scope = CAPABILITIES[plan.target].scope
    arms, arms_reason = card_arms(records)
    road = records.roadtest
    return Card(
        decision=decide(records, plan, scope),
        arms=arms,
        arms_reason=arms_reason,
        checks=card_checks(records),
        canary=records.evaluation.canary,
        model=CardModel(
            source=without_paths(records.model.source),
            source_sha256=records.model.source_sha256,
            weights_sha256=records.model.weights_sha256,
            tokenizer_sha256=records.model.tokenizer_sha256,
            model_type=records.model.model_type,
            native_dtype=records.model.native_dtype,
        ),
        map_digest=records.frozen.digest,
        target=CardTarget(name=road.target, version=road.version, build=without_paths(road.build)),
        hardware=surroundings.hardware,
        packages=surroundings.packages,
        calibration=calibration_of(records),
        corpora=CardCorpora(
            sources=len(records.corpora.sources),
            seed=records.corpora.seed,
            tokens={name: split.total_tokens for name, split in records.corpora.splits.items()},
            overlap_tokens=records.corpora.overlap_tokens,
        ),
        envelope=envelope_of(records),
        limits=limits_of(records, scope, surroundings.hardware),
        stage_seconds=surroundings.stage_seconds,
    )


def check_one_run(records: RunRecords, plan: Plan) -> None:
    """Refuse a mixture, naming the artifact that does not belong."""
    if records.frozen.model != records.model.weights_sha256:
        raise BadInput("map.json: frozen for other weights than model.json names; run freeze and the stages after it again")
    for artifact, target in (
        ("frontier.json", records.frontier.target),
        ("export.json", records.export.target),
        ("roadtest.json", records.roadtest.target),
    ):
        if target != plan.target:
            raise BadInput(f"{artifact}: made for target {target!r}, the plan names {plan.target!r}; run that stage again")


def decide(records: RunRecords, plan: Plan, scope: Scope) -> Decision:
    """The decision over the map arm; where another arm is recommended, what the same gates say of that one."""
    gates = cleaned(judge(Case(DECIDED_ARM, scope, plan.gates, plan.incumbent, records)))
    recommended = records.frozen.recommended_arm
    others = []
    if recommended == "uniform":
        other = cleaned(judge(Case(recommended, scope, plan.gates, plan.incumbent, records)))
        others.append(OtherArm(arm=recommended, verdict=verdict_of(other), reasons=reasons_of(other)))
    return Decision(
        verdict=verdict_of(gates),
        scope=scope,
        arm=DECIDED_ARM,
        reasons=reasons_of(gates),
        recommended_arm=recommended,
        recommended_reason=records.frozen.recommended_reason,
        gates=gates,
        other_arms=tuple(others),
    )


def cleaned(gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
    """The same gates without absolute paths in what an engine or check said."""
    return tuple(
        each.model_copy(update={"observed": without_paths(each.observed), "sentence": without_paths(each.sentence)}) for each in gates
    )


def card_checks(records: RunRecords) -> dict[str, Check]:
    """Every check of the contract; one that the road test does not know is not_run."""
    missing = Check(verdict="not_run", reason="the road test of this target has no such check", evidence={})
    found = {name: records.roadtest.checks.get(name, missing) for name in (*CHECKS, *records.roadtest.checks)}
    return {
        name: Check(
            verdict=check.verdict,
            reason=without_paths(check.reason),
            evidence={key: without_paths(value) if isinstance(value, str) else value for key, value in check.evidence.items()},
        )
        for name, check in found.items()
    }


def calibration_of(records: RunRecords) -> Calibration:
    """Never null: until scales are calibrated they are cast = 1.0, and the card says so."""
    cast = records.frozen.scales == "cast"
    names = {name for layer in records.frozen.layers for name in (layer.k, layer.v)}
    native_dtype = records.geometry.native_dtype
    return Calibration(
        scales=without_paths(records.frozen.scales),
        value=1.0 if cast else None,
        value_reason=None if cast else "one scale per tensor, in the named file",
        corpus="none: tensor scales are not calibrated" if cast else "scoring split",
        formats=tuple(sorted(name for name in names if law(name, native_dtype).tensor_scale)),
    )


def envelope_of(records: RunRecords) -> Envelope:
    road = records.roadtest
    heldout = records.corpora.splits["heldout"].row_tokens if records.evaluation.kl.get("map") else 0
    return Envelope(
        longest_context_tokens=max(records.evaluation.longest_context_tokens, road.longest_request_tokens),
        longest_request_tokens=road.longest_request_tokens,
        longest_kl_tokens=heldout,
        concurrency=road.concurrency,
        requests_per_arm=min((arm.requests.total for arm in road.arms.values() if arm), default=0),
        workload=without_paths(road.workload),
        workload_sha256=road.workload_sha256,
    )
