"""The plan as a run folder keeps it: every key written out, paths absolute."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from kvassay.errors import BadInput, DamagedArtifact
from kvassay.plan.load import plan_of, read_document
from kvassay.plan.schema import Plan
from kvassay.store import write_atomic

RESOLVED_PLAN = "plan.resolved.yaml"
HEAD = "# Written by kvassay: the plan of this run with every default written out. Change the plan you gave it, and use a new --out.\n"


def resolve_plan(plan: Plan) -> str:
    """The text of plan.resolved.yaml. It reads back as an equal plan, and equal plans give equal text."""
    body: str = yaml.safe_dump(plan.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)
    return HEAD + body


def save_resolved(folder: Path, plan: Plan) -> None:
    """Write the run folder's plan, making the folder. Raises BadInput when the disk refuses."""
    write_atomic(folder / RESOLVED_PLAN, resolve_plan(plan).encode())


def load_resolved(folder: Path) -> Plan:
    """The plan of a run folder. Files it names are not looked for: a finished run stays readable when moved.

    Raises BadInput when the folder is no run, DamagedArtifact when its plan was changed into something else.
    """
    path = Path(folder) / RESOLVED_PLAN
    if not path.is_file():
        raise BadInput(f"{folder}: not a run folder (it holds no {RESOLVED_PLAN}); kvassay run PLAN --out FOLDER makes one")
    try:
        return plan_of(read_document(path), RESOLVED_PLAN, None)
    except BadInput as error:
        raise DamagedArtifact(f"{path}: {error}") from error


def plan_difference(a: Plan, b: Plan) -> list[str]:
    """Dotted names of the keys in which two plans differ, in the order of the schema; empty when they are equal."""
    return list(_differing(a.model_dump(mode="json"), b.model_dump(mode="json"), ""))


def _differing(a: Any, b: Any, name: str) -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys((*a, *b)):
            yield from _differing(a.get(key), b.get(key), f"{name}.{key}" if name else key)
    elif a != b:
        yield name
