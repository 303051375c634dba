"""One tiny planted model with three stages done, shared by the scoring tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from kvassay.corpora.splits import load_split
from kvassay.models.loading import load_model
from kvassay.plan.schema import Plan
from kvassay.records.corpora import Corpora
from kvassay.records.geometry import Geometry
from kvassay.store import Run
from support.planted import make_planted_model
from support.small_run import run_until, small_plan


@dataclass(frozen=True)
class Prepared:
    """Run with prepare, geometry and corpora done, its plan, geometry, FP32 model and scoring documents."""

    folder: Path
    run: Run
    plan: Plan
    geometry: Geometry
    model: Any
    documents: list[list[int]]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    source = make_planted_model(tmp_path_factory.mktemp("planted"))
    folder = tmp_path_factory.mktemp("run")
    plan = small_plan(source)
    run = run_until(folder, plan, "prepare", "geometry", "corpora")
    model = load_model(run.path("model"), torch.float32)
    return Prepared(folder, run, plan, run.read(Geometry), model, load_split(run, plan, run.read(Corpora), "scoring"))
