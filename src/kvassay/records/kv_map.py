"""map.json: the frozen choice, and the same shape for every arm that an engine is started with."""

from __future__ import annotations

from typing import ClassVar, Literal

from kvassay.records.base import Frozen, NonNegativeFloat, NonNegativeInt, Record, Sha256


class MapLayer(Frozen):
    """Formats of one layer that owns a cache."""

    index: NonNegativeInt
    module: str
    k: str
    v: str


class KVMap(Frozen):
    """A format for K and one for V of every owner layer. `digest` covers model, geometry, layers and scales, nothing else.

    `model` is the weights digest. `bits` = effective bits per cached element, block scales included.
    """

    model: Sha256
    geometry_sha256: Sha256
    target: str
    layers: tuple[MapLayer, ...]
    scales: str
    bits: NonNegativeFloat
    bytes_per_token: NonNegativeInt
    digest: Sha256


class Provenance(Frozen):
    """Where the choice comes from."""

    chosen_from: str
    measured_kl_nats: NonNegativeFloat
    predicted_kl_nats: NonNegativeFloat
    budget: str


class FrozenMap(KVMap, Record):
    """map.json. The map arm's keys stand at the top level; `uniform` is the best uniform pair at no more bytes."""

    artifact: ClassVar[str] = "map.json"
    schema_id: ClassVar[str] = "kvassay.map/1"

    provenance: Provenance
    recommended_arm: Literal["map", "uniform", "native"]
    recommended_reason: str
    uniform: KVMap | None
    uniform_reason: str | None
    uniform_provenance: Provenance | None
    smaller: KVMap | None
    smaller_reason: str | None

    @property
    def kv_map(self) -> KVMap:
        """The map arm alone."""
        return KVMap(**{name: getattr(self, name) for name in KVMap.model_fields})
