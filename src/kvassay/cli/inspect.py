"""`kvassay inspect PATH`: what a model's cache holds and costs. Starts at once: no torch, no numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MOST = 2**40


def inspect(
    model: Annotated[str, typer.Argument(metavar="PATH", help="config.json, its folder, a GGUF file, or package:NAME/FILE.gguf")],
    context: Annotated[int | None, typer.Option("--context", help="tokens of one request; the model's longest context by default")] = None,
    requests: Annotated[int, typer.Option("--requests", help="how many such requests at once")] = 1,
    k: Annotated[str, typer.Option("--k", help="format of K in every layer")] = "native",
    v: Annotated[str, typer.Option("--v", help="format of V in every layer")] = "native",
    kv_map: Annotated[Path | None, typer.Option("--map", help="a map.json instead of --k and --v")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text")] = False,
) -> None:
    """What a model's cache holds and costs, from its config.json or GGUF header alone."""
    from kvassay.cli.inspect_text import as_document, as_text, chosen_pairs
    from kvassay.errors import BadInput
    from kvassay.geometry.config import read_geometry
    from kvassay.geometry.price import with_price

    for option, count in (("--context", context), ("--requests", requests)):
        if count is not None and not 1 <= count <= MOST:
            raise BadInput(f"{option} {str(count)[:20]}: must be from 1 to {MOST:,}")
    geometry = read_geometry(model, context)
    pairs = chosen_pairs(geometry, k, v, kv_map)
    priced = with_price(geometry, pairs, geometry.context_tokens)
    if as_json:
        import json

        typer.echo(json.dumps(as_document(priced, pairs, requests), indent=2, ensure_ascii=False))
    else:
        typer.echo(as_text(priced, pairs, requests))
