"""A running server's cache against the map it should serve, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvassay.records.kv_map import KVMap
from kvassay.serving.completion import plain


@dataclass(frozen=True)
class Difference:
    """One fact that differs between what was exported and what runs. `observed` is one bounded, printable line."""

    what: str
    expected: str
    observed: str


def compare_state(kv_map: KVMap, state: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Every difference between `kv_map` and the server's /kv_state; an absent fact is a difference too."""
    found = [
        Difference(what, str(expected), plain(observed))
        for what, expected, observed in (
            ("map digest", kv_map.digest, state.get("map_digest")),
            ("weights", kv_map.model, state.get("model_sha256")),
            ("scales", kv_map.scales, state.get("scales")),
            ("bytes per token", float(kv_map.bytes_per_token), state.get("bytes_per_token")),
        )
        if expected != observed
    ]
    layers = state.get("layers")
    # The state comes from a server that may be anything: an index that is no number names no layer.
    rows = [each if isinstance(each, dict) else {} for each in layers] if isinstance(layers, list | tuple) else []
    running = {row["index"]: row for row in rows if type(row.get("index")) is int}
    if len(running) != len(rows):
        found.append(Difference("layers", "each named once by its index", f"{len(rows)} entries, {len(running)} layers named"))
    for layer in kv_map.layers:
        seen = running.pop(layer.index, {})
        for tensor, expected in (("k", layer.k), ("v", layer.v)):
            if seen.get(tensor) != expected:
                found.append(Difference(f"layer {layer.index} {tensor.upper()}", expected, plain(seen.get(tensor))))
    found += [Difference(f"layer {index}", "no cache", "a cache") for index in running]
    return tuple(found)
