"""Find, prove and approve the KV-cache format of the model you serve.

The public API for notebooks; everything is imported when it is first used:

    import kvassay
    plan = kvassay.load_plan("plan.yaml")
    run = kvassay.open_run("runs/mine", plan)
    card = kvassay.run_all(run, plan)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kvassay.version import TOOL_VERSION as __version__

if TYPE_CHECKING:
    from kvassay.geometry.config import read_geometry
    from kvassay.pipeline import open_run, run_all, run_stage
    from kvassay.plan import load_plan, load_resolved
    from kvassay.records import Card, Evaluation, Frontier, FrozenMap, Geometry, Ladder, Roadtest, Scores
    from kvassay.store import Run

__all__ = [
    "Card",
    "Evaluation",
    "Frontier",
    "FrozenMap",
    "Geometry",
    "Ladder",
    "Roadtest",
    "Run",
    "Scores",
    "__version__",
    "load_plan",
    "load_resolved",
    "open_run",
    "read_geometry",
    "run_all",
    "run_stage",
]

_HOMES = {
    "kvassay.geometry.config": ("read_geometry",),
    "kvassay.pipeline": ("open_run", "run_all", "run_stage"),
    "kvassay.plan": ("load_plan", "load_resolved"),
    "kvassay.records": ("Card", "Evaluation", "Frontier", "FrozenMap", "Geometry", "Ladder", "Roadtest", "Scores"),
    "kvassay.store": ("Run",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'kvassay' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)
