"""Stage `geometry`: exact bytes per layer of the prepared model."""

from __future__ import annotations

from typing import Protocol

from kvassay.geometry.config import read_geometry
from kvassay.records.geometry import Geometry
from kvassay.records.model import Model
from kvassay.store import Run


class HasRun(Protocol):
    """What this stage needs of its StageInput; geometry lies below the plan and may not know it."""

    @property
    def run(self) -> Run: ...


def geometry(stage: HasRun) -> Geometry:
    """The geometry of RUN/<model folder>/config.json at the model's longest context. Raises BadInput."""
    model = stage.run.read(Model)
    return read_geometry(stage.run.path(model.folder))
