"""`kvassay init MODEL`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def init(
    model: Annotated[str, typer.Argument(help="folder, file.gguf, package:NAME/FILE.gguf, or owner/name@COMMIT on the hub")],
    out: Annotated[Path, typer.Option("--out", help="the plan file to write; an existing one is kept")] = Path("plan.yaml"),
) -> None:
    """Write a commented plan for a model, and a small made-up trace beside it to begin with."""
    from kvassay.errors import BadInput
    from kvassay.plan.starter import STARTER_TRACE, starter_plan, starter_trace
    from kvassay.store import write_atomic

    if out.exists():
        raise BadInput(f"{out}: exists already; choose another --out")
    text = starter_plan(model)
    trace = out.parent / STARTER_TRACE
    if not trace.exists():
        write_atomic(trace, starter_trace().encode())
        typer.echo(f"{trace}: made-up request shapes; put your own in its place")
    write_atomic(out, text.encode())
    typer.echo(f"{out}: read it, then: kvassay run {out} --out runs/mine --dry-run")
