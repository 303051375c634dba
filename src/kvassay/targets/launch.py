"""launch.json: what an exported folder says beside its map, enough to start the reference server from it alone."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from kvassay.errors import BadInput
from kvassay.records.base import Frozen, Sha256
from kvassay.records.kv_map import KVMap
from kvassay.solving.kv_map import map_digest
from kvassay.store import first_problem, parse_json, read_bounded

MAX_EXPORT_JSON_BYTES = 16 * 2**20

F = TypeVar("F", bound=Frozen)


class Launch(Frozen):
    """`model` is the weights folder, relative to the export folder; `command` is run inside the export folder."""

    model: str
    model_name: str
    weights_sha256: Sha256
    native_dtype: str
    trust_remote_code: bool
    command: tuple[str, ...]


def read_export(folder: Path) -> tuple[KVMap, Launch]:
    """The map and launch facts of an exported folder.

    Raises BadInput when a file is missing, malformed, or when the map does not have the digest it states.
    """
    kv_map, launch = _read(folder / "map.json", KVMap), _read(folder / "launch.json", Launch)
    if map_digest(kv_map) != kv_map.digest:
        raise BadInput(f"{folder / 'map.json'}: digest does not match its content; the map was changed after it was frozen, export again")
    if kv_map.model != launch.weights_sha256:
        raise BadInput(f"{folder}: the map belongs to weights {kv_map.model[:12]}, the launch file to {launch.weights_sha256[:12]}")
    return kv_map, launch


def _read(path: Path, kind: type[F]) -> F:
    try:
        return kind.model_validate(parse_json(read_bounded(path, MAX_EXPORT_JSON_BYTES), str(path)))
    except FileNotFoundError:
        raise BadInput(f"{path}: missing; run kvassay export again") from None
    except ValidationError as error:
        raise BadInput(f"{path}: {first_problem(error)}; run kvassay export again") from None
