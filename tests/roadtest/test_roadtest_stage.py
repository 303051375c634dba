"""The whole stage against the stub engine, where everything is as it should be."""

import json

from kvassay.records import Roadtest
from kvassay.roadtest.stage import roadtest


def test_a_good_engine_passes_and_a_finished_stage_starts_nothing_again(make_stage, monkeypatch):
    stage = make_stage()
    record = roadtest(stage)
    assert {name: check.verdict for name, check in record.checks.items()} == dict.fromkeys(record.checks, "passed"), record.checks
    assert record.arms["incumbent"] is None and record.arms_reason["incumbent"]
    for name in ("native", "uniform", "map"):
        arm = record.arms[name]
        assert arm.requests.model_dump() == {"total": 6, "ok": 6, "failed": 0, "empty": 0}
        assert arm.output_tokens == 4 + 3 + 5 + 6 + 4 + 3
        assert (arm.answers_checked, arm.answers_matched) == (3, 3)
        assert arm.from_send.ttft_ms.p99 is None and arm.from_send.ttft_ms.p99_reason
        assert arm.from_send.ttft_ms.n == 6
        # The stub waits 3 ms before each token.
        assert arm.from_send.tpot_ms.p50 > 2.0 and arm.from_schedule.ttft_ms.p50 >= arm.from_send.ttft_ms.p50
        assert arm.memory.process_peak_bytes >= arm.memory.process_start_bytes > 0
    assert record.arms["native"].payload_bytes_per_token == 4 * 2 * 32 * 2
    assert record.arms["map"].payload_bytes_per_token == 4 * 2 * 32 + 32
    assert record.arms["map"].memory.kv_peak_bytes == 206 * (4 * 2 * 32 + 32)
    assert record.arms["map"].capacity_tokens == 1_000_000 // 288
    assert record.longest_request_tokens == 206
    assert record.checks["fallback"].evidence["served_by"] == "smaller map with the same memory"
    assert record.checks["exhaustion"].evidence["capacity_tokens"] == 206 * 7 // 8
    assert record.checks["wrong_restart"].evidence["other_arms_detected"] == 2
    assert Roadtest.model_validate(record.model_dump()) == record
    assert not stage.run.path("roadtest.tmp").exists()
    assert str(stage.run.folder) not in json.dumps(record.model_dump(mode="json"))

    def start_nothing(*args, **settings):
        raise AssertionError("a finished road test started a server")

    before = stage.run.path("requests.jsonl").read_bytes()
    monkeypatch.setattr("kvassay.roadtest.arm.start_arm", start_nothing)
    monkeypatch.setattr("kvassay.roadtest.trial.start_arm", start_nothing)
    assert roadtest(stage) == record
    assert stage.run.path("requests.jsonl").read_bytes() == before
