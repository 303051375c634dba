"""Gates on the choice itself: can the arm be deployed, is it engaged as predicted, and is it better than the simpler ways."""

from __future__ import annotations

from kvassay.card.evidence import Case, gate
from kvassay.card.wording import interval, nats, ratio, whole_bytes
from kvassay.records.card import Gate, Outcome

DEPLOYMENT_OUTCOMES: dict[str, Outcome] = {"supported": "met", "unsupported": "missed", "unverified": "undecided"}

# `degraded` is engaged but loses more or less than its formats should. The loss that was served is judged by the KL and task
# gates; what `degraded` takes away is the ground of the choice, for the search priced other arithmetic. So nothing is shown.
PROBE_OUTCOMES: dict[str, Outcome] = {
    "conforms": "met",
    "degraded": "undecided",
    "broken": "missed",
    "not_engaged": "missed",
    "refused": "missed",
    "unknown": "undecided",
}


def choice_gates(case: Case) -> list[Gate]:
    return [deployment_gate(case), build_gate(case), probe_gate(case), uniform_gate(case), *incumbent_gates(case)]


def deployment_gate(case: Case) -> Gate:
    evidence = f"export.json arms.{case.arm}.deployment"
    arm = case.records.export.arms.get(case.arm)
    if arm is None:
        reason = case.records.export.arms_reason.get(case.arm, "no reason recorded")
        return gate("deployment", "undecided", "supported", "not exported", evidence, f"arm {case.arm} does not exist: {reason}")
    why = f"{arm.deployment}: {'; '.join(arm.reasons)}" if arm.reasons else None
    return gate("deployment", DEPLOYMENT_OUTCOMES[arm.deployment], "supported", arm.deployment, evidence, why)


def build_gate(case: Case) -> Gate:
    """Evidence from two builds of an engine is evidence about neither."""
    probe, road = case.records.probe, case.records.roadtest
    seen = {(each.target, each.version, each.build) for each in (probe, road)}
    expected, evidence = "probe and road test saw one engine build", "probe.json, roadtest.json version and build"
    if len(seen) == 1:
        return gate("one_build", "met", expected, f"{road.target} {road.version}, build {road.build}", evidence)
    observed = f"probe: {probe.target} {probe.version} {probe.build}; road test: {road.target} {road.version} {road.build}"
    return gate("one_build", "undecided", expected, observed, evidence)


def probe_gate(case: Case) -> Gate:
    expected = "conforms: served KL within 1.5x of predicted, formats and capacity as asked"
    evidence = f"probe.json arms.{case.arm}"
    probed = case.records.probe.arms.get(case.arm)
    if probed is None:
        return gate("probe", "undecided", expected, "not probed", evidence, f"arm {case.arm} was not probed")
    observed = probed.verdict if probed.ratio is None else f"{probed.verdict}, served {ratio(probed.ratio)} of predicted"
    why = f"{observed}: {'; '.join(probed.reasons)}" if probed.reasons else None
    return gate("probe", PROBE_OUTCOMES[probed.verdict], expected, observed, evidence, why)


def uniform_gate(case: Case) -> Gate:
    """The map must beat the best uniform pair at no more bytes; where it does not, uniform is recommended instead."""
    frozen = case.records.frozen
    expected, evidence = "this arm is the one recommended", "map.json recommended_arm, ladder.json rungs"
    if frozen.uniform_provenance is None:
        observed = f"{frozen.recommended_arm} is recommended; {frozen.uniform_reason or 'no uniform pair was measured'}"
    else:
        own, uniform = frozen.provenance.measured_kl_nats, frozen.uniform_provenance.measured_kl_nats
        observed = (
            f"{frozen.recommended_arm} is recommended (measured KL: map {nats(own)}, best uniform pair at no more bytes {nats(uniform)})"
        )
    if frozen.recommended_arm == case.arm:
        return gate("recommended", "met", expected, observed, evidence)
    why = f"use {frozen.recommended_arm} instead: {frozen.recommended_reason}"
    loses = frozen.uniform_provenance is not None and frozen.uniform_provenance.measured_kl_nats <= frozen.provenance.measured_kl_nats
    shown_against = frozen.recommended_arm == "native" or (frozen.recommended_arm == "uniform" and loses)
    return gate("recommended", "missed" if shown_against else "undecided", expected, observed, evidence, why)


def incumbent_gates(case: Case) -> list[Gate]:
    """None when the plan names no incumbent. Better on both bytes and served KL is met, worse on both is missed."""
    if case.incumbent is None:
        return []
    name = f"{case.incumbent.k}/{case.incumbent.v}"
    expected, evidence = (
        f"smaller and closer to native than the incumbent {name}",
        "export.json arms.incumbent, evaluation.json kl.incumbent",
    )
    own, old = case.records.export.arms.get(case.arm), case.records.export.arms.get("incumbent")
    own_kl, old_kl = case.records.evaluation.kl.get(case.arm), case.records.evaluation.kl.get("incumbent")
    if own is None or old is None or own_kl is None or old_kl is None:
        return [
            gate("incumbent", "undecided", expected, "not measured", evidence, f"the incumbent {name} was not measured beside this arm")
        ]
    observed = (
        f"{whole_bytes(own.bytes_per_token)} per token and KL {interval(own_kl.mean_interval)}, "
        f"incumbent {whole_bytes(old.bytes_per_token)} and {interval(old_kl.mean_interval)}"
    )
    smaller = own.bytes_per_token <= old.bytes_per_token
    closer, further = own_kl.mean_interval.high < old_kl.mean_interval.low, own_kl.mean_interval.low > old_kl.mean_interval.high
    outcome: Outcome = "met" if smaller and closer else "missed" if further and own.bytes_per_token >= old.bytes_per_token else "undecided"
    return [gate("incumbent", outcome, expected, observed, evidence)]
