"""One arm on the stub engine: interruption, death of the server, a leak after dropped streams."""

import json
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from kvassay.errors import DamagedArtifact, EngineError
from kvassay.roadtest import abort as abort_module
from kvassay.roadtest import arm as arm_module
from kvassay.roadtest.bench import open_bench
from kvassay.roadtest.figures import arm_figures


def measure_arm(bench, name):
    nothing_before = Future()
    nothing_before.set_result(None)
    with ThreadPoolExecutor(1) as background:
        arm_module.measure_arm(bench, name, background, nothing_before).result()


def rows_of(bench, kind):
    lines = bench.stage.run.path("requests.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines[1:]) if row["kind"] == kind]


def test_an_interrupted_replay_loses_and_repeats_nothing(make_stage, monkeypatch):
    stage = make_stage()
    bench = open_bench(stage)
    original = arm_module.replay

    async def interrupted(bench, arm, indexes, *rest):
        await original(bench, arm, indexes[:4], *rest)
        raise KeyboardInterrupt

    monkeypatch.setattr(arm_module, "replay", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measure_arm(bench, "uniform")
    path = stage.run.path("requests.jsonl")
    path.write_bytes(path.read_bytes() + b'{"kind":"request","arm":"uni')
    monkeypatch.setattr(arm_module, "replay", original)
    bench = open_bench(stage)
    with pytest.raises(DamagedArtifact, match="not complete"):
        arm_figures(bench.ledger, "uniform")
    measure_arm(bench, "uniform")

    requests = rows_of(bench, "request")
    assert [(row["request"], row["segment"]) for row in requests] == [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (5, 1)]
    figures = arm_figures(bench.ledger, "uniform")
    assert figures.requests.ok == 6
    walls = [row["done_s"] - row["scheduled_s"] for row in (requests[3], requests[5])]
    assert figures.wall_s > sum(walls)
    assert figures.wall_s == pytest.approx(requests[3]["done_s"] + requests[5]["done_s"], abs=0.02)
    # The largest request was served by the first server; the second never saw it.
    assert figures.memory.kv_peak_bytes == 206 * 4 * 2 * 32


def test_a_server_that_dies_in_the_replay_is_named_and_its_request_counts_as_failed(make_bench):
    bench = make_bench(fault="crashes", extra=("--max-context-tokens", "100"))
    with pytest.raises(EngineError, match=r"arm native: the server died at request 3"):
        measure_arm(bench, "native")
    assert [row["outcome"] for row in rows_of(bench, "request")] == ["ok", "ok", "ok", "failed"]


def test_cache_left_behind_by_dropped_streams_fails_the_abort_check(make_bench, monkeypatch):
    monkeypatch.setattr(abort_module, "SETTLE_LIMIT_S", 0.5)
    bench = make_bench(fault="leaks")
    measure_arm(bench, "map")
    check = bench.ledger.check("abort")
    assert check.verdict == "failed" and "still held" in check.reason
    assert check.evidence["dropped_after_first_token"] == 4
    assert check.evidence["held_bytes_after"] > check.evidence["idle_bytes"] == 0


def test_another_trace_does_not_go_on_with_old_rows(make_stage):
    stage = make_stage()
    bench = open_bench(stage)
    bench.ledger.add("memory", arm="native")
    trace = stage.plan.workload.trace
    trace.write_text(trace.read_text().replace('"input_tokens": 40', '"input_tokens": 41'))
    with pytest.raises(DamagedArtifact, match="rows of another"):
        open_bench(stage)
