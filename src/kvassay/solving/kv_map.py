"""Building a map for one model, and refusing one that belongs to another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from kvassay.errors import BadInput
from kvassay.geometry.configuration.keys import MOST_LAYERS
from kvassay.geometry.price import bytes_per_token, effective_bits, zip_owners
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry
from kvassay.records.kv_map import KVMap, MapLayer
from kvassay.store import first_problem, json_digest, parse_json, read_bounded

CAST = "cast"
# Eight thousand layers take half of it, and nested garbage of this size stays under 200 MB once parsed.
MAX_MAP_BYTES = 4 * 2**20
MOST_MAP_LAYERS = 2 * MOST_LAYERS  # self and cross caches
DIGESTED = ("model", "geometry_sha256", "target", "layers", "scales")


def build_kv_map(
    geometry: Geometry, geometry_sha256: str, weights_sha256: str, target: str, pairs: Sequence[Pair], scales: str = CAST
) -> KVMap:
    """The map that gives each owner layer its pair, with its bits, bytes and digest.

    Raises BadInput when the count of pairs differs from the owner layers, or a format does not fit a head.
    """
    layers = tuple(MapLayer(index=layer.index, module=layer.module, k=pair.k, v=pair.v) for layer, pair in zip_owners(geometry, pairs))
    facts = {
        "model": weights_sha256,
        "geometry_sha256": geometry_sha256,
        "target": target,
        "layers": [layer.model_dump() for layer in layers],
        "scales": scales,
    }
    return KVMap(
        model=weights_sha256,
        geometry_sha256=geometry_sha256,
        target=target,
        layers=layers,
        scales=scales,
        bits=effective_bits(geometry, pairs),
        bytes_per_token=bytes_per_token(geometry, pairs),
        digest=json_digest(facts),
    )


def map_digest(kv_map: KVMap) -> str:
    """The digest that the map's own content gives."""
    return json_digest({key: value for key, value in kv_map.model_dump(mode="json").items() if key in DIGESTED})


def _is_like_a_layer(value: object) -> bool:
    """Whether `value` has no key too many: pydantic keeps every fault that it finds, which takes gigabytes for a file made of faults."""
    return isinstance(value, dict) and value.keys() <= MapLayer.model_fields.keys()


def map_pairs(kv_map: KVMap) -> tuple[Pair, ...]:
    """The map's formats in the order of the owner layers."""
    return tuple(Pair(k=layer.k, v=layer.v) for layer in kv_map.layers)


def check_map_layers(kv_map: KVMap, geometry: Geometry) -> None:
    """Raise BadInput unless the map names exactly the layers of `geometry` that own a cache, in legal formats, at its own price."""
    named = [(layer.index, layer.module) for layer in kv_map.layers]
    owners = [(layer.index, layer.module) for layer in geometry.owners]
    if named != owners:
        odd = next((each for each in named if each not in owners), None)
        what = (
            f"names layer {odd[0]} ({odd[1]}), which owns no cache there"
            if odd
            else f"has {len(named)} layers, the model has {len(owners)} owners"
        )
        raise BadInput(f"map {kv_map.digest[:12]}: {what}; it belongs to another model")
    if bytes_per_token(geometry, map_pairs(kv_map)) != kv_map.bytes_per_token:
        raise BadInput(f"map {kv_map.digest[:12]}: its {kv_map.bytes_per_token:,} bytes per token are not the price of this model's layers")


def check_kv_map(kv_map: KVMap, geometry: Geometry, geometry_sha256: str, weights_sha256: str) -> None:
    """Raise BadInput when the map was changed, or belongs to other weights or another geometry, even of equal shapes."""
    if map_digest(kv_map) != kv_map.digest:
        raise BadInput(f"map {kv_map.digest[:12]}: its digest does not fit its content; it was changed after it was frozen")
    if kv_map.model != weights_sha256:
        raise BadInput(f"map {kv_map.digest[:12]}: belongs to weights {kv_map.model[:12]}, this model is {weights_sha256[:12]}")
    if kv_map.geometry_sha256 != geometry_sha256:
        raise BadInput(f"map {kv_map.digest[:12]}: belongs to geometry {kv_map.geometry_sha256[:12]}, this one is {geometry_sha256[:12]}")
    check_map_layers(kv_map, geometry)


def read_kv_map(path: Path) -> KVMap:
    """A map file: map.json of a run, or the map of an exported arm. Raises BadInput when it is none or was changed."""
    try:
        document = parse_json(read_bounded(path, MAX_MAP_BYTES), str(path))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; name a map.json that kvassay wrote") from None
    if not isinstance(document, dict):
        raise BadInput(f"{path}: not a JSON object, so not a map")
    layers = document.get("layers", [])
    if not isinstance(layers, list) or len(layers) > MOST_MAP_LAYERS or not all(_is_like_a_layer(each) for each in layers):
        raise BadInput(
            f"{path}: not a map: layers: must be a list of at most {MOST_MAP_LAYERS:,} objects of {', '.join(MapLayer.model_fields)}"
        )
    try:
        kv_map = KVMap.model_validate_json(json.dumps({key: document[key] for key in KVMap.model_fields if key in document}))
    except ValidationError as error:
        raise BadInput(f"{path}: not a map: {first_problem(error)}") from None
    if map_digest(kv_map) != kv_map.digest:
        raise BadInput(f"{path}: its digest does not fit its content; it was changed after it was frozen")
    return kv_map
