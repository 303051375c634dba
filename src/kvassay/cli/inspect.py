"""`kvassay inspect PATH`: what a model's cache holds and costs. Starts at once: no torch, no numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def inspect(
    model: Annotated[str, typer.Argument(metavar="PATH", help="config.json, its folder, a GGUF file, or package:NAME/FILE.gguf")],
    context: Annotated[int | None, typer.Option("--context", help="tokens of one request; the model's longest context by default")] = None,
    requests: Annotated[int, typer.Option("--requests", help="how many such requests at once")] = 1,
    tp: Annotated[int | None, typer.Option("--tp", help="ranks of tensor parallelism: also what each of them holds")] = None,
    k: Annotated[str, typer.Option("--k", help="format of K in every layer")] = "native",
    v: Annotated[str, typer.Option("--v", help="format of V in every layer")] = "native",
    kv_map: Annotated[Path | None, typer.Option("--map", help="a map.json instead of --k and --v")] = None,
    storage: Annotated[Literal["window", "full"], typer.Option("--storage", help="whether windowed layers drop old tokens")] = "window",
    head_align: Annotated[int, typer.Option("--head-align", help="elements to whose multiple the engine pads a head")] = 1,
    block: Annotated[int | None, typer.Option("--block", help="tokens of one block or page of the engine")] = None,
    chunk: Annotated[int | None, typer.Option("--chunk", help="most tokens that the engine takes in one step; needs --block")] = None,
    mla: Annotated[Literal["latent", "expanded"], typer.Option("--mla", help="how the engine stores a latent")] = "latent",
    encoder_tokens: Annotated[int | None, typer.Option("--encoder-tokens", help="rows of a cross cache (encoder or image tokens)")] = None,
    draft: Annotated[str | None, typer.Option("--draft", help="configuration of a draft model, priced apart")] = None,
    memory: Annotated[str | None, typer.Option("--memory", help="device memory, as 80GiB: how many requests fit")] = None,
    weights: Annotated[str | None, typer.Option("--weights", help="memory of the weights, as 16GiB; needs --memory")] = None,
    from_logs: Annotated[Path | None, typer.Option("--from-logs", help="readings of an engine's log: growth and fixed parts apart")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text")] = False,
) -> None:
    """What a model's cache holds and costs, from its config.json or GGUF header alone."""
    from kvassay.cli.inspect_look import Look, look
    from kvassay.errors import BadInput
    from kvassay.geometry.configuration.keys import MOST_HEADS, MOST_TOKENS
    from kvassay.geometry.layouts.layout import Choice
    from kvassay.geometry.storage import Storage

    for option, count, most in (
        ("--context", context, MOST_TOKENS),
        ("--requests", requests, MOST_TOKENS),
        ("--encoder-tokens", encoder_tokens, MOST_TOKENS),
        ("--block", block, MOST_TOKENS),
        ("--chunk", chunk, MOST_TOKENS),
        ("--tp", tp, MOST_HEADS),
        ("--head-align", head_align, MOST_HEADS),
    ):
        if count is not None and not 1 <= count <= most:
            raise BadInput(f"{option} {str(count)[:20]}: must be from 1 to {most:,}")
    for option, given, needed, there in (("--chunk", chunk, "--block", block), ("--weights", weights, "--memory", memory)):
        if given is not None and there is None:
            raise BadInput(f"{option}: says nothing without {needed}")
    asked = Look(
        model=model,
        context_tokens=context,
        requests=requests,
        ranks=tp,
        k=k,
        v=v,
        kv_map=kv_map,
        storage=Storage(windows=storage, head_align=head_align, block_tokens=block or 1),
        block_tokens=block,
        chunk_tokens=chunk,
        choice=Choice(mla=mla, encoder_tokens=encoder_tokens),
        draft=draft,
        memory=memory,
        weights=weights,
        from_logs=from_logs,
    )
    seen = look(asked)
    if as_json:
        import json

        from kvassay.cli.inspect_document import as_document

        typer.echo(json.dumps(as_document(seen), indent=2, ensure_ascii=False))
    else:
        from kvassay.cli.inspect_text import as_text

        typer.echo(as_text(seen))
