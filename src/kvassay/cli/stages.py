"""One command per stage of the pipeline: `kvassay score RUN` and its siblings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

STAGE_COMMANDS = {
    "prepare": "Make the weights each engine needs. Writes model.json.",
    "corpora": "Draw three disjoint splits of text. Writes corpora.json.",
    "score": "Measure the loss of every layer's K and V in every format. Writes scores.json.",
    "solve": "From budget to candidate maps; no model needed. Writes frontier.json.",
    "measure": "Measure the joint loss of whole maps on the choice split. Writes ladder.json.",
    "freeze": "Choose from the measured maps. Writes map.json.",
    "export": "Write files and launch command of every arm. Writes export.json.",
    "probe": "Are the arms engaged, and as predicted? Writes probe.json.",
    "evaluate": "Held-out tasks, all arms, paired. Writes evaluation.json.",
    "roadtest": "Load, exhaustion, fallback, restart. Writes roadtest.json.",
}


def stage_command(name: str) -> Callable[[Path], None]:
    """The command that runs stage `name` of a run folder, or says that it is done."""

    def command(run: Annotated[Path, typer.Argument(help="a run folder that kvassay run has begun")]) -> None:
        from kvassay.pipeline import only_one, run_stage
        from kvassay.plan import load_resolved
        from kvassay.progress import for_stderr
        from kvassay.store import Run

        plan, opened = load_resolved(run), Run(run)
        with only_one(opened):
            record = run_stage(opened, plan, name, for_stderr())
        typer.echo(str(run / record.artifact))

    return command
