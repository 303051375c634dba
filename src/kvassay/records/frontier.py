"""frontier.json: budget to predicted best map, within the target's legal set. No model is needed to make it."""

from __future__ import annotations

from typing import ClassVar

from kvassay.records.base import Frozen, NonNegativeFloat, NonNegativeInt, Record


class Pair(Frozen):
    """Formats of one owner layer."""

    k: str
    v: str


class FrontierPoint(Frozen):
    """The best predicted map of at most `budget_bits` effective bits; `pairs` in the order of the owner layers."""

    name: str
    budget_bits: NonNegativeFloat
    bits: NonNegativeFloat
    bytes_per_token: NonNegativeInt
    predicted_kl_nats: NonNegativeFloat
    pairs: tuple[Pair, ...]
    served_by: tuple[str, ...]
    solver_status: str


class Frontier(Record):
    """Points by rising bits. `uniform` are the uniform pairs of the same menu, for comparison at equal bytes."""

    artifact: ClassVar[str] = "frontier.json"
    schema_id: ClassVar[str] = "kvassay.frontier/1"

    target: str
    budget_bits: NonNegativeFloat
    budget_text: str
    owner_layers: tuple[NonNegativeInt, ...]
    points: tuple[FrontierPoint, ...]
    uniform: tuple[FrontierPoint, ...]
