"""From rows to the record, without asking anything."""

from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace

import pytest

from kvassay.errors import BadInput, DamagedArtifact, EngineError
from kvassay.evaluation.bench import refuse_quantized_baseline
from kvassay.evaluation.canary import judge_canary
from kvassay.evaluation.results import arm_verdict, served_kl, task_result
from kvassay.evaluation.rows import ITEM_ROWS, KL_ROWS, Ledger
from kvassay.evaluation.sitting import sitting
from kvassay.evaluation.stage import judge
from kvassay.progress import Silent
from kvassay.records.evaluation import Evaluation
from kvassay.records.export import Export
from support.fake_arms import FakeClient, arm, clients


@pytest.fixture
def filled(bench, run):
    def fill(**changes):
        ledger = Ledger(run, "k", bench.items)
        asyncio.run(sitting(clients(**changes), bench, ledger, 20, Silent()))
        return ledger

    return fill


def test_task_result_by_hand(bench, filled):
    result = task_result(bench.tasks["retrieval"], filled(), bench.compared, chance=0.0, margin=0.02)
    # uniform answers item 3 of each of three lengths wrongly.
    assert result.scores == {"native": 1.0, "uniform": 21 / 24, "map": 1.0}
    assert (result.n, result.canary_score, result.sensitive) == (24, 0.0, True)
    assert result.by_length["9"] == {"native": 1.0, "uniform": 7 / 8, "map": 1.0}
    uniform, the_map = result.comparisons["uniform"], result.comparisons["map"]
    assert (uniform.right_to_wrong, uniform.wrong_to_right, uniform.n, uniform.verdict) == (3, 0, 24, "worse")
    # The score statistic at no difference is −3 ÷ √3 = −1.73, beyond −1.645; the exact test does not see it.
    assert uniform.interval.high < 0
    assert uniform.difference_detected is False
    assert uniform.difference == pytest.approx(-0.125)
    assert uniform.mcnemar_p == 0.25
    # 3 of 24 differ: 6.182557 · 0.125 / 0.0004
    assert uniform.items_needed == 1932
    assert (the_map.verdict, the_map.items_needed) == ("not_shown", 133)
    # Even items end by length in the fake.
    assert result.truncated == {"native": 12, "uniform": 12, "map": 12}
    assert set(result.failed.values()) == set(result.empty.values()) == {0}


def test_failed_empty_and_native_failures(bench, filled):
    ledger = filled(
        native=FakeClient(failing={5}), map=FakeClient(p=0.58, failing={1, 2}, empty={4}), uniform=FakeClient(p=0.55, wrong={5})
    )
    result = task_result(bench.tasks["retrieval"], ledger, bench.compared, 0.0, 0.02)
    assert (result.failed, result.empty) == ({"native": 3, "uniform": 0, "map": 6}, {"native": 0, "uniform": 0, "map": 3})
    comparison = result.comparisons["map"]
    assert (comparison.n, comparison.right_to_wrong) == (21, 9)
    assert "3 items left out because native failed" in comparison.reason
    assert result.comparisons["uniform"].right_to_wrong == 0
    assert result.scores["native"] == 21 / 24


def test_a_collapsed_arm_is_worse_and_named_broken(bench, filled):
    ledger = filled(map=FakeClient(p=0.1, wrong={*range(8)}))
    result = task_result(bench.tasks["retrieval"], ledger, bench.compared, 0.0, 0.02)
    assert result.comparisons["map"].verdict == "worse"
    assert "broken" in result.comparisons["map"].reason


def test_a_task_that_the_canary_does_not_move_shows_nothing(bench, filled):
    ledger = filled(canary=FakeClient(p=0.1, wrong={*range(100, 116)}))
    result = task_result(bench.tasks["retrieval"], ledger, bench.compared, 0.0, 0.02)
    assert not result.sensitive
    assert {comparison.verdict for comparison in result.comparisons.values()} == {"not_shown"}
    assert task_result(bench.tasks["short"], ledger, bench.compared, 0.0, 0.02).sensitive


def test_pooled_over_tasks_is_the_worst_and_a_missing_comparison_shows_nothing(bench, filled):
    ledger = filled(map=FakeClient(p=0.1, wrong={*range(8)}))
    tasks = {name: task_result(items, ledger, bench.compared, 0.0, 0.02) for name, items in bench.tasks.items()}
    assert arm_verdict(tasks, "map") == "worse"
    assert arm_verdict(tasks, "uniform") == "worse"
    assert arm_verdict({"short": tasks["short"]}, "uniform") == "not_shown"
    assert arm_verdict(tasks, "lever:none") == "not_shown"


