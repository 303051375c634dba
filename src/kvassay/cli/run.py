"""`kvassay run PLAN --out RUN`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    plan: Annotated[Path, typer.Argument(help="plan file; kvassay init writes one")],
    out: Annotated[Path, typer.Option("--out", help="run folder; an unfinished one goes on where it stopped")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="check the plan and say what it would cost; nothing is written")] = False,
) -> None:
    """The whole way, from plan to run card. Exits 0 when the run completed, whatever it decided."""
    from kvassay.plan import load_plan
    from kvassay.progress import for_stderr

    checked = load_plan(plan)
    if dry_run:
        from kvassay.plan.dry_run import dry_run as describe

        typer.echo(describe(checked))
        return

    from kvassay.card.text import render_text
    from kvassay.pipeline import open_run, run_all

    opened = open_run(out, checked)
    card = run_all(opened, checked, for_stderr())
    typer.echo(render_text(card, opened.folder))
