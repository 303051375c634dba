"""export.json: files and launch command of every arm."""

from __future__ import annotations

from typing import ClassVar, Literal

from kvassay.records.base import Frozen, Record, Sha256

Deployment = Literal["supported", "unsupported", "unverified"]


class ArmExport(Frozen):
    """One startable arm. `folder` is relative to the run; `command` is run inside it, `{port}` filled in at start."""

    deployment: Deployment
    reasons: tuple[str, ...]
    folder: str
    command: tuple[str, ...]
    map_digest: Sha256
    bits: float
    bytes_per_token: int


class Export(Record):
    """`arms` has native, uniform (or null with a reason) and map; `helpers` has canary and fallback maps."""

    artifact: ClassVar[str] = "export.json"
    schema_id: ClassVar[str] = "kvassay.export/1"

    target: str
    arms: dict[str, ArmExport | None]
    arms_reason: dict[str, str]
    helpers: dict[str, ArmExport]
