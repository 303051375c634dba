"""Encoder-decoders: each decoder layer keeps its own tokens, and once per request K and V of the encoder's rows."""

from __future__ import annotations

from kvassay.geometry.configuration.keys import MOST_HEADS, MOST_LAYERS, MOST_TOKENS, MOST_WIDTH, Keys
from kvassay.geometry.configuration.language_model import LanguageModel
from kvassay.geometry.layouts.kinds import kinds_of, last_of_every, same
from kvassay.records.geometry import Layer

LAYERS = ("decoder_layers", "num_decoder_layers", "decoder_num_hidden_layers", "num_hidden_layers", "num_layers")
HEADS = ("decoder_attention_heads", "num_decoder_attention_heads", "decoder_num_attention_heads", "num_attention_heads", "num_heads")
KV_HEADS = ("decoder_num_key_value_heads", "num_key_value_heads")
WIDTHS = ("d_model", "hidden_size")
HEAD_DIMS = ("d_kv", "head_dim")
ENCODER_TOKENS = ("max_source_positions", "max_encoder_position_embeddings", "n_positions", "max_position_embeddings")

# Encoders whose rows are an image's patches, and the tokens beside them.
PATCH_TOKENS = {"vit": 1, "beit": 1, "deit": 2, "blip_vision_model": 1}
# Rotary encoders of sound: their rows grow with the recording, and the only limit in the file is the decoder's.
UNBOUNDED_ENCODERS = ("moonshine", "moonshine_streaming")

# Decoders that attend to an image encoder in every layer without calling themselves encoder-decoders: the key of that encoder.
IMAGE_READERS = {"blip_text_model": "vision_config"}
# Names of a decoder layer's two attentions in transformers, `{}` for the layer's index.
USUAL_MODULES = ("model.decoder.layers.{}.self_attn", "model.decoder.layers.{}.encoder_attn")
T5_MODULES = ("decoder.block.{}.layer.0.SelfAttention", "decoder.block.{}.layer.1.EncDecAttention")
MODULES = {
    **dict.fromkeys(("t5", "mt5", "umt5", "longt5", "switch_transformers", "pop2piano", "udop"), T5_MODULES),
    **dict.fromkeys(("t5_gemma_module", "t5gemma_decoder"), (USUAL_MODULES[0], "model.decoder.layers.{}.cross_attn")),
    **dict.fromkeys(("seamless_m4t", "seamless_m4t_v2"), ("text_decoder.layers.{}.self_attn", "text_decoder.layers.{}.cross_attention")),
    "t5gemma2_decoder": (USUAL_MODULES[0], USUAL_MODULES[0]),
    "nllb-moe": (USUAL_MODULES[0], "model.decoder.layers.{}.cross_attention"),
    "blip_text_model": (
        "text_decoder.bert.encoder.layer.{}.attention.self",
        "text_decoder.bert.encoder.layer.{}.crossattention.self",
    ),
    "led": ("led.decoder.layers.{}.self_attn", "led.decoder.layers.{}.encoder_attn"),
    "prophetnet": ("prophetnet.decoder.layers.{}.self_attn", "prophetnet.decoder.layers.{}.cross_attn"),
    "speecht5": ("speecht5.decoder.wrapped_decoder.layers.{}.self_attn", "speecht5.decoder.wrapped_decoder.layers.{}.encoder_attn"),
}


def is_encoder_decoder(model: LanguageModel) -> bool:
    """Whether the decoder also attends to an encoder's rows in every layer."""
    return (
        model.keys.model_type in IMAGE_READERS
        or any(keys.flag("is_encoder_decoder") for keys in (model.keys, *model.outer))
        or any(keys.has("encoder") and keys.has("decoder") for keys in model.outer)
    )


