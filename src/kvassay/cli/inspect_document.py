"""`kvassay inspect --json`: the keys of geometry.json, and what the options asked for beside them."""

from __future__ import annotations

from typing import Any

from kvassay.cli.inspect_look import Seen
from kvassay.geometry.price import allocated_growth_per_token, effective_bits, layer_bytes_per_token, native_pairs
from kvassay.records.geometry import Geometry


def as_document(seen: Seen) -> dict[str, Any]:
    """JSON of everything seen. What was not asked for, or the model does not have, is left out rather than null."""
    asked, geometry = seen.asked, seen.geometry
    document = geometry.model_dump(mode="json", exclude={"side_files", "draft"})
    document["formats"] = [
        {"index": layer.index, "kind": layer.kind, "k": pair.k, "v": pair.v}
        for layer, pair in zip(geometry.owners, seen.pairs, strict=True)
    ]
    document["requests"] = asked.requests
    document["total_bytes_all_requests"] = asked.requests * geometry.total_bytes
    document["storage"] = {
        "windows": asked.storage.windows,
        "head_align_elements": asked.storage.head_align,
        "block_tokens": asked.storage.block_tokens,
        "mla": asked.choice.mla,
    }
    document["allocated"] = {
        "total_bytes": geometry.total_bytes,
        "growth_per_token": allocated_growth_per_token(geometry, seen.pairs, asked.storage),
    }
    for key, value in (("indexer", _indexer(geometry)), ("cross", cross_part(seen)), ("recurrent", _recurrent(geometry))):
        if value:
            document[key] = value
    if geometry.draft is not None:
        document["draft"] = geometry.draft.model_dump(mode="json")
    if seen.rank is not None:
        document["per_rank"] = {"ranks": asked.ranks, **seen.rank.bytes.model_dump(), "total_bytes": seen.rank.total_bytes}
    document |= savings(seen)
    if seen.engine is not None:
        from kvassay.cli.inspect_engine_document import engine_parts

        document |= engine_parts(seen.engine)
    return document


def savings(seen: Seen) -> dict[str, float]:
    """Effective bits, and the share of a native request that the chosen formats save; nothing where all of them are native."""
    if seen.pairs == native_pairs(seen.geometry):
        return {}
    bits, saved = effective_bits(seen.geometry, seen.pairs), 1 - seen.geometry.total_bytes / seen.native_bytes
    return {"bits_per_element": bits, "saved_fraction": saved}


def _indexer(geometry: Geometry) -> dict[str, int]:
    layers = [layer for layer in geometry.layers if layer.indexer_dim]
    if not layers:
        return {}
    return {
        "layers": len(layers),
        "elements_per_row": layers[0].indexer_dim,
        "bytes_per_token": geometry.bytes.indexer_per_token,
    }


def cross_part(seen: Seen) -> dict[str, int]:
    """Layers that keep K and V of an encoder's rows, and the bytes of one row in all of them; nothing where none does."""
    geometry = seen.geometry
    cross = [(layer, pair) for layer, pair in zip(geometry.owners, seen.pairs, strict=True) if layer.encoder_tokens is not None]
    if not cross:
        return {}
    per_row = sum(layer_bytes_per_token(layer, pair, geometry.native_dtype) for layer, pair in cross)
    rows = cross[0][0].encoder_tokens or 0
    return {"layers": len(cross), "encoder_tokens": rows, "bytes_per_encoder_token": per_row, "bytes": rows * per_row}


def _recurrent(geometry: Geometry) -> dict[str, int]:
    holders = [layer for layer in geometry.layers if layer.states]
    return {"layers": len(holders), "bytes": sum(state.bytes for layer in holders for state in layer.states)} if holders else {}
