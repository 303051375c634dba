"""Which cache layouts the engine of this project serves: what pricing can read goes further."""

from __future__ import annotations

from kvassay.records.geometry import Geometry


def why_layout_unserved(geometry: Geometry) -> str | None:
    """One sentence when the reference engine cannot serve these layers, else None: it serves full attention in every layer."""
    for position, layer in enumerate(geometry.layers):
        if layer.kind != "full" or not layer.owner or layer.indexer_dim or layer.states or layer.index != position:
            what = f"reads layer {layer.reads_from}'s cache" if layer.reads_from is not None else f"keeps a cache of kind {layer.kind}"
            return f"layer {layer.index} {what}; the reference engine serves models whose every layer keeps K and V of all tokens"
    return None