def encoder_decoder_layers(model: LanguageModel, encoder_tokens: int | None) -> tuple[Layer, ...]:
    """A self and a cross cache per decoder layer. Raises BadInput naming the key, --encoder-tokens when nothing bounds the encoder."""
    keys = model.keys
    layers = _of(keys, LAYERS, MOST_LAYERS)
    heads = _of(keys, HEADS, MOST_HEADS)
    kv_heads = _of(keys, KV_HEADS, MOST_HEADS, heads)
    if heads % kv_heads:
        raise keys.refusal("num_key_value_heads", f"{kv_heads} does not divide the decoder's {heads} heads")
    head_dim = _head_dim(keys, heads)
    rows = encoder_tokens if encoder_tokens is not None else _encoder_tokens(model)
    rule = last_of_every(2) if keys.model_type in ("t5_gemma_module", "t5gemma_decoder") else same("full")
    kinds = kinds_of(keys, layers, rule)
    if other := next((kind for kind in kinds if kind not in ("full", "sliding")), None):
        raise keys.refusal("layer_types", f"a layer of kind {other} is not known in an encoder-decoder; known: full, sliding")
    own_module, cross_module = MODULES.get(keys.model_type, USUAL_MODULES)
    made = []
    for index, kind in enumerate(kinds):
        window = keys.whole("sliding_window", MOST_TOKENS) if kind == "sliding" else None
        own = Layer(
            index=index,
            kind="sliding" if window else "full",
            owner=True,
            reads_from=None,
            kv_heads=kv_heads,
            k_dim=head_dim,
            v_dim=head_dim,
            window=window,
            module=own_module.format(index),
        )
        cross = {
            "kind": "cross",
            "window": None,
            "encoder_tokens": rows,
            "module": cross_module.format(index),
            "kv_heads": keys.maybe("cross_num_key_value_heads", MOST_HEADS) or kv_heads,
            "k_dim": keys.maybe("cross_head_dim", MOST_HEADS) or head_dim,
            "v_dim": keys.maybe("cross_head_dim", MOST_HEADS) or head_dim,
        }
        made += [own, own.model_copy(update=cross)]
    return tuple(made)


def _of(keys: Keys, names: tuple[str, ...], most: int, otherwise: int | None = None) -> int:
    """The whole number under the first name that the file has, then what the class fills in. Raises BadInput."""
    for name in names:
        if keys.has(name):
            return keys.whole(name, most)
    for name in names:
        if keys.get(name) is not None:
            return keys.whole(name, most)
    if otherwise is not None:
        return otherwise
    raise keys.refusal(names[0], "missing, and nothing is assumed for it")


def _head_dim(keys: Keys, heads: int) -> int:
    for name in HEAD_DIMS:
        if keys.get(name) is not None:
            return keys.whole(name, MOST_HEADS)
    width = _of(keys, WIDTHS, MOST_WIDTH)
    if width % heads:
        raise keys.refusal("d_model", f"{width} is not a multiple of the decoder's {heads} heads")
    return width // heads


def _image_rows(model: LanguageModel) -> int | None:
    """Rows of an image encoder beside the decoder, None where the encoder reads text. Raises BadInput where its rows are not patches."""
    encoder = IMAGE_READERS.get(model.keys.model_type, "encoder")
    holder = next((keys.inside(encoder) for keys in model.outer if keys.has(encoder)), None)
    if holder is None or not holder.has("image_size"):
        return None
    if holder.values.get("model_type") not in PATCH_TOKENS:
        raise holder.refusal("image_size", "how many rows this encoder makes of an image is not in the file; give --encoder-tokens")
    side, patch = holder.whole("image_size", MOST_WIDTH), holder.whole("patch_size", MOST_WIDTH)
    rows = (side // patch) ** 2 + PATCH_TOKENS[holder.model_type]
    model.keys.note(f"encoder tokens: {rows:,}, one image ({holder.name('image_size')}, patch_size)")
    return rows


def _encoder_tokens(model: LanguageModel) -> int:
    if (rows := _image_rows(model)) is not None:
        return rows
    for keys in (model.keys, *model.outer) if model.keys.model_type not in UNBOUNDED_ENCODERS else ():
        holders = [keys, *([keys.inside("encoder")] if isinstance(keys.values.get("encoder"), dict) else [])]
        for holder in reversed(holders):
            for name in ENCODER_TOKENS:
                if holder.has(name) or holder.defaults.get(name) is not None:
                    rows = holder.whole(name, MOST_TOKENS)
                    model.keys.note(f"encoder tokens: {rows:,}, from {holder.name(name)}")
                    return rows
    raise model.keys.refusal(
        "max_source_positions", "missing: how many rows the cross cache keeps is not in the file; give --encoder-tokens"
    )
