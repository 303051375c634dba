"""Layers that attend to an image alone, in place of the text (Llama 3.2 Vision)."""

from __future__ import annotations

from kvassay.geometry.configuration.keys import MOST_LAYERS, MOST_TOKENS, Keys, shown
from kvassay.geometry.configuration.language_model import LanguageModel
from kvassay.geometry.layouts.attention import grouped
from kvassay.records.geometry import Layer


def cross_layers(model: LanguageModel, layers: int, encoder_tokens: int | None) -> list[Layer]:
    """Self-attention layers, and cross layers where `cross_attention_layers` names them. Raises BadInput."""
    keys = model.keys
    cross = set(keys.wholes("cross_attention_layers", most=MOST_LAYERS))
    if beyond := sorted(index for index in cross if index >= layers):
        raise keys.refusal("cross_attention_layers", f"names layer {beyond[0]}, but there are {layers}")
    rows = _image_rows(model, encoder_tokens)
    return [_layer(keys, index, rows if index in cross else None) for index in range(layers)]


def _image_rows(model: LanguageModel, encoder_tokens: int | None) -> int:
    """Rows of one image of all tiles, unless `encoder_tokens` says how many. Raises BadInput when the encoder does not tell."""
    if encoder_tokens is not None:
        return encoder_tokens
    holder = next((keys for keys in reversed(model.outer) if keys.has("vision_config")), None)
    if holder is None:
        raise model.keys.refusal("cross_attention_layers", "how many image tokens they keep is not in the file; give --encoder-tokens")
    vision = holder.inside("vision_config")
    side, patch = (vision.maybe(key, MOST_TOKENS) for key in ("image_size", "patch_size"))
    if side is None or patch is None:
        raise vision.refusal("image_size", "missing: how many image tokens a cross layer keeps is not in the file; give --encoder-tokens")
    tiles = vision.maybe("max_num_tiles", MOST_TOKENS) or 1
    rows = tiles * ((side // patch) ** 2 + 1)
    if rows > MOST_TOKENS:
        problem = f"with patch_size and max_num_tiles makes {shown(rows)} rows, more than {MOST_TOKENS:,}; correct them"
        raise vision.refusal("image_size", problem)
    model.keys.note(f"encoder tokens: one image of {tiles} tiles, {rows:,} rows ({vision.name('image_size')}, patch_size, max_num_tiles)")
    return rows


def _layer(keys: Keys, index: int, rows: int | None) -> Layer:
    shape = grouped(keys, index, "full" if rows is None else "cross")
    return Layer(
        index=index,
        kind="full" if rows is None else "cross",
        owner=True,
        reads_from=None,
        kv_heads=shape.kv_heads,
        k_dim=shape.k_dim,
        v_dim=shape.v_dim,
        window=None,
        module=f"model.layers.{index}.{'self' if rows is None else 'cross'}_attn",
        encoder_tokens=rows,
    )
