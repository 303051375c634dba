"""Which cache layouts the engine of this project serves: what pricing can read goes further."""

from __future__ import annotations

from kvassay.records.geometry import Geometry, Layer


def why_layout_unserved(geometry: Geometry) -> str | None:
    """One sentence when the reference engine cannot serve these layers, else None: it serves full attention in every layer."""
    for position, layer in enumerate(geometry.layers):
        if what := _what_is_not_plain(layer, position):
            return f"layer {layer.index} {what}; the reference engine serves models whose every layer keeps K and V of all tokens"
    return None


def _what_is_not_plain(layer: Layer, position: int) -> str | None:
    if layer.reads_from is not None:
        return f"reads layer {layer.reads_from}'s cache"
    if layer.kind != "full":
        return f"keeps a cache of kind {layer.kind}"
    if layer.indexer_dim:
        return "has an indexer beside its cache"
    if layer.states:
        return "keeps a state beside its cache"
    return None if layer.index == position else f"is number {position} of those with a cache of their own"
