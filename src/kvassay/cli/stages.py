"""One command per stage of the pipeline: `kvassay score RUN` and its siblings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


def stage_command(name: str) -> Callable[[Path], None]:
    """The command that runs stage `name` of a run folder, or says that it is done."""

    def command(run: Annotated[Path, typer.Argument(help="a run folder that kvassay run has begun")]) -> None:
        from kvassay.pipeline import run_stage
        from kvassay.plan import load_resolved
        from kvassay.progress import for_stderr
        from kvassay.store import Run

        plan = load_resolved(run)
        record = run_stage(Run(run), plan, name, for_stderr())
        typer.echo(str(run / record.artifact))

    from kvassay.pipeline import BY_NAME

    command.__doc__ = f"{BY_NAME[name].says.capitalize()}. Writes {BY_NAME[name].writes.artifact}."
    return command
