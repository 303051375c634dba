"""Reading a plan file: YAML, schema, files, and the model's own facts, all before any model loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kvassay.errors import BadInput
from kvassay.plan.check import file_problems, model_problems, target_problems
from kvassay.plan.problems import Problem, of_validation, refuse
from kvassay.plan.schema import Plan
from kvassay.plan.yaml_lines import MAX_YAML_BYTES, Document, parse_yaml
from kvassay.records.geometry import Geometry

PATH_KEYS = (("model", "folder"), ("model", "gguf"), ("workload", "trace"))
LIST_PATH_KEYS = (("corpora", "files"),)


def load_plan(path: str | Path) -> Plan:
    """The checked plan, its paths made absolute (they are relative to the plan file).

    Raises BadInput with one line for each problem: "plan.yaml, line 12: budget.bits: must be greater than 0".
    """
    path = Path(path)
    document = read_document(path)
    plan = plan_of(document, path.name, path.resolve().parent)
    refuse([*target_problems(plan), *file_problems(plan)], path.name, document)
    refuse(model_problems(plan), path.name, document)
    return plan


def check_against_model(plan: Plan, geometry: Geometry, source: Path | None = None) -> None:
    """Refuse a plan that this model cannot have: a group that does not divide head_dim, a budget under the cheapest legal map.

    `source`: the plan file, for line numbers. Raises BadInput with one line for each problem.
    """
    document = read_document(source) if source else None
    refuse(model_problems(plan, geometry), source.name if source else "plan", document)


def read_document(path: Path) -> Document:
    """The YAML of a file, read with bounds. Raises BadInput."""
    try:
        with path.open("rb") as handle:
            data = handle.read(MAX_YAML_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}); kvassay init MODEL writes a plan") from error
    return parse_yaml(data, path.name)


def plan_of(document: Document, name: str, base: Path | None) -> Plan:
    """The document as a Plan; relative paths are joined to `base` when it is given. Raises BadInput."""
    if not isinstance(document.data, dict):
        raise BadInput(f"{name}, line 1: a plan is a mapping of keys such as model, formats and budget")
    data = document.data if base is None else _with_paths(document.data, base)
    try:
        # JSON mode is the strict one that still reads paths from text: true is no number there, and "6" is no number either.
        return Plan.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        refuse(of_validation(error), name, document)
        raise
    except ValueError as error:
        refuse([Problem((), f"cannot be read ({str(error)[:200]})")], name, document)
        raise


def _with_paths(data: dict[str, Any], base: Path) -> dict[str, Any]:
    joined = dict(data)
    for section, key in PATH_KEYS:
        part = joined.get(section)
        if isinstance(part, dict) and isinstance(part.get(key), str) and part[key]:
            joined[section] = part | {key: str(base / part[key])}
    for section, key in LIST_PATH_KEYS:
        part = joined.get(section)
        if isinstance(part, dict) and isinstance(part.get(key), list):
            joined[section] = part | {key: [str(base / each) if isinstance(each, str) else each for each in part[key]]}
    return joined
