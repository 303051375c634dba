"""The two faces of `kvassay inspect`: a table for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kvassay.errors import BadInput
from kvassay.formats import law
from kvassay.geometry.price import layer_bytes_per_token
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry, Layer

UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def chosen_pairs(geometry: Geometry, k: str, v: str, map_file: Path | None) -> tuple[Pair, ...]:
    """A pair per owner layer, from --k and --v or from a map of this very layout. Raises BadInput."""
    if map_file is None:
        law(k, geometry.native_dtype), law(v, geometry.native_dtype)
        return (Pair(k=k, v=v),) * len(geometry.owners)
    if (k, v) != ("native", "native"):
        raise BadInput("--map already names the formats: leave out --k and --v")
    from kvassay.solving.kv_map import check_map_layers, map_pairs, read_kv_map

    kv_map = read_kv_map(map_file)
    check_map_layers(kv_map, geometry)
    return map_pairs(kv_map)


def as_document(geometry: Geometry, pairs: Sequence[Pair], requests: int) -> dict[str, Any]:
    """The keys of geometry.json, with the formats and the number of requests that were asked for."""
    document = geometry.model_dump(mode="json", exclude={"side_files"})
    document["formats"] = [{"index": layer.index, "k": pair.k, "v": pair.v} for layer, pair in zip(geometry.owners, pairs, strict=True)]
    document["requests"] = requests
    document["total_bytes_all_requests"] = requests * geometry.total_bytes
    return document


def as_text(geometry: Geometry, pairs: Sequence[Pair], requests: int) -> str:
    """The table by layer kind, the four numbers, and one line that says the price."""
    counted = geometry.bytes
    lines = [f"{geometry.model_type}, native {geometry.native_dtype}"]
    lines += [f"assumed: {note}" for note in geometry.assumptions]
    lines += ["", *_table(geometry, pairs), ""]
    lines += [
        f"growth       {counted.growth_per_token:>15,} bytes per further token",
        f"all tokens   {counted.all_tokens_per_token:>15,} bytes per token if no layer dropped any",
        f"window       {counted.window_bytes:>15,} bytes once the windows are full",
        f"fixed        {counted.fixed_per_request:>15,} bytes per request, whatever its length",
        "",
        f"at {geometry.context_tokens:,} tokens one request holds {sized(geometry.total_bytes)}",
    ]
    if requests > 1:
        lines.append(f"{requests:,} such requests hold {sized(requests * geometry.total_bytes)}")
    return "\n".join(lines)


def sized(count: int) -> str:
    """Bytes in the largest unit that leaves at least 1, two decimals."""
    for unit, name in UNITS:
        if count >= unit:
            return f"{count / unit:,.2f} {name}"
    return f"{count:,} bytes"


def _table(geometry: Geometry, pairs: Sequence[Pair]) -> list[str]:
    """One row per kind, shape and pair of formats; layers that own nothing come last."""
    rows: dict[tuple[str, ...], list[int]] = {}
    for layer, pair in zip(geometry.owners, pairs, strict=True):
        per_token = layer_bytes_per_token(layer, pair, geometry.native_dtype)
        key = (layer.kind, str(layer.kv_heads), f"{layer.k_dim}/{layer.v_dim}", _window(layer), f"{pair.k}/{pair.v}", f"{per_token:,}")
        rows.setdefault(key, []).append(layer.index)
    head = ("layers", "kind", "KV heads", "K/V dim", "window", "format K/V", "bytes per token and layer")
    cells = [head, *((str(len(indices)), *key) for key, indices in rows.items())]
    readers = [layer for layer in geometry.layers if not layer.owner]
    if readers:
        cells.append((str(len(readers)), "none", "-", "-", "-", "-", "0"))
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _window(layer: Layer) -> str:
    return "all" if layer.window is None else f"{layer.window:,}"
