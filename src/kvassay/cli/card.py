"""`kvassay card RUN`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def card(
    run: Annotated[Path, typer.Argument(help="a run folder")],
    check: Annotated[bool, typer.Option("--check", help="exit 0 for approve, 1 for reject, 3 for abstain")] = False,
) -> None:
    """One record of everything measured, and one decision. Writes card.json and report.html, prints a summary."""
    from kvassay.card.text import render_text
    from kvassay.pipeline import only_one, run_stage
    from kvassay.plan import load_resolved
    from kvassay.progress import for_stderr
    from kvassay.records import Card
    from kvassay.store import Run

    opened = Run(run)
    plan = load_resolved(run)
    with only_one(opened):
        run_stage(opened, plan, "card", for_stderr())
    record = opened.read(Card)
    typer.echo(render_text(record, opened.folder))
    if check:
        from kvassay.card.policy import check_decision

        raise typer.Exit(check_decision(record))
