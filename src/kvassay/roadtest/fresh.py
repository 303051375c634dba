"""A fresh folder that holds one exported arm and the weights, and nothing else of the run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kvassay.errors import BadInput
from kvassay.records.export import ArmExport
from kvassay.records.model import Model
from kvassay.store import Run

SCRATCH = "roadtest.tmp"


def clear_scratch(run: Run) -> None:
    """Remove what a killed road test left behind."""
    shutil.rmtree(run.path(SCRATCH), ignore_errors=True)


@contextmanager
def fresh_run(run: Run, arm: ArmExport, model: Model, name: str) -> Iterator[Run]:
    """A run folder with only the arm's export folder (copied) and the weights (hard links where the disk has them).

    Its logs are moved to the real run's logs at the end; the folder is removed.
    """
    fresh = Run(run.path(SCRATCH, name))
    try:
        shutil.rmtree(fresh.folder, ignore_errors=True)
        shutil.copytree(run.path(arm.folder), fresh.path(arm.folder))
        shutil.copytree(run.path(model.folder), fresh.path(model.folder), copy_function=link_or_copy)
    except OSError as error:
        raise BadInput(f"{fresh.folder}: the arm cannot be copied for a restart ({error.strerror}); free space on that disk") from error
    try:
        yield fresh
    finally:
        for log in fresh.path("logs").glob("*.log"):
            run.path("logs").mkdir(exist_ok=True)
            log.replace(run.path("logs", log.name))
        shutil.rmtree(fresh.folder, ignore_errors=True)


def link_or_copy(source: str, target: str) -> str:
    """Hard link, or a copy where the disk has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def files_outside(pid: int, run: Run, fresh: Run) -> list[str]:
    """Files of `run` outside `fresh` that process `pid` or its children have open or mapped, relative to the run."""
    import psutil

    root, inside = run.folder.resolve(), fresh.folder.resolve()
    process = psutil.Process(pid)
    paths: set[Path] = set()
    for each in (process, *process.children(recursive=True)):
        paths |= {Path(item.path) for item in each.open_files()} | {Path(item.path) for item in each.memory_maps()}
    return sorted(str(path.relative_to(root)) for path in paths if path.is_relative_to(root) and not path.is_relative_to(inside))
