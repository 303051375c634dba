"""What an engine accepts, as data: it becomes the solver's constraints and the scorer's numerics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvassay.records.card import Scope


@dataclass(frozen=True)
class Capability:
    """One engine at one version.

    formats: names it can serve for K and for V. per_layer: formats may differ between layers. k_not_v: K and V of a
    layer may differ. numerics: id of the quantizers that reproduce its arithmetic. scope: what evidence it can give.
    source, seen: where this is known from, and when.
    """

    target: str
    version: str
    formats: tuple[str, ...]
    per_layer: bool
    k_not_v: bool
    max_formats: int | None
    prefill_reads_cache: bool
    concurrent_sequences: int | None
    numerics: str
    scope: Scope
    source: str
    seen: str
