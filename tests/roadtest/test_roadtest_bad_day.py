"""The bad-day checks against stub engines that go wrong: each fault must fail its check."""

import pytest

from kvassay.plan.schema import FallbackRung
from kvassay.roadtest import trial
from kvassay.roadtest.checking import checked
from kvassay.roadtest.exhaustion import exhaustion
from kvassay.roadtest.fallback import fallback
from kvassay.roadtest.restart import restart
from kvassay.roadtest.shortage import shortage
from kvassay.roadtest.wrong_restart import wrong_restart

MAP_BYTES = 4 * 2 * 32 + 32


def short(bench):
    return shortage(bench.trace.requests, MAP_BYTES)


@pytest.mark.parametrize(("fault", "behaviour"), [("crashes", "crash"), ("waits_for_ever", "never drains")])
def test_an_engine_that_crashes_or_hangs_on_a_request_too_large_fails(replayed_bench, monkeypatch, fault, behaviour):
    monkeypatch.setattr(trial, "TRIAL_REQUEST_LIMIT_S", 0.4)
    bench = replayed_bench(fault=fault)
    check = exhaustion(bench, short(bench))
    assert check.verdict == "failed"
    assert check.evidence["behaviour"] == behaviour
    assert check.evidence["small_right_before"] == 2 and check.evidence["small_right_after"] == 0


def test_answers_that_change_after_a_refusal_fail(replayed_bench):
    bench = replayed_bench(fault="corrupts")
    check = exhaustion(bench, short(bench))
    assert check.verdict == "failed" and check.evidence["behaviour"] == "clean refusal"
    assert (check.evidence["small_right_before"], check.evidence["small_right_after"]) == (2, 0)


def test_answers_that_change_over_a_restart_fail(replayed_bench):
    bench = replayed_bench(fault="forgets")
    check = restart(bench)
    assert check.verdict == "failed" and check.reason == "only 0 of 4 greedy answers are as before"


def test_a_dirty_end_and_a_file_outside_the_export_fail_the_restart(replayed_bench, tmp_path):
    bench = replayed_bench(extra=("--holds-open", str(tmp_path / "run" / "export.json")))
    bench.ledger.add("closed", arm="map", exit_code=3, stop_s=0.1)
    check = restart(bench)
    assert check.verdict == "failed"
    assert "exit code 3" in check.reason and "export.json" in check.reason
    assert check.evidence["answers_equal"] == 4 and check.evidence["state_differences"] == 0


@pytest.mark.parametrize(("fault", "verdict"), [("unchecked", "passed"), ("lies", "failed")])
def test_a_moved_layer_is_found_by_comparison_unless_the_engine_lies(replayed_bench, fault, verdict):
    bench = replayed_bench(fault=fault)
    check = wrong_restart(bench)
    assert check.verdict == verdict, check
    assert check.evidence["moved_layer_detected"] == (verdict == "passed")


def test_the_ladder_goes_on_to_the_rung_that_serves(replayed_bench):
    rungs = (
        FallbackRung(kind="context_cap", context_tokens=150),
        FallbackRung(kind="native"),
        FallbackRung(kind="native", memory_factor=4.0),
    )
    bench = replayed_bench(fallback=rungs)
    check = fallback(bench, short(bench))
    assert check.verdict == "passed"
    # Native at the same memory holds 100 tokens of 512 bytes; four times that holds the refused 206.
    assert check.evidence["rung_1"].endswith("holds 150 tokens, the refused request needs 206; not started")
    assert "holds 101 tokens" in check.evidence["rung_2"]
    assert check.evidence["served_by"] == "native formats with 4 times the memory"
    assert check.evidence["recover_s"] > 0


def test_a_ladder_that_never_serves_fails(replayed_bench):
    bench = replayed_bench(fallback=(FallbackRung(kind="smaller_map"), FallbackRung(kind="context_cap", context_tokens=100)))
    bench.export.helpers.clear()
    check = fallback(bench, short(bench))
    assert check.verdict == "failed"
    assert check.evidence["rung_1"] == "smaller map with the same memory: not available: no smaller measured map was exported"


def test_a_server_that_does_not_start_fails_the_check(replayed_bench):
    bench = replayed_bench()
    bench.stage.run.path("export/map/map.json").unlink()
    check = checked(bench.stage.run, lambda: exhaustion(bench, short(bench)))
    assert check.verdict == "failed" and "map.json: missing" in check.reason
    assert str(bench.stage.run.folder) not in check.reason and "logs/roadtest-exhaustion.log" in check.reason
