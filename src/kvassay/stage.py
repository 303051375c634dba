"""What a stage of the pipeline is, and what its function gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kvassay.plan.schema import Plan
from kvassay.progress import Progress
from kvassay.records.base import Record
from kvassay.store import Run


@dataclass(frozen=True)
class StageInput:
    """What a stage function gets. `key` names inputs and settings together: rows of unfinished work carry it."""

    run: Run
    plan: Plan
    progress: Progress
    key: str


StageFunction = Callable[[StageInput], Record]


@dataclass(frozen=True)
class Stage:
    """`function` is "module:name", imported only when the stage runs; it takes a StageInput and returns a `writes`."""

    name: str
    says: str
    reads: tuple[type[Record], ...]
    plan_keys: tuple[str, ...]
    writes: type[Record]
    function: str
