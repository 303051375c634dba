"""roadtest.json: the workload on the running engine, and the bad day."""

from __future__ import annotations

from typing import ClassVar, Literal

from kvassay.records.base import Frozen, NonNegativeFloat, NonNegativeInt, Record, Sha256

CheckVerdict = Literal["passed", "failed", "not_run"]
CHECKS = ("exhaustion", "fallback", "restart", "wrong_restart", "abort")


class Percentiles(Frozen):
    """Milliseconds. A percentile that n cannot support is null with a reason."""

    p50: NonNegativeFloat | None
    p50_reason: str | None = None
    p90: NonNegativeFloat | None
    p90_reason: str | None = None
    p99: NonNegativeFloat | None
    p99_reason: str | None = None
    mean: NonNegativeFloat | None
    mean_reason: str | None = None
    n: NonNegativeInt


class Latencies(Frozen):
    """Latencies from one clock."""

    ttft_ms: Percentiles
    tpot_ms: Percentiles
    e2e_ms: Percentiles


class RequestCounts(Frozen):
    """total = ok + failed + empty; an answer shorter than asked counts as failed."""

    total: NonNegativeInt
    ok: NonNegativeInt
    failed: NonNegativeInt
    empty: NonNegativeInt


class Memory(Frozen):
    """Bytes. The process peak is the largest sampled PSS of the server's process tree."""

    process_peak_bytes: NonNegativeInt
    process_start_bytes: NonNegativeInt
    samples: NonNegativeInt
    device_total_bytes: NonNegativeInt | None
    device_total_bytes_reason: str | None
    kv_pool_bytes: NonNegativeInt
    kv_peak_bytes: NonNegativeInt
    weights_bytes: NonNegativeInt


class ArmRoadtest(Frozen):
    requests: RequestCounts
    from_schedule: Latencies
    from_send: Latencies
    itl_ms: Percentiles
    output_tokens: NonNegativeInt
    output_tokens_per_s: NonNegativeFloat
    requests_per_s: NonNegativeFloat
    decode_tokens_per_s_p50: NonNegativeFloat | None
    decode_tokens_per_s_p50_reason: str | None
    wall_s: NonNegativeFloat
    memory: Memory
    payload_bytes_per_token: NonNegativeInt
    capacity_tokens: NonNegativeInt
    answers_checked: NonNegativeInt
    answers_matched: NonNegativeInt
    answers_note: str


class Check(Frozen):
    """One bad-day check. `evidence` holds the observed figures and texts."""

    verdict: CheckVerdict
    reason: str
    evidence: dict[str, str | int | float | bool | None]


class Roadtest(Record):
    artifact: ClassVar[str] = "roadtest.json"
    schema_id: ClassVar[str] = "kvassay.roadtest/1"

    target: str
    version: str
    build: str
    workload: str
    workload_sha256: Sha256
    loop: Literal["closed", "open"]
    concurrency: NonNegativeInt
    warmup_requests: NonNegativeInt
    arms: dict[str, ArmRoadtest | None]
    arms_reason: dict[str, str]
    checks: dict[str, Check]
    longest_request_tokens: NonNegativeInt
    notes: tuple[str, ...] = ()
