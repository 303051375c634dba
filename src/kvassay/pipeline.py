"""The way of the data as one table: each stage, what it reads, which plan keys it obeys, what it writes.

The command line and the Python API both go through here.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kvassay.errors import BadInput, DamagedArtifact
from kvassay.plan import RESOLVED_PLAN, load_resolved, plan_difference, save_resolved
from kvassay.plan.schema import Plan
from kvassay.progress import Progress, for_stderr
from kvassay.records import (
    Card,
    Corpora,
    Evaluation,
    Export,
    Frontier,
    FrozenMap,
    Geometry,
    Ladder,
    Model,
    Probe,
    Record,
    Roadtest,
    Scores,
)
from kvassay.stage import Stage, StageFunction, StageInput
from kvassay.store import Run, json_digest

STAGES: tuple[Stage, ...] = (
    Stage("prepare", "make the weights each engine needs", (), ("model",), Model, "kvassay.models.prepare:prepare"),
    Stage("geometry", "exact bytes per layer", (Model,), (), Geometry, "kvassay.geometry.stage:geometry"),
    Stage("corpora", "three disjoint splits of text", (Model,), ("corpora", "seeds"), Corpora, "kvassay.corpora.stage:corpora"),
    Stage(
        "score",
        "loss of every layer's K and V in every format",
        (Model, Geometry, Corpora),
        ("formats", "score", "target", "seeds"),
        Scores,
        "kvassay.scoring.stage:score",
    ),
    Stage(
        "solve",
        "budget to candidate maps",
        (Geometry, Scores),
        ("formats", "budget", "ladder", "target"),
        Frontier,
        "kvassay.solving.stage:solve",
    ),
    Stage(
        "measure",
        "joint loss of whole maps",
        (Model, Geometry, Corpora, Frontier),
        ("ladder", "score", "seeds"),
        Ladder,
        "kvassay.scoring.stage:measure",
    ),
    Stage(
        "freeze",
        "the choice, hashed",
        (Model, Geometry, Ladder),
        ("budget", "gates", "seeds", "target"),
        FrozenMap,
        "kvassay.solving.freeze:freeze",
    ),
    Stage(
        "export",
        "files and launch command of every arm",
        (Model, Geometry, FrozenMap),
        ("target", "incumbent"),
        Export,
        "kvassay.targets.export:export",
    ),
    Stage(
        "probe",
        "are the arms engaged, and as predicted",
        (Model, Geometry, Corpora, Ladder, FrozenMap, Export),
        ("tasks", "seeds"),
        Probe,
        "kvassay.probing.stage:probe",
    ),
    Stage(
        "evaluate",
        "held-out tasks, paired",
        (Model, Corpora, FrozenMap, Export, Probe),
        ("tasks", "seeds", "gates"),
        Evaluation,
        "kvassay.evaluation.stage:evaluate",
    ),
    Stage(
        "roadtest",
        "load, exhaustion, fallback, restart",
        (Model, Geometry, FrozenMap, Export),
        ("workload", "seeds", "fallback"),
        Roadtest,
        "kvassay.roadtest.stage:roadtest",
    ),
    Stage(
        "card",
        "one record, one decision",
        (Model, Geometry, Corpora, Scores, Frontier, Ladder, FrozenMap, Export, Probe, Evaluation, Roadtest),
        ("gates", "budget", "incumbent"),
        Card,
        "kvassay.report.stage:card",
    ),
)

BY_NAME = {stage.name: stage for stage in STAGES}


def inputs_of(run: Run, stage: Stage) -> dict[str, str]:
    """Content digests of what the stage reads. Raises DamagedArtifact for a missing or torn one."""
    return {kind.artifact: run.digest(kind.artifact) for kind in stage.reads}


def settings_digest(plan: Plan, stage: Stage) -> str:
    """Digest of the plan keys that the stage obeys."""
    settings = plan.model_dump(mode="json")
    return json_digest({key: settings[key] for key in stage.plan_keys})


def is_done(run: Run, plan: Plan, stage: Stage) -> bool:
    """Whether the stage's artifact stands and is whole, made from today's inputs, settings and schema.

    Raises DamagedArtifact when it was made from other inputs or another plan: it is never silently rebuilt.
    """
    if not run.has(stage.writes):
        return False
    header = run.header(stage.writes)
    if header.schema_id != stage.writes.schema_id:
        return False
    path = run.path(stage.writes.artifact)
    if header.settings_sha256 != settings_digest(plan, stage):
        raise DamagedArtifact(f"{path}: made with another plan ({', '.join(stage.plan_keys)}); use a new --out, or delete the file")
    now = inputs_of(run, stage)
    for name in sorted(header.inputs.keys() | now.keys()):
        if header.inputs.get(name) != now.get(name):
            raise DamagedArtifact(f"{path}: made from another {name}; use a new --out, or delete the file to make it again")
    run.check_side_files(run.read(stage.writes))
    return True


def run_stage(run: Run, plan: Plan, name: str, progress: Progress) -> Record:
    """Run one stage, or return its artifact when it is done already.

    Raises BadInput for an unknown name, and whatever the stage refuses.
    """
    if name not in BY_NAME:
        raise BadInput(f"stage {name!r}: unknown; known: {', '.join(BY_NAME)}")
    stage = BY_NAME[name]
    if is_done(run, plan, stage):
        progress.note(f"{name}: done before, kept")
        return run.read(stage.writes)
    inputs, settings = inputs_of(run, stage), settings_digest(plan, stage)
    module, function = stage.function.split(":")
    stage_function: StageFunction = getattr(importlib.import_module(module), function)
    started = time.monotonic()
    key = json_digest({"stage": name, "schema": stage.writes.schema_id, "inputs": inputs, "settings": settings})
    record = stage_function(StageInput(run=run, plan=plan, progress=progress, key=key))
    run.write(record, inputs, settings)
    seconds = time.monotonic() - started
    run.note_stage_seconds(name, seconds)
    progress.note(f"{name}: {seconds:.1f} s")
    return record


def open_run(folder: str | Path, plan: Plan) -> Run:
    """Begin a run folder, or go on with one of the same plan.

    Raises BadInput when the folder belongs to another plan, naming the keys that differ, or holds something else.
    """
    folder = Path(folder)
    if os.path.lexists(folder) and not folder.is_dir():
        raise BadInput(f"{folder}: not a folder; use another --out")
    if (folder / RESOLVED_PLAN).exists():
        if different := plan_difference(load_resolved(folder), plan):
            keys = ", ".join(different)
            raise BadInput(f"{folder}: made with another plan (different: {keys}); use another --out, or the plan it was made with")
    elif folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder}: not empty and not a run folder; use another --out")
    else:
        save_resolved(folder, plan)
    return Run(folder)


@contextmanager
def only_one(run: Run) -> Iterator[None]:
    """Hold the run folder: a second kvassay on it is refused with BadInput. The lock goes with the process, however it ends."""
    with run.path(".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadInput(f"{run.folder}: another kvassay is working in this run folder; wait for it, or use another --out") from None
        yield


def run_all(run: Run, plan: Plan, progress: Progress | None = None) -> Card:
    """Every stage in order; finished ones are kept."""
    with only_one(run):
        for stage in STAGES:
            run_stage(run, plan, stage.name, progress or for_stderr())
    return run.read(Card)
