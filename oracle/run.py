"""Build a model with random weights, and let it fill the cache that it makes by itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ENCODER_TOKENS = 11
# Prefills of these lengths, each followed by one step of decoding: below and above every window, chunk and compression.
PREFILLS = (5, 23)

# The whole model, where the tables name a part of it that does not take the whole configuration.
WHOLE_CLASSES = {
    "musicgen": "MusicgenForConditionalGeneration",
    "musicgen_melody": "MusicgenMelodyForConditionalGeneration",
    "evolla": "EvollaForProteinText2Text",
}
# Models that take nothing without an image or sound: the part that is their language model.
LANGUAGE_MODEL = {
    **dict.fromkeys(("blip-2", "instructblip", "instructblipvideo"), "language_model"),
    "voxtral_realtime": "model.language_model",
    "blip": "text_decoder",
    "kosmos-2": "text_model",
    "pi0": "model.vlm",
}
# Encoders that read more than tokens: what they would have made of it is given to the decoder.
ENCODED = ("pp_formulanet", "switch_transformers")
# Models that make no cache, or a wrong one, unless `generate` makes it: Pix2Struct's own puts self and cross attention into one.
CACHE_OF_GENERATE = ("granite4_vision", "recurrent_gemma", "pix2struct")
# Tensors that a model keeps in its modules rather than in the cache, by attribute.
KEPT_IN_MODULES = {"recurrent_gemma": ("conv1d_state", "recurrent_states")}
# The prompt of CPM-Ant stands in front of all tokens in every call.
ALL_TOKENS_EACH_STEP = ("cpmant",)
# Further inputs, by shape.
FURTHER: dict[str, dict[str, tuple[int, ...]]] = {
    "mllama": {"cross_attention_states": (1, ENCODER_TOKENS, 64)},
    "udop": {"bbox": (1, ENCODER_TOKENS, 4)},
    "blip_text_model": {"encoder_hidden_states": (1, ENCODER_TOKENS, 32)},
    "idefics": {"image_encoder_embeddings": (1, 1, ENCODER_TOKENS, 32), "image_attention_mask": (1, 1, 1)},
    "voxtral_realtime_text": {"t_cond": (1, 1, 64)},
}
# Models that must not see their encoder's rows again: they would cache them twice.
ENCODED_ONCE = ("mllama", "musicgen_melody")
# Decoders of sound with several codebooks: rows of ids by default, a last dimension here.
CODEBOOKS_LAST = ("dia", "kyutai_speech_to_text")
# Where the first cross attention does not say how wide its encoder's rows are: a projection stands before it.
ENCODER_WIDTHS = {"cohere_asr": 32}
CROSS_KEY = re.compile(r"(cross|encoder_attn|encdec|encoder_decoder).*\.(k|key|k_proj)$", re.IGNORECASE)
# What keeps no cache of K and V or of states between calls, or cannot run alone.
WITHOUT = {
    "openai-gpt": "the class keeps nothing between calls",
    "xlm": "the class returns no cache, and makes a new one in each call",
    "xlnet": "keeps hidden states (mems) in place of K and V",
    "reformer": "keeps hidden states and hash buckets in place of K and V",
    "gemma4_assistant": "a draft: it reads the caches of the model that it drafts for, and has none",
    "gemma4_unified_assistant": "a draft: it reads the caches of the model that it drafts for, and has none",
    "blt": "the library's own route fails: BltConfig has no num_hidden_layers, which DynamicCache(config) asks for",
}


def build(model_type: str, config: Any) -> Any:
    """The model in BF16, so that a state in FP32 shows; by the table that gives it its encoder where it has one."""
    import torch
    import transformers
    from transformers import (
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
        AutoModelForSeq2SeqLM,
        AutoModelForSpeechSeq2Seq,
    )

    if hasattr(config, "is_decoder") and not getattr(config, "is_encoder_decoder", False):
        config.is_decoder = True
    torch.manual_seed(0)
    if model_type in WHOLE_CLASSES:
        return getattr(transformers, WHOLE_CLASSES[model_type])._from_config(config, dtype=torch.bfloat16).eval()
    factories = (AutoModelForSpeechSeq2Seq, AutoModelForSeq2SeqLM, AutoModelForImageTextToText, AutoModelForCausalLM)
    factory = next(factory for factory, names in zip(factories, _tables(), strict=True) if model_type in names)
    with _towers_of_timm_left_out():
        return factory.from_config(config, dtype=torch.bfloat16).eval()


@contextmanager
def _towers_of_timm_left_out() -> Iterator[None]:
    """Encoders of images that come from another library are never run, so nothing is built for them."""
    import torch
    from transformers import AutoModel

    original = AutoModel.from_config

    def from_config(config: Any, **named: Any) -> Any:
        return torch.nn.Identity() if type(config).__name__ in ("TimmWrapperConfig", "Gemma3nVisionConfig") else original(config, **named)

    AutoModel.from_config = from_config
    try:
        yield
    finally:
        AutoModel.from_config = original


def _tables() -> tuple[dict[str, Any], ...]:
    from transformers.models.auto import modeling_auto

    return (
        modeling_auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    )


def all_model_types() -> list[str]:
    """Every model type with a causal, image-text, encoder-decoder or speech class."""
    return list(dict.fromkeys(name for table in reversed(_tables()) for name in table))


def fill(model: Any, tokens: int) -> Iterator[tuple[int, Any]]:
    """Tokens in the cache, and the cache: after a prefill of `tokens`, then after one more."""
    import torch

    model_type = model.config.model_type
    speaker = model.get_submodule(LANGUAGE_MODEL.get(model_type, ""))
    ids = torch.randint(5, 80, (_codebooks(speaker), tokens + 1))
    decodes = speaker.config.is_encoder_decoder
    name = "decoder_input_ids" if decodes else "input_ids"
    always, once = _inputs(speaker)
    own = {"past_key_values": _cache_of_generate(model.config)} if model_type in CACHE_OF_GENERATE else {}
    with torch.no_grad():
        first = speaker(**{name: _as_read(model_type, ids[:, :-1])}, use_cache=True, **always, **once, **own)
        if not own:
            own = {key: first[key] for key in ("past_key_values", "cache_params", "state") if first.get(key) is not None}
        if not own:
            raise RuntimeError("the model returns no cache")
        yield tokens, _all_kept(model, own)
        step = ids if model_type in ALL_TOKENS_EACH_STEP else ids[:, -1:]
        second = speaker(**{name: _as_read(model_type, step)}, use_cache=True, **own, **always)
        yield tokens + 1, _all_kept(model, {key: second.get(key) or kept for key, kept in own.items()})


def _cache_of_generate(config: Any) -> Any:
    """As `GenerationMixin._prepare_cache_for_generation` makes it."""
    from transformers import DynamicCache, EncoderDecoderCache

    decoder = config.get_text_config(decoder=True)
    cache = DynamicCache(config=decoder)
    return EncoderDecoderCache(cache, DynamicCache(config=decoder)) if config.is_encoder_decoder else cache


def _all_kept(model: Any, own: dict[str, Any]) -> Any:
    attributes = KEPT_IN_MODULES.get(model.config.model_type, ())
    inside = {f"{name}.{each}": getattr(module, each, None) for name, module in model.named_modules() for each in attributes}
    (cache,) = own.values()
    return {"cache": cache} | inside if attributes else cache


def _codebooks(model: Any) -> int:
    decoder = getattr(model.config, "decoder", None) or getattr(model.config, "decoder_config", None) or model.config
    books = getattr(decoder, "num_codebooks", None) or getattr(decoder, "num_channels", None)
    return books + 1 if model.config.model_type == "kyutai_speech_to_text" else books if decoder is not model.config and books else 1


def _as_read(model_type: str, ids: Any) -> Any:
    return ids.T.unsqueeze(0).contiguous() if model_type in CODEBOOKS_LAST else ids


def _inputs(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What goes with the tokens in every call, and in the first: tokens of an encoder, or what it would have made of images or sound."""
    import torch
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    config = model.config
    further = {name: torch.rand(shape, dtype=torch.bfloat16) for name, shape in FURTHER.get(config.model_type, {}).items()}
    if config.is_encoder_decoder and "input_ids" in inspect.signature(model.forward).parameters and config.model_type not in ENCODED:
        further["input_ids"] = torch.randint(5, 80, (1, ENCODER_TOKENS))
    elif config.is_encoder_decoder:
        rows = torch.randn(1, ENCODER_TOKENS, _encoder_width(model), dtype=torch.bfloat16)
        encoded = BaseModelOutputWithPooling(last_hidden_state=rows, pooler_output=rows)
        encoded.attention_mask = encoded.router_logits = None
        further["encoder_outputs"] = encoded
    return ({}, further) if config.model_type in ENCODED_ONCE else (further, {})


def _encoder_width(model: Any) -> int:
    """Elements of an encoder's row: what the first cross attention projects to keys."""
    if model.config.model_type in ENCODER_WIDTHS:
        return ENCODER_WIDTHS[model.config.model_type]
    keys = (module for name, module in model.named_modules() if CROSS_KEY.search(name))
    return int(next((key.in_features for key in keys), model.config.get_text_config().hidden_size))
