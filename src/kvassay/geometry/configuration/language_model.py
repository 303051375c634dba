"""Which part of a configuration is the language model: multimodal files nest it, some more than once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvassay.geometry.configuration.class_defaults import class_defaults
from kvassay.geometry.configuration.keys import Keys
from kvassay.geometry.configuration.names import SPELLINGS, keys_of

NESTS = (
    "text_config",
    "llm_config",
    "language_config",
    "thinker_config",
    "language_model_config",
    "llm_cfg",
    "lm_config",
    "vlm_config",
    "decoder",
    "decoder_config",
    "transformer_layer_config",  # a draft model in the format of speculators
)
TOWERS = ("vision_config", "audio_config", "vision_tower_config", "speech_config", "encoder_config")
# What only an encoder of images or sound writes into its own configuration.
ENCODER_SIGNS = ("image_size", "patch_size", "num_channels", "num_mel_bins", "conv_dim", "feat_extract_norm")
MOST_NESTS = 4


@dataclass(frozen=True)
class LanguageModel:
    """keys: the language model's own. outer: those that hold it, from the file's top inwards (encoder sizes, dtype).

    model_type: of the whole file.
    """

    keys: Keys
    outer: tuple[Keys, ...]
    model_type: str


def language_model(values: Mapping[str, Any], where: str) -> LanguageModel:
    """The language model of a whole configuration. Raises BadInput, naming the key, when there is none."""
    outer: list[Keys] = []
    nested_in, expected = "", None
    while True:
        keys = keys_of(values, where, nested_in=nested_in, model_type=expected)
        row = class_defaults(keys.model_type)
        nest = _nest(keys, row.text)
        if nest is None:
            _refuse_encoders(keys, outer)
            model_type = (outer[0] if outer else keys).model_type
            if row.text and keys.has("num_hidden_layers"):
                # An older file that keeps its language model's keys beside the encoder's.
                keys = keys_of({**values, "model_type": row.text[1]}, where, nested_in=nested_in)
            return LanguageModel(keys, tuple(outer), model_type)
        if len(outer) == MOST_NESTS:
            raise keys.refusal(nest, f"nested more than {MOST_NESTS} deep")
        outer.append(keys)
        expected = row.text[1] if row.text and row.text[0] == nest else None
        values = keys.mapping(nest)
        nested_in = f"{nested_in}.{nest}" if nested_in else nest


def _nest(keys: Keys, named: tuple[str, str] | None) -> str | None:
    """The key under which the language model stands, None when these keys are its own."""
    if named is not None and keys.has(named[0]):
        return named[0]
    return next((key for key in NESTS if keys.has(key) and keys.mapping(key)), None)


def _refuse_encoders(keys: Keys, outer: list[Keys]) -> None:
    sized = any(keys.has(name) for name in ("num_hidden_layers", *SPELLINGS["num_hidden_layers"], "decoder_layers"))
    tower = next((key for key in TOWERS if keys.has(key)), None)
    if tower and not sized and keys.own is None:
        raise keys.refusal(
            "text_config", f"missing: {tower} describes an encoder, which keeps no cache, and no language model stands beside it"
        )
    sign = next((key for key in ENCODER_SIGNS if keys.has(key)), None)
    if sign and not outer and not tower and not any(keys.has(key) for key in ("vocab_size", "is_encoder_decoder", "num_key_value_heads")):
        raise keys.refusal(sign, "an encoder of images or sound, which keeps no KV cache; name the language model's configuration")


def native_dtype(model: LanguageModel, known: Mapping[str, object]) -> str:
    """The dtype of weights and cache: torch's name. The outermost that names one decides. Raises BadInput."""
    for keys in (*model.outer, model.keys):
        named = {key: keys.text(key).removeprefix("torch.") for key in ("dtype", "torch_dtype") if keys.has(key)}
        if not named:
            continue
        if len(set(named.values())) > 1:
            raise keys.refusal("dtype", f"{named['dtype']!r} contradicts torch_dtype {named['torch_dtype']!r}")
        key, dtype = next(iter(named.items()))
        if dtype not in known:
            raise keys.refusal(key, f"{dtype!r} is no cache dtype; known: {', '.join(known)}")
        return dtype
    model.keys.note("dtype is absent: bfloat16 assumed")
    return "bfloat16"