def test_served_kl_by_hand(bench, filled):
    found, why = served_kl(filled(), "uniform", bench.documents, 20, seed=0)
    expected = 0.6 * math.log(0.6 / 0.55) + 0.4 * math.log(0.4 / 0.45)
    assert why is None
    assert found.mean == pytest.approx(expected, abs=1e-6)
    assert (found.positions, found.documents, found.top_k, found.top1_agreement) == (30, 6, 20, 1.0)


def test_served_kl_missing_has_a_reason(bench, filled):
    found, why = served_kl(filled(map=FakeClient(no_logprobs=True)), "map", bench.documents, 20, seed=0)
    assert found is None
    assert "6 of 6 documents" in why


def test_canary_record(bench, filled):
    ledger = filled(native=FakeClient(rounding=0.001))
    canary = judge_canary(ledger, bench.documents, list(bench.tasks.values()), "int2_g64")
    assert canary.moved
    assert canary.kl_nats == pytest.approx(0.6 * math.log(6) + 0.4 * math.log(0.4 / 0.9), abs=1e-6)
    assert 0 < canary.noise_nats < 1e-5
    # Every one of its 16 + 16 answers differs from native's.
    assert (canary.answers, canary.answers_changed) == (32, 32)


def test_a_canary_without_any_measurement_is_no_canary(bench, run):
    with pytest.raises(EngineError, match="cannot be told"):
        judge_canary(Ledger(run, "k", bench.items), bench.documents, [], "int2_g64")


@pytest.fixture
def stage(run):
    record = Export(
        target="transformers",
        arms={"native": arm("native"), "incumbent": None, "uniform": arm("uniform"), "map": arm("map")},
        arms_reason={"incumbent": "the plan names none"},
        helpers={},
    )
    run.write(record, {}, "ab" * 32)
    plan = SimpleNamespace(
        gates=SimpleNamespace(quality_margin=0.02),
        tasks=SimpleNamespace(served_kl=SimpleNamespace(top_k=20)),
        seeds=SimpleNamespace(tasks=1, bootstrap=2),
    )
    return SimpleNamespace(run=run, plan=plan, key="k", progress=Silent())


def test_the_whole_record(bench, filled, stage):
    found = judge(stage, bench, filled(), {})
    assert found.arms == ("native", "uniform", "map")
    assert found.verdict == {"uniform": "worse", "map": "not_shown"}
    assert found.kl["map"].mean > 0
    assert {arm: found.kl_reason[arm] for arm in found.kl if found.kl[arm] is None}.keys() == {"native", "incumbent"}
    # 12 prompt tokens and the 2 that were generated.
    assert found.longest_context_tokens == 14
    assert found.seeds == {"tasks": 1, "bootstrap": 2}
    assert {side.path for side in found.side_files} == {ITEM_ROWS, KL_ROWS}
    stage.run.write(found, {}, "ab" * 32)
    assert stage.run.read(Evaluation) == found
    # The same rows give the same record.
    assert judge(stage, bench, Ledger(stage.run, "k", bench.items), {}) == found


def test_an_arm_that_did_not_start_shows_nothing_and_says_why(bench, run, stage):
    ledger = Ledger(run, "k", bench.items)
    without = {name: client for name, client in clients().items() if name != "uniform"}
    asyncio.run(sitting(without, bench, ledger, 20, Silent()))
    found = judge(stage, bench, ledger, {"uniform": "out of memory"})
    assert found.arms == ("native", "map")
    assert found.verdict["uniform"] == "not_shown"
    assert found.kl["uniform"] is None
    assert "out of memory" in found.kl_reason["uniform"]
    with pytest.raises(DamagedArtifact, match="answers are missing"):
        judge(stage, bench, ledger, {})


def test_a_baseline_that_is_not_native_is_refused(run, monkeypatch):
    from kvassay.evaluation import bench as module

    def exported(pair):
        layer = SimpleNamespace(k=pair, v=pair)
        monkeypatch.setattr(module, "read_export", lambda folder: (SimpleNamespace(layers=(layer,)), None))

    def probed(match):
        return SimpleNamespace(arms={"native": SimpleNamespace(formats_match=match)})

    exported("native")
    refuse_quantized_baseline(run, arm("native"), probed(True))
    for match in (False, None):
        with pytest.raises(BadInput, match="did not show a native cache"):
            refuse_quantized_baseline(run, arm("native"), probed(match))
    exported("fp8_e4m3")
    with pytest.raises(BadInput, match="not applicable"):
        refuse_quantized_baseline(run, arm("native"), probed(True))
