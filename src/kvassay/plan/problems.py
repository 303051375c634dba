"""Problems of a plan as sentences with their line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from kvassay.errors import ManyProblems
from kvassay.plan.schema import Plan
from kvassay.plan.yaml_lines import Document


@dataclass(frozen=True)
class Problem:
    """What is wrong with the value at `path`, in one sentence without a full stop."""

    path: tuple[str | int, ...]
    text: str


def refuse(problems: Iterable[Problem], name: str, document: Document | None) -> None:
    """Raise BadInput with one line for each problem, in the order of the file; nothing when there is none."""
    found = list(problems)
    if not found:
        return
    if document is not None:
        found.sort(key=lambda problem: document.line(problem.path))
    raise ManyProblems([_sentence(problem, name, document) for problem in found])


def of_validation(error: ValidationError) -> list[Problem]:
    """Pydantic's findings in the plan's own words."""
    return [_of_finding(dict(finding)) for finding in error.errors(include_url=False, include_input=False)]


def _sentence(problem: Problem, name: str, document: Document | None) -> str:
    where = name if document is None else f"{name}, line {document.line(problem.path)}"
    dotted = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem.path).lstrip(".")
    return f"{where}: {dotted}: {problem.text}" if dotted else f"{where}: {problem.text}"


def _of_finding(finding: dict[str, Any]) -> Problem:
    path, kind = tuple(finding["loc"]), finding["type"]
    if kind == "extra_forbidden":
        return Problem(path, _unknown_key(path))
    if kind == "missing":
        return Problem(path, "is missing")
    if kind == "value_error":
        return Problem(path, str(finding["ctx"]["error"]))
    if kind == "string_type":
        return Problem(path, "must be text; put it in quotes")
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return Problem(path, f"must be a mapping with the keys {', '.join(_keys_at(path))}")
    return Problem(path, finding["msg"].replace("Input should be", "must be"))


def _unknown_key(path: tuple[str | int, ...]) -> str:
    known = _keys_at(path[:-1])
    close = difflib.get_close_matches(str(path[-1]), known, n=1)
    return f"no such key; did you mean {close[0]}?" if close else f"no such key; known here: {', '.join(known)}"


def _keys_at(path: tuple[str | int, ...]) -> list[str]:
    """Field names of the part of the plan that `path` leads to; empty when it is not a mapping."""
    part: type[BaseModel] | None = Plan
    for step in path:
        if isinstance(step, int):
            continue
        field = part.model_fields.get(step) if part else None
        part = _model_in(field.annotation) if field else None
    return list(part.model_fields) if part else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := _model_in(each))), None)
