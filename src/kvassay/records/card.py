"""card.json: one record of everything measured, and one decision with its scope."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from kvassay.records.base import Fraction, Frozen, NonNegativeFloat, NonNegativeInt, Record, Sha256
from kvassay.records.probe import KLEstimator
from kvassay.records.roadtest import Check, Percentiles

Verdict = Literal["approve", "reject", "abstain"]
Scope = Literal["simulated", "reference", "engine"]


class Gate(Frozen):
    """One gate of the policy: what was expected, what was observed, and where the evidence stands."""

    name: str
    outcome: Literal["met", "missed", "undecided"]
    expected: str
    observed: str
    evidence: str


class Decision(Frozen):
    verdict: Verdict
    scope: Scope
    reasons: tuple[str, ...]
    recommended_arm: str
    gates: tuple[Gate, ...]


class CardMemory(Frozen):
    process_peak_bytes: NonNegativeInt | None
    process_peak_bytes_reason: str | None = None
    device_total_bytes: NonNegativeInt | None
    device_total_bytes_reason: str | None = None
    kv_pool_bytes: NonNegativeInt | None
    kv_pool_bytes_reason: str | None = None
    weights_bytes: NonNegativeInt | None
    weights_bytes_reason: str | None = None


class Throughput(Frozen):
    output_tokens_per_s: NonNegativeFloat
    requests_per_s: NonNegativeFloat


class DecodeRate(Frozen):
    p50: NonNegativeFloat | None
    p50_reason: str | None = None


class KLFigure(Frozen):
    mean: float
    p99: float
    estimator: KLEstimator
    top_k: NonNegativeInt | None
    positions: NonNegativeInt
    documents: NonNegativeInt
    interval_low: float
    interval_high: float


class TaskFigure(Frozen):
    score: Fraction
    n: NonNegativeInt
    sensitive: bool
    verdict: str | None
    verdict_reason: str


class CardArm(Frozen):
    """Everything measured of one arm; each null has a reason beside it."""

    formats: str
    bits: NonNegativeFloat
    payload_bytes_per_token: NonNegativeInt
    memory: CardMemory
    throughput: Throughput
    ttft_ms: Percentiles
    tpot_ms: Percentiles
    decode_tokens_per_s: DecodeRate
    kl_nats: KLFigure | None
    kl_nats_reason: str | None
    tasks: dict[str, TaskFigure]
    probe: str
    probe_reasons: tuple[str, ...]


class CardModel(Frozen):
    source: str
    source_sha256: Sha256
    weights_sha256: Sha256
    tokenizer_sha256: Sha256
    model_type: str
    native_dtype: str


class CardTarget(Frozen):
    name: str
    version: str
    build: str


class Hardware(Frozen):
    cpu: str
    cores: NonNegativeInt
    memory_bytes: NonNegativeInt
    gpu: str | None
    gpu_reason: str | None
    system: str


class Calibration(Frozen):
    scales: str
    value: float | None
    value_reason: str | None
    corpus: str


class Envelope(Frozen):
    """What was tested, computed from tested cells."""

    longest_context_tokens: NonNegativeInt
    longest_request_tokens: NonNegativeInt
    concurrency: NonNegativeInt
    requests_per_arm: NonNegativeInt


class Card(Record):
    artifact: ClassVar[str] = "card.json"
    schema_id: ClassVar[str] = "kvassay.card/1"

    decision: Decision
    arms: dict[str, CardArm | None]
    arms_reason: dict[str, str]
    checks: dict[str, Check]
    model: CardModel
    map_digest: Sha256
    target: CardTarget
    hardware: Hardware
    packages: dict[str, str]
    calibration: Calibration
    envelope: Envelope
    limits: tuple[str, ...]
    stage_seconds: dict[str, NonNegativeFloat]
    details: dict[str, Any]
