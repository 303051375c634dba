"""ladder.json: joint KL of whole maps, measured on the choice split."""

from __future__ import annotations

from typing import ClassVar, Literal

from kvassay.records.base import Frozen, Interval, NonNegativeFloat, NonNegativeInt, Record
from kvassay.records.frontier import Pair

RungKind = Literal["mixed", "uniform"]


class Rung(Frozen):
    """One whole map, measured. KL in nats per scored token; the interval is over documents."""

    name: str
    kind: RungKind
    bits: NonNegativeFloat
    bytes_per_token: NonNegativeInt
    pairs: tuple[Pair, ...]
    predicted_kl_nats: NonNegativeFloat
    kl_nats: float
    kl_interval: Interval
    kl_p99_nats: float
    per_document_nats: tuple[float, ...]
    within_budget: bool


class Ladder(Record):
    """Measured maps by rising bits, mixed and uniform together."""

    artifact: ClassVar[str] = "ladder.json"
    schema_id: ClassVar[str] = "kvassay.ladder/1"

    dtype: str
    positions: NonNegativeInt
    documents: NonNegativeInt
    floor_nats: NonNegativeFloat
    rungs: tuple[Rung, ...]
