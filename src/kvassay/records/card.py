"""card.json: one record of everything measured, and one decision with its scope."""

from __future__ import annotations

from typing import ClassVar, Literal

from kvassay.records.base import Fraction, Frozen, Interval, NonNegativeFloat, NonNegativeInt, Record, Sha256
from kvassay.records.evaluation import Canary, Comparison
from kvassay.records.export import Deployment
from kvassay.records.probe import KLEstimator, ProbeVerdict
from kvassay.records.roadtest import Check, Percentiles, RequestCounts

Verdict = Literal["approve", "reject", "abstain"]
Scope = Literal["simulated", "reference", "engine"]
Outcome = Literal["met", "missed", "undecided"]
Basis = Literal["modelled", "measured", "served"]


class Gate(Frozen):
    """One gate of the policy: expected, observed, where the evidence stands, and one plain sentence for the reader."""

    name: str
    outcome: Outcome
    expected: str
    observed: str
    evidence: str
    sentence: str


class OtherArm(Frozen):
    """What the same gates say of an arm that the decision is not about."""

    arm: str
    verdict: Verdict
    reasons: tuple[str, ...]


class Decision(Frozen):
    """About `arm` alone. `reasons` are the sentences of every missed gate, then of every undecided one."""

    verdict: Verdict
    scope: Scope
    arm: str
    reasons: tuple[str, ...]
    recommended_arm: str
    recommended_reason: str
    gates: tuple[Gate, ...]
    other_arms: tuple[OtherArm, ...]


class CardMemory(Frozen):
    """Bytes while the workload ran. The process peak is sampled; the pool is what the engine set aside for the cache."""

    process_peak_bytes: NonNegativeInt
    device_total_bytes: NonNegativeInt | None
    device_total_bytes_reason: str | None
    kv_pool_bytes: NonNegativeInt
    kv_peak_bytes: NonNegativeInt
    weights_bytes: NonNegativeInt


class Throughput(Frozen):
    output_tokens_per_s: NonNegativeFloat
    requests_per_s: NonNegativeFloat


class DecodeRate(Frozen):
    p50: NonNegativeFloat | None
    p50_reason: str | None


class KLFigure(Frozen):
    """Forward KL from native through the served cache, nats per scored token; the interval is over documents."""

    mean: float
    mean_interval: Interval
    p99: float
    estimator: KLEstimator
    top_k: NonNegativeInt | None
    top_k_reason: str | None
    positions: NonNegativeInt
    documents: NonNegativeInt
    top1_agreement: Fraction


class TaskFigure(Frozen):
    """One task of one arm; `comparison` is with native on the same items."""

    score: Fraction
    n: NonNegativeInt
    sensitive: bool
    sensitive_reason: str
    comparison: Comparison | None
    comparison_reason: str | None
    look: NonNegativeInt


class ArmProbeFigure(Frozen):
    """Is the arm engaged in the running server, and does it lose what was predicted."""

    verdict: ProbeVerdict
    reasons: tuple[str, ...]
    bytes_per_token_measured: float | None
    bytes_per_token_measured_reason: str | None
    ratio: float | None
    ratio_reason: str | None


class CardArm(Frozen):
    """Everything measured of one arm. `payload_saving` = 1 - bytes per token / native bytes per token.

    KL three times: predicted by the search, measured in process on the choice split, served on held-out text (`kl_nats`).
    """

    formats: str
    bits: NonNegativeFloat
    map_digest: Sha256
    deployment: Deployment
    deployment_reasons: tuple[str, ...]
    command: tuple[str, ...]
    payload_bytes_per_token: NonNegativeInt
    payload_saving: float
    capacity_tokens: NonNegativeInt
    memory: CardMemory
    throughput: Throughput
    ttft_ms: Percentiles
    tpot_ms: Percentiles
    decode_tokens_per_s: DecodeRate
    requests: RequestCounts
    answers_checked: NonNegativeInt
    answers_matched: NonNegativeInt
    answers_note: str
    predicted_kl_nats: float | None
    predicted_kl_nats_reason: str | None
    measured_kl_nats: float | None
    measured_kl_nats_reason: str | None
    kl_nats: KLFigure | None
    kl_nats_reason: str | None
    tasks: dict[str, TaskFigure]
    probe: ArmProbeFigure | None
    probe_reason: str | None


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
    """Where the card was made; `gpu` is named when the system has a driver for one."""

    cpu: str
    cores: NonNegativeInt
    memory_bytes: NonNegativeInt
    gpu: str | None
    gpu_reason: str | None
    system: str


class Calibration(Frozen):
    """Tensor scales of the map. `formats` are those of the map that use them."""

    scales: str
    value: float | None
    value_reason: str | None
    corpus: str
    formats: tuple[str, ...]


class CardCorpora(Frozen):
    """Which text, by number and digest, never by content."""

    sources: NonNegativeInt
    seed: int
    tokens: dict[str, NonNegativeInt]
    overlap_tokens: NonNegativeInt


class Envelope(Frozen):
    """What was tested, computed from tested cells."""

    longest_context_tokens: NonNegativeInt
    longest_request_tokens: NonNegativeInt
    longest_kl_tokens: NonNegativeInt
    concurrency: NonNegativeInt
    requests_per_arm: NonNegativeInt
    workload: str
    workload_sha256: Sha256


class Limit(Frozen):
    """What figures cannot say. `figures` are keys of an arm; `sample` is n and interval; `excludes` is what is not in them."""

    figures: tuple[str, ...]
    basis: Basis
    sample: str
    excludes: str
    build: str
    hardware: str
    longest_context_tokens: NonNegativeInt | None
    longest_context_tokens_reason: str | None


class Card(Record):
    artifact: ClassVar[str] = "card.json"
    schema_id: ClassVar[str] = "kvassay.card/1"

    decision: Decision
    arms: dict[str, CardArm | None]
    arms_reason: dict[str, str]
    checks: dict[str, Check]
    canary: Canary
    model: CardModel
    map_digest: Sha256
    target: CardTarget
    hardware: Hardware
    packages: dict[str, str]
    calibration: Calibration
    corpora: CardCorpora
    envelope: Envelope
    limits: tuple[Limit, ...]
    stage_seconds: dict[str, NonNegativeFloat]
