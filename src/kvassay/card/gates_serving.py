"""Gates on how the arm serves: bytes, speed, requests that went wrong, and the bad-day checks."""

from __future__ import annotations

from kvassay.card.evidence import Case, gate
from kvassay.card.wording import count, milliseconds, percent, ratio, whole_bytes
from kvassay.records.card import Gate, Outcome
from kvassay.records.roadtest import ArmRoadtest

CHECK_OUTCOMES: dict[str, Outcome] = {"passed": "met", "failed": "missed", "not_run": "undecided"}


def serving_gates(case: Case) -> list[Gate]:
    return [payload_gate(case), speed_gate(case, "ttft"), speed_gate(case, "tpot"), requests_gate(case), *check_gates(case)]


def payload_gate(case: Case) -> Gate:
    wanted = case.gates.payload_saving
    expected = f"at least {percent(wanted)} under native"
    evidence = f"export.json arms.{case.arm}.bytes_per_token"
    arm, native = case.records.export.arms.get(case.arm), case.records.export.arms.get("native")
    if arm is None or native is None or native.bytes_per_token == 0:
        return gate("payload", "undecided", expected, "not exported", evidence)
    saving = 1 - arm.bytes_per_token / native.bytes_per_token
    observed = f"{percent(saving)} under native ({whole_bytes(arm.bytes_per_token)} of {whole_bytes(native.bytes_per_token)} per token)"
    return gate("payload", "met" if saving >= wanted else "missed", expected, observed, evidence)


def speed_gate(case: Case, kind: str) -> Gate:
    """p90 against native's. Only a production engine's own speed decides: that of another server is shown, not judged."""
    name = f"{kind}_p90"
    limit = case.gates.ttft_p90_ratio if kind == "ttft" else case.gates.tpot_p90_ratio
    expected = f"at most {ratio(limit)} of native"
    evidence = f"roadtest.json arms.{case.arm}.from_schedule.{kind}_ms.p90"
    arm, native = case.records.roadtest.arms.get(case.arm), case.records.roadtest.arms.get("native")
    if arm is None or native is None:
        return gate(name, "undecided", expected, "not measured", evidence, missing_arm(case))
    own, base = p90(arm, kind), p90(native, kind)
    if own is None or not base:
        return gate(name, "undecided", expected, "not measured", evidence, f"{arm.requests.total} requests give no 90th percentile")
    observed = f"{ratio(own / base)} of native ({milliseconds(own)}, native {milliseconds(base)})"
    if case.scope != "engine":
        why = f"{observed} on the {case.scope} server, which is no evidence about a production engine"
        return gate(name, "undecided", expected, observed, evidence, why)
    return gate(name, "met" if own / base <= limit else "missed", expected, observed, evidence)


def p90(arm: ArmRoadtest, kind: str) -> float | None:
    return (arm.from_schedule.ttft_ms if kind == "ttft" else arm.from_schedule.tpot_ms).p90


def requests_gate(case: Case) -> Gate:
    """A failed, empty or altered answer under plain load is corruption, whatever the mean quality says."""
    expected = "every request answered in full, every repeated answer the same"
    evidence = f"roadtest.json arms.{case.arm}.requests"
    arm = case.records.roadtest.arms.get(case.arm)
    if arm is None:
        return gate("requests", "undecided", expected, "not run", evidence, missing_arm(case))
    counts = arm.requests
    same = f"{arm.answers_matched} of {arm.answers_checked} answers the same"
    observed = f"{counts.ok} of {counts.total} answered, {counts.failed} failed, {counts.empty} empty; {same}"
    if counts.failed or counts.empty or arm.answers_matched < arm.answers_checked:
        return gate("requests", "missed", expected, observed, evidence)
    if counts.ok == 0 or counts.ok < counts.total:
        return gate("requests", "undecided", expected, observed, evidence, "no request is known to be answered")
    if arm.answers_checked == 0:
        return gate(
            "requests", "undecided", expected, observed, evidence, f"{count(counts.total, 'request')} answered, but no answer was checked"
        )
    return gate("requests", "met", expected, observed, evidence)


def check_gates(case: Case) -> list[Gate]:
    gates = []
    for name in case.gates.checks:
        check = case.records.roadtest.checks.get(name)
        evidence = f"roadtest.json checks.{name}"
        if check is None:
            gates.append(gate(name, "undecided", "passed", "not_run", evidence, "not_run, the road test of this target has no such check"))
        else:
            why = f"{check.verdict}, {check.reason}" if check.reason else None
            gates.append(gate(name, CHECK_OUTCOMES[check.verdict], "passed", check.verdict, evidence, why))
    return gates


def missing_arm(case: Case) -> str:
    return f"arm {case.arm} or native has no road test: {case.records.roadtest.arms_reason.get(case.arm, 'no reason recorded')}"
