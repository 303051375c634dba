"""The policy: what is met, missed or undecided, and that nothing unknown ever becomes an approval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvassay.card.build import build_card
from kvassay.card.evidence import Case, RunRecords
from kvassay.card.policy import check_decision, judge, reasons_of, verdict_of
from kvassay.plan.schema import Incumbent
from kvassay.records.base import Interval
from kvassay.records.card import Gate, Scope
from support import fixture_records as fixture

RECORDS = fixture.records()
APPROVABLE = fixture.approvable()


def gates_of(records: RunRecords, scope: Scope = "engine", arm: str = "map", incumbent: Incumbent | None = None) -> dict[str, Gate]:
    gates = judge(Case(arm, scope, fixture.plan().gates, incumbent, records))
    named = {gate.name: gate for gate in gates}
    assert len(named) == len(gates)
    return named


def with_task(records: RunRecords, name: str, **changes: object) -> RunRecords:
    tasks = records.evaluation.tasks | {name: records.evaluation.tasks[name].model_copy(update=changes)}
    return replace(records, evaluation=records.evaluation.model_copy(update={"tasks": tasks}))


def with_kl(records: RunRecords, arm: str = "map", **changes: object) -> RunRecords:
    served = records.evaluation.kl[arm]
    assert served is not None
    kl = records.evaluation.kl | {arm: served.model_copy(update=changes)}
    return replace(records, evaluation=records.evaluation.model_copy(update={"kl": kl}))


def with_road(records: RunRecords, **changes: object) -> RunRecords:
    driven = records.roadtest.arms["map"]
    assert driven is not None
    arms = records.roadtest.arms | {"map": driven.model_copy(update=changes)}
    return replace(records, roadtest=records.roadtest.model_copy(update={"arms": arms}))


def with_probe(records: RunRecords, **changes: object) -> RunRecords:
    arms = records.probe.arms | {"map": records.probe.arms["map"].model_copy(update=changes)}
    return replace(records, probe=records.probe.model_copy(update={"arms": arms}))


def gate(outcome: str) -> Gate:
    return Gate(name="x", outcome=outcome, expected="e", observed="o", evidence="v", sentence=f"x: {outcome}")  # type: ignore[arg-type]


@given(st.lists(st.sampled_from(["met", "missed", "undecided"]), max_size=12))
def test_only_met_gates_approve(outcomes: list[str]) -> None:
    verdict = verdict_of([gate(outcome) for outcome in outcomes])
    expected = "reject" if "missed" in outcomes else "approve" if outcomes and set(outcomes) == {"met"} else "abstain"
    assert verdict == expected


def test_missed_reasons_stand_before_undecided_ones() -> None:
    assert reasons_of([gate("undecided"), gate("met"), gate("missed")]) == ("x: missed", "x: undecided")


def test_a_perfect_run_is_approved_on_an_engine_and_never_on_the_reference_server() -> None:
    assert {each.outcome for each in gates_of(APPROVABLE).values()} == {"met"}
    assert verdict_of(list(gates_of(APPROVABLE, scope="reference").values())) == "abstain"
    undecided = [name for name, each in gates_of(APPROVABLE, scope="reference").items() if each.outcome == "undecided"]
    assert undecided == ["ttft_p90", "tpot_p90"]


def test_the_demo_abstains_for_lack_of_items() -> None:
    card = build_card(RECORDS, fixture.plan(), fixture.surroundings())
    assert card.decision.verdict == "abstain"
    assert card.decision.scope == "reference"
    assert card.decision.reasons[0] == "retrieval: 12 of 1,288 items needed to show no_worse at 2 points"
    assert check_decision(card) == 3


def test_exit_codes_of_check() -> None:
    card = build_card(RECORDS, fixture.plan(), fixture.surroundings())
    for verdict, code in (("approve", 0), ("reject", 1), ("abstain", 3)):
        decided = card.model_copy(update={"decision": card.decision.model_copy(update={"verdict": verdict})})
        assert check_decision(decided) == code


Change = Callable[[RunRecords], RunRecords]


def drop_arm_everywhere(records: RunRecords) -> RunRecords:
    return replace(records, roadtest=records.roadtest.model_copy(update={"arms": records.roadtest.arms | {"map": None}}))


def no_comparison(records: RunRecords) -> RunRecords:
    return with_task(records, "short", comparisons={})


def no_task(records: RunRecords) -> RunRecords:
    tasks = {"short": records.evaluation.tasks["short"]}
    return replace(records, evaluation=records.evaluation.model_copy(update={"tasks": tasks}))


def verdict_of_task(word: str) -> Change:
    def change(records: RunRecords) -> RunRecords:
        comparisons = records.evaluation.tasks["short"].comparisons
        return with_task(records, "short", comparisons=comparisons | {"map": comparisons["map"].model_copy(update={"verdict": word})})

    return change


def other_margin(records: RunRecords) -> RunRecords:
    comparisons = records.evaluation.tasks["short"].comparisons
    return with_task(records, "short", comparisons=comparisons | {"map": comparisons["map"].model_copy(update={"margin": 0.5})})


def unmoved_canary(records: RunRecords) -> RunRecords:
    canary = records.evaluation.canary.model_copy(update={"moved": False})
    return replace(records, evaluation=records.evaluation.model_copy(update={"canary": canary}))


def no_kl(records: RunRecords) -> RunRecords:
    kl, reason = records.evaluation.kl | {"map": None}, {"map": "the engine gives no log-probabilities"}
    return replace(records, evaluation=records.evaluation.model_copy(update={"kl": kl, "kl_reason": reason}))


def check_verdict(name: str, word: str) -> Change:
    def change(records: RunRecords) -> RunRecords:
        checks = records.roadtest.checks | {name: records.roadtest.checks[name].model_copy(update={"verdict": word})}
        return replace(records, roadtest=records.roadtest.model_copy(update={"checks": checks}))

    return change


def no_check(records: RunRecords) -> RunRecords:
    checks = {name: check for name, check in records.roadtest.checks.items() if name != "restart"}
    return replace(records, roadtest=records.roadtest.model_copy(update={"checks": checks}))


def deployment(word: str) -> Change:
    def change(records: RunRecords) -> RunRecords:
        arm = records.export.arms["map"]
        assert arm is not None
        arms = records.export.arms | {"map": arm.model_copy(update={"deployment": word})}
        return replace(records, export=records.export.model_copy(update={"arms": arms}))

    return change


def other_build(records: RunRecords) -> RunRecords:
    return replace(records, probe=records.probe.model_copy(update={"build": "another"}))


def recommend(arm: str) -> Change:
    return lambda records: replace(records, frozen=records.frozen.model_copy(update={"recommended_arm": arm}))


def no_probe(records: RunRecords) -> RunRecords:
    return replace(records, probe=records.probe.model_copy(update={"arms": {}}))


def no_p90(records: RunRecords) -> RunRecords:
    driven = records.roadtest.arms["map"]
    assert driven is not None
    none = driven.from_schedule.ttft_ms.model_copy(update={"p90": None, "p90_reason": "too few"})
    return with_road(records, from_schedule=driven.from_schedule.model_copy(update={"ttft_ms": none}))


UNKNOWN: dict[str, tuple[Change, str]] = {
    "road test missing": (drop_arm_everywhere, "requests"),
    "task not compared": (no_comparison, "short"),
    "task left out": (no_task, "retrieval"),
    "task not shown": (verdict_of_task("not_shown"), "short"),
    "task insensitive": (lambda r: with_task(r, "retrieval", sensitive=False, sensitive_reason="native is at chance"), "retrieval"),
    "task at another margin": (other_margin, "short"),
    "canary unmoved": (unmoved_canary, "canary"),
    "no KL": (no_kl, "kl_mean"),
    "no estimator": (lambda r: with_kl(r, estimator="none"), "kl_p99"),
    "KL interval straddles": (lambda r: with_kl(r, mean_interval=Interval(low=0.01, high=0.06, level=0.95)), "kl_mean"),
    "too few positions": (lambda r: with_kl(r, positions=999), "kl_p99"),
    "check not run": (check_verdict("abort", "not_run"), "abort"),
    "check unknown": (no_check, "restart"),
    "deployment unverified": (deployment("unverified"), "deployment"),
    "two builds": (other_build, "one_build"),
    "uniform recommended": (recommend("uniform"), "recommended"),
    "probe missing": (no_probe, "probe"),
    "probe unknown": (lambda r: with_probe(r, verdict="unknown"), "probe"),
    "probe degraded": (lambda r: with_probe(r, verdict="degraded"), "probe"),
    "no answer checked": (lambda r: with_road(r, answers_checked=0, answers_matched=0), "requests"),
    "no p90": (no_p90, "ttft_p90"),
}

MISSED: dict[str, tuple[Change, str]] = {
    "task worse": (verdict_of_task("worse"), "short"),
    "KL above": (lambda r: with_kl(r, mean=0.2, mean_interval=Interval(low=0.1, high=0.3, level=0.95)), "kl_mean"),
    "p99 above": (lambda r: with_kl(r, p99=0.51), "kl_p99"),
    "check failed": (check_verdict("exhaustion", "failed"), "exhaustion"),
    "deployment unsupported": (deployment("unsupported"), "deployment"),
    "native recommended": (recommend("native"), "recommended"),
    "probe broken": (lambda r: with_probe(r, verdict="broken"), "probe"),
    "probe not engaged": (lambda r: with_probe(r, verdict="not_engaged"), "probe"),
    "probe refused": (lambda r: with_probe(r, verdict="refused"), "probe"),
    "answers differ": (lambda r: with_road(r, answers_matched=7), "requests"),
    "a request failed": (
        lambda r: with_road(r, requests=r.roadtest.arms["map"].requests.model_copy(update={"ok": 39, "failed": 1})),
        "requests",
    ),  # type: ignore[union-attr]
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_unknown_is_undecided(name: str) -> None:
    change, gate_name = UNKNOWN[name]
    assert gates_of(change(APPROVABLE))[gate_name].outcome == "undecided"


@pytest.mark.parametrize("name", MISSED)
def test_what_speaks_against_it_is_missed(name: str) -> None:
    change, gate_name = MISSED[name]
    gates = gates_of(change(APPROVABLE))
    assert gates[gate_name].outcome == "missed"
    assert verdict_of(list(gates.values())) == "reject"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(UNKNOWN)), min_size=1, max_size=4, unique=True),
    st.lists(st.sampled_from(sorted(MISSED)), max_size=2, unique=True),
)
def test_nothing_unknown_ever_turns_into_a_pass(unknown: list[str], missed: list[str]) -> None:
    records = APPROVABLE
    for name in missed + [each for each in unknown if each != "road test missing"]:
        table = UNKNOWN if name in UNKNOWN else MISSED
        try:
            records = table[name][0](records)
        except (KeyError, AssertionError):
            continue
    if "road test missing" in unknown:
        records = drop_arm_everywhere(records)
    assert verdict_of(list(gates_of(records).values())) in ("abstain", "reject")


def test_speed_is_judged_on_an_engine_only() -> None:
    slow = RECORDS.roadtest.arms["map"]
    assert slow is not None
    records = replace(APPROVABLE, roadtest=APPROVABLE.roadtest.model_copy(update={"arms": APPROVABLE.roadtest.arms | {"map": slow}}))
    assert gates_of(records)["ttft_p90"].outcome == "missed"
    shown = gates_of(records, scope="reference")["ttft_p90"]
    assert shown.outcome == "undecided"
    assert shown.observed.startswith("1.31x of native (617 ms, native 471 ms)")


def test_payload_saving_by_hand() -> None:
    shown = gates_of(APPROVABLE)["payload"]
    own, native = (APPROVABLE.export.arms[name].bytes_per_token for name in ("map", "native"))  # type: ignore[union-attr]
    assert native == 30 * 3 * 2 * 64 * 2
    assert shown.observed.startswith(f"{100 * (native - own) / native:.1f} % under native")
    native_itself = gates_of(APPROVABLE, arm="native")["payload"]
    assert native_itself.outcome == "missed"


def test_uniform_with_no_more_loss_rejects_the_map() -> None:
    assert RECORDS.frozen.uniform_provenance is not None
    better = RECORDS.frozen.uniform_provenance.model_copy(update={"measured_kl_nats": 1e-5})
    frozen = APPROVABLE.frozen.model_copy(
        update={"uniform_provenance": better, "recommended_arm": "uniform", "recommended_reason": "it loses less"}
    )
    gates = gates_of(replace(APPROVABLE, frozen=frozen))
    assert gates["recommended"].outcome == "missed"
    assert "use uniform instead: it loses less" in gates["recommended"].sentence


def test_incumbent_is_a_gate_only_when_the_plan_names_one() -> None:
    named = Incumbent(k="fp8_e4m3", v="fp8_e4m3")
    assert "incumbent" not in gates_of(APPROVABLE)
    assert gates_of(APPROVABLE, incumbent=named)["incumbent"].outcome == "undecided"
    worse = APPROVABLE.evaluation.kl["map"]
    assert worse is not None
    old = worse.model_copy(update={"mean": 0.1, "mean_interval": Interval(low=0.09, high=0.11, level=0.95)})
    arm = APPROVABLE.export.arms["native"]
    measured = replace(
        APPROVABLE,
        export=APPROVABLE.export.model_copy(update={"arms": APPROVABLE.export.arms | {"incumbent": arm}}),
        evaluation=APPROVABLE.evaluation.model_copy(update={"kl": APPROVABLE.evaluation.kl | {"incumbent": old}}),
    )
    assert gates_of(measured, incumbent=named)["incumbent"].outcome == "met"
