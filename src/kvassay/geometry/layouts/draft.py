"""Layers that only speculation uses: multi-token prediction in the model's own file, or a draft model in another."""

from __future__ import annotations

from kvassay.geometry.configuration.keys import MOST_LAYERS, Keys
from kvassay.geometry.price import native_pairs, with_price
from kvassay.records.geometry import Draft, Geometry, Layer

COUNTS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "num_mtp_modules")
WINDOWED_PREDICTION = ("mimo_v2_flash",)


def own_draft_layers(keys: Keys, layers: tuple[Layer, ...]) -> tuple[str, tuple[Layer, ...]] | None:
    """The key, and the prediction layers that it counts: each keeps what the model's last attention layer of that kind keeps.

    A prediction layer has an indexer of its own where the model's layers share theirs.
    """
    key = next((key for key in COUNTS if keys.has(key)), None)
    count = keys.whole(key, MOST_LAYERS, least=0) if key else 0
    windowed = keys.model_type in WINDOWED_PREDICTION or _kind_behind(keys, 1 + max(layer.index for layer in layers)) == "sliding_attention"
    like = [layer for layer in layers if layer.owner and layer.encoder_tokens is None and (layer.window is not None) is windowed]
    if key is None or not count or not like:
        return None
    first = 1 + max(layer.index for layer in layers)
    indexer = max(layer.indexer_dim for layer in layers)
    return key, tuple(
        like[-1].model_copy(update={"index": at, "module": f"model.layers.{at}.self_attn", "indexer_dim": indexer})
        for at in range(first, first + count)
    )


def _kind_behind(keys: Keys, layers: int) -> object:
    """What `layer_types` names behind the model's own layers, None where it stops there (Step-3.5 goes on)."""
    named = keys.values.get("layer_types")
    return named[layers] if isinstance(named, list) and len(named) > layers else None


def draft_of(geometry: Geometry, source: str, layers: tuple[Layer, ...], context_tokens: int) -> Draft:
    """`layers` priced apart, natively, at the same context. `geometry`: whose dtype they have."""
    bare = geometry.model_copy(update={"layers": layers, "draft": None})
    priced = with_price(bare, native_pairs(bare), context_tokens)
    return Draft(source=source, layers=layers, bytes=priced.bytes, total_bytes=priced.total_bytes)
