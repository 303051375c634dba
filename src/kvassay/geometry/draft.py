"""Layers that only speculation uses: multi-token prediction in the model's own file, or a draft model in another."""

from __future__ import annotations

from kvassay.geometry.keys import MOST_LAYERS, Keys
from kvassay.geometry.price import native_pairs, with_price
from kvassay.records.geometry import Draft, Geometry, Layer

COUNTS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "num_mtp_modules")


def own_draft_layers(keys: Keys, layers: tuple[Layer, ...]) -> tuple[str, tuple[Layer, ...]] | None:
    """The key, and the prediction layers that it counts: each keeps what the model's last attention layer keeps."""
    for key in COUNTS:
        if not keys.has(key):
            continue
        count = keys.whole(key, MOST_LAYERS, least=0)
        like = next((layer for layer in reversed(layers) if layer.owner and layer.encoder_tokens is None and layer.window is None), None)
        if not count or like is None:
            return None
        first = 1 + max(layer.index for layer in layers)
        return key, tuple(
            like.model_copy(update={"index": first + at, "module": f"model.layers.{first + at}.self_attn"}) for at in range(count)
        )
    return None


def draft_of(geometry: Geometry, source: str, layers: tuple[Layer, ...], context_tokens: int) -> Draft:
    """`layers` priced apart, natively, at the same context. `geometry`: whose dtype they have."""
    bare = geometry.model_copy(update={"layers": layers, "draft": None})
    priced = with_price(bare, native_pairs(bare), context_tokens)
    return Draft(source=source, layers=layers, bytes=priced.bytes, total_bytes=priced.total_bytes)
