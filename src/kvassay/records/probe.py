"""probe.json: is each arm engaged in the running server, and does it lose what was predicted."""

from __future__ import annotations

from typing import ClassVar, Literal

from kvassay.records.base import Frozen, Interval, NonNegativeFloat, NonNegativeInt, Record

ProbeVerdict = Literal["conforms", "degraded", "broken", "not_engaged", "refused", "unknown"]
KLEstimator = Literal["full", "top_k_rest", "none"]


class ArmProbe(Frozen):
    """One arm as the server itself showed it, and its served KL beside the predicted one on the same tokens."""

    verdict: ProbeVerdict
    reasons: tuple[str, ...]
    formats_match: bool | None
    bytes_per_token_priced: NonNegativeInt
    bytes_per_token_measured: float | None
    bytes_per_token_measured_reason: str | None
    capacity_tokens: NonNegativeInt | None
    capacity_ratio: NonNegativeFloat | None
    predicted_kl_nats: float | None
    served_kl_nats: float | None
    served_kl_nats_reason: str | None
    ratio: float | None
    ratio_interval: Interval | None
    documents: NonNegativeInt
    explained_by: str | None


class Probe(Record):
    artifact: ClassVar[str] = "probe.json"
    schema_id: ClassVar[str] = "kvassay.probe/1"

    target: str
    version: str
    build: str
    kl_estimator: KLEstimator
    top_k: NonNegativeInt | None
    floor_nats: NonNegativeFloat | None
    arms: dict[str, ArmProbe]
