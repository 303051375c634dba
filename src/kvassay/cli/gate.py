"""`kvassay gate`: does a live server still match an exported arm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def gate(
    export: Annotated[Path, typer.Option("--export", help="folder of the exported arm, for example RUN/export/map")],
    server: Annotated[str, typer.Option("--server", help="base address of the live server, without /v1")],
) -> None:
    """Does a live server still match an exported arm? Exit 1: it differs, each difference is printed. Exit 3: it matches,
    or could not be observed; signed approvals are not part of this version, so a match alone never answers yes."""
    import asyncio

    from kvassay.errors import KvassayError
    from kvassay.serving.client import Client
    from kvassay.serving.compare_state import compare_state
    from kvassay.targets.launch import read_export

    async def read_state() -> dict[str, object]:
        async with Client(server) as client:
            return await client.kv_state()

    kv_map, _ = read_export(export)
    try:
        state = asyncio.run(read_state())
    except KvassayError as error:
        typer.echo(f"not observed: {error}")
        raise typer.Exit(3) from None
    differences = compare_state(kv_map, state)
    for difference in differences:
        typer.echo(f"{difference.what}: expected {difference.expected}, observed {difference.observed}")
    if differences:
        raise typer.Exit(1)
    typer.echo(f"matches {export}: {len(kv_map.layers)} layers, map {kv_map.digest[:12]}; no signed approval was checked")
    raise typer.Exit(3)
