"""One typed schema per artifact of a run folder. A schema is built when it is first used: `kvassay inspect` needs one of twelve."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvassay.records.base import Record
    from kvassay.records.card import Card
    from kvassay.records.corpora import Corpora
    from kvassay.records.evaluation import Evaluation
    from kvassay.records.export import Export
    from kvassay.records.frontier import Frontier
    from kvassay.records.geometry import Geometry
    from kvassay.records.kv_map import FrozenMap
    from kvassay.records.ladder import Ladder
    from kvassay.records.model import Model
    from kvassay.records.probe import Probe
    from kvassay.records.roadtest import Roadtest
    from kvassay.records.scores import Scores

    ARTIFACTS: tuple[type[Record], ...]

__all__ = [
    "ARTIFACTS",
    "Card",
    "Corpora",
    "Evaluation",
    "Export",
    "Frontier",
    "FrozenMap",
    "Geometry",
    "Ladder",
    "Model",
    "Probe",
    "Record",
    "Roadtest",
    "Scores",
]

# In the order of the pipeline.
_HOMES = {
    "Model": "model",
    "Geometry": "geometry",
    "Corpora": "corpora",
    "Scores": "scores",
    "Frontier": "frontier",
    "Ladder": "ladder",
    "FrozenMap": "kv_map",
    "Export": "export",
    "Probe": "probe",
    "Evaluation": "evaluation",
    "Roadtest": "roadtest",
    "Card": "card",
}


def __getattr__(name: str) -> Any:
    if name == "ARTIFACTS":
        return tuple(__getattr__(each) for each in _HOMES)
    home = "base" if name == "Record" else _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
