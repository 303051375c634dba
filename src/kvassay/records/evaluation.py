"""evaluation.json: held-out tasks, all arms, paired with native."""

from __future__ import annotations

from typing import ClassVar, Literal

from kvassay.records.base import Fraction, Frozen, Interval, NonNegativeInt, Record, Sha256
from kvassay.records.probe import KLEstimator

ComparisonVerdict = Literal["no_worse", "worse", "not_shown"]


class Comparison(Frozen):
    """Arm b against baseline a on the same items; `difference` = b - a as a fraction, Tango score interval."""

    n: NonNegativeInt
    a: Fraction
    b: Fraction
    right_to_wrong: NonNegativeInt
    wrong_to_right: NonNegativeInt
    difference: float
    interval: Interval
    mcnemar_p: Fraction
    difference_detected: bool
    margin: Fraction
    verdict: ComparisonVerdict
    items_needed: NonNegativeInt
    reason: str


class TaskResult(Frozen):
    """One task: score per arm, whether native and canary show that the task can judge, comparisons with native."""

    n: NonNegativeInt
    prompts_sha256: Sha256
    scores: dict[str, Fraction]
    chance: Fraction
    canary_score: Fraction | None
    sensitive: bool
    sensitive_reason: str
    comparisons: dict[str, Comparison]
    failed: dict[str, NonNegativeInt]
    empty: dict[str, NonNegativeInt]
    truncated: dict[str, NonNegativeInt]
    by_length: dict[str, dict[str, Fraction]]


class ServedKL(Frozen):
    """Forward KL of an arm against native through the served cache, on held-out text."""

    mean: float
    mean_interval: Interval
    p99: float
    top1_agreement: Fraction
    estimator: KLEstimator
    top_k: NonNegativeInt | None
    positions: NonNegativeInt
    documents: NonNegativeInt


class Canary(Frozen):
    """The worst cache the engine can be made to serve; if it moves nothing, the harness does not read the cache."""

    format: str
    kl_nats: float
    noise_nats: float
    moved: bool
    answers_changed: NonNegativeInt
    answers: NonNegativeInt


class Evaluation(Record):
    artifact: ClassVar[str] = "evaluation.json"
    schema_id: ClassVar[str] = "kvassay.evaluation/1"

    target: str
    arms: tuple[str, ...]
    verdict: dict[str, ComparisonVerdict]
    tasks: dict[str, TaskResult]
    kl: dict[str, ServedKL | None]
    kl_reason: dict[str, str]
    noise_kl_nats: float
    canary: Canary
    longest_context_tokens: NonNegativeInt
    seeds: dict[str, int]
    look: Literal[1]
