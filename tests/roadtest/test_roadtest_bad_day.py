"""The bad-day checks against stub engines that go wrong: each fault must fail its check."""

import pytest

from kvassay.plan.schema import FallbackRung
from kvassay.roadtest import trial
from kvassay.roadtest.arm import measure_arm
from kvassay.roadtest.bad_day import failed_on_engine_error
from kvassay.roadtest.exhaustion import exhaustion
from kvassay.roadtest.fallback import fallback
from kvassay.roadtest.restart import restart
from kvassay.roadtest.shortage import shortage
from kvassay.roadtest.wrong_restart import wrong_restart

MAP_BYTES = 4 * 2 * 32 + 32


def short(bench):
    return shortage(bench.trace.requests, MAP_BYTES)


@pytest.mark.parametrize(("fault", "behaviour"), [("crashes", "crash"), ("waits_for_ever", "never drains")])
def test_an_engine_that_crashes_or_hangs_on_a_request_too_large_fails(make_bench, monkeypatch, fault, behaviour):
    monkeypatch.setattr(trial, "TRIAL_REQUEST_LIMIT_S", 1.0)
    bench = make_bench(fault=fault)
    measure_arm(bench, "map")
    check = exhaustion(bench, short(bench))
    assert check.verdict == "failed"
    assert check.evidence["behaviour"] == behaviour
    assert check.evidence["small_right_before"] == 2 and check.evidence["small_right_after"] == 0


def test_answers_that_change_after_a_refusal_fail(make_bench):
    bench = make_bench(fault="corrupts")
    measure_arm(bench, "map")
    check = exhaustion(bench, short(bench))
    assert check.verdict == "failed" and check.evidence["behaviour"] == "clean refusal"
    assert (check.evidence["small_right_before"], check.evidence["small_right_after"]) == (2, 0)


def test_answers_that_change_over_a_restart_fail(make_bench):
    bench = make_bench(fault="forgets")
    measure_arm(bench, "map")
    check = restart(bench)
    assert check.verdict == "failed" and check.reason == "only 0 of 4 greedy answers are as before"


def test_a_dirty_end_and_a_file_outside_the_export_fail_the_restart(make_bench, tmp_path):
    bench = make_bench(fault="bad_exit", extra=("--holds-open", str(tmp_path / "run" / "export.json")))
    measure_arm(bench, "map")
    check = restart(bench)
    assert check.verdict == "failed"
    assert "exit code 3" in check.reason and "export.json" in check.reason
    assert check.evidence["answers_equal"] == 4 and check.evidence["state_differences"] == 0


@pytest.mark.parametrize(("fault", "verdict"), [("unchecked", "passed"), ("lies", "failed")])
def test_a_moved_layer_is_found_by_comparison_unless_the_engine_lies(make_bench, fault, verdict):
    bench = make_bench(fault=fault)
    for name in ("uniform", "map"):
        measure_arm(bench, name)
    bench.export.arms.pop("native")
    check = wrong_restart(bench)
    assert check.verdict == verdict, check
    assert check.evidence["moved_layer_detected"] == (verdict == "passed")


def test_the_ladder_goes_on_to_the_rung_that_serves(make_bench):
    rungs = (
        FallbackRung(kind="context_cap", context_tokens=150),
        FallbackRung(kind="native"),
        FallbackRung(kind="native", memory_factor=4.0),
    )
    bench = make_bench(fallback=rungs)
    measure_arm(bench, "native")
    check = fallback(bench, short(bench))
    assert check.verdict == "passed"
    # Native at the same memory holds 100 tokens of 512 bytes; four times that holds the refused 206.
    assert "request 3 not served" in check.evidence["rung_1"] and "150 are available" in check.evidence["rung_1"]
    assert "101 are available" in check.evidence["rung_2"]
    assert check.evidence["served_by"] == "native formats with 4 times the memory"
    assert check.evidence["recover_s"] > 0


def test_a_ladder_that_never_serves_fails(make_bench):
    bench = make_bench(fallback=(FallbackRung(kind="smaller_map"), FallbackRung(kind="context_cap", context_tokens=100)))
    bench.export.helpers.clear()
    check = fallback(bench, short(bench))
    assert check.verdict == "failed"
    assert check.evidence["rung_1"] == "smaller map with the same memory: not available: no smaller measured map was exported"


def test_a_server_that_does_not_start_fails_the_check(make_bench):
    bench = make_bench()
    bench.stage.run.path("export/map/map.json").unlink()
    bench.ledger.add("request", **good_row())
    check = failed_on_engine_error(lambda: exhaustion(bench, short(bench)))
    assert check.verdict == "failed" and "map.json" in check.reason


def good_row():
    """A finished request row of the map arm, as the replay writes it."""
    memory = {"peak_bytes": 1, "start_bytes": 1, "samples": 1, "measure": "pss"}
    times = {
        "scheduled_s": 0,
        "sent_s": 0,
        "first_s": 1,
        "last_s": 2,
        "done_s": 2,
        "token_times_s": [1, 2],
        "ttft_ms": 1,
        "tpot_ms": 1,
        "e2e_ms": 2,
    }
    sizes = {"request": 1, "segment": 0, "input_tokens": 20, "asked_tokens": 3, "output_tokens": 3}
    rest = {"outcome": "ok", "error": None, "why_null": None, "answer_sha256": "0" * 64, "memory": memory, "kv_peak_bytes": None}
    return {"arm": "map"} | sizes | times | rest
