"""scores.json: what each format of K or V of one layer costs, alone."""

from __future__ import annotations

from typing import ClassVar, Literal

from kvassay.records.base import Frozen, NonNegativeFloat, NonNegativeInt, Record


class Score(Frozen):
    """Isolated forward KL (nats per scored token) when only this tensor of this layer has this format.

    `standard_error_nats` is over documents. `at_floor`: the KL is below three noise floors, so it cannot be told from nothing.
    """

    layer: NonNegativeInt
    tensor: Literal["k", "v"]
    format: str
    kl_nats: float
    standard_error_nats: NonNegativeFloat | None
    per_document_nats: tuple[float, ...]
    at_floor: bool


class Scores(Record):
    """Isolated forward KL: exact, with the noise floor measured on the same text, or by the sketch, which has no floor (0).

    `probes`: backward passes per document, 0 where exact. `layer_forwards`: decoder layers run × documents; a backward pass counts as one.
    """

    artifact: ClassVar[str] = "scores.json"
    schema_id: ClassVar[str] = "kvassay.scores/1"

    method: Literal["exact_isolated_kl", "sketch"]
    probes: NonNegativeInt = 0
    dtype: str
    numerics: dict[str, str]
    positions: NonNegativeInt
    documents: NonNegativeInt
    prefix_reuse: bool
    prefix_reuse_reason: str | None
    layer_forwards: NonNegativeInt
    floor_nats: NonNegativeFloat
    scores: tuple[Score, ...]
