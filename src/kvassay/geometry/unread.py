"""Layouts that are not plain dense attention, found by their keys and refused by name: a wrong number is worse than none."""

from __future__ import annotations

import re
from typing import Any

from kvassay.geometry.keys import Keys, shown

NOT_READ = "not read yet by this build, and its cache is not that of plain attention"

# Keys whose names look like another layout but do not change what the cache holds.
HARMLESS = re.compile(
    r"(use_sliding_window|max_window_layers|no_rope_layers|no_rope_layer_interval|chunk_size_feed_forward|cross_attention_hidden_size"
    r"|layer_norm.*|.*initializer.*|layer_types)$"
)
OTHER_LAYOUT = re.compile(
    r"""sliding|swa(_|$)|window|attention_chunk|attn_chunk|chunk_size          # windows and chunks
    |mamba|ssm|rwkv|wkv|recurrent|conv(_|$)|linear_attn|linear_(num|key|value|conv)|delta|kda|gla(_|$)|lightning|state_size|d_state
    |lora_rank|qk_(nope|rope)|nope_head|v_head|value_length|_mla|mla(_|$)|latent   # one latent in place of K and V
    |index_(topk|head|n_head)|indexer|sparse_attention
    |kv_shared|shared_kv|k_eq_v|kv_sharing|reuse_layer|cla_|use_cla
    |global_|per_layer|block_configs|head_count_list|num_kv_heads|n_head_kv|multi_query|head_dims|num_query_heads
    |layers?_(block_)?types?|layer_group|attn_layer|attention_layer|attn_type|attention_types|full_attention|hybrid|pattern
    |cross|encoder_layers|num_encoder|decoder_(block|layers)|encoder_attention
    |nextn|mtp|draft|medusa|eagle|num_parallel_samples|attn_config|kv_channels""",
    re.VERBOSE,
)
NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "decoder", "encoder", "vision_config", "audio_config")

# transformers fills these in when a config.json leaves them out (5.19, class defaults).
WINDOW_BY_DEFAULT = ("mistral", "ministral", "cohere2", "gemma2", "gemma3", "gemma3_text", "olmo3", "exaone4", "gpt_oss", "starcoder")
WINDOW_BEHIND_SWITCH = ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3")


def refuse_unread(keys: Keys, model_type: str, layers: int) -> None:
    """Raise BadInput for the first key that says the cache is not plain K and V of every token in every layer."""
    for key in NESTED:
        if keys.has(key):
            raise keys.refusal(key, f"a model inside a model is {NOT_READ}")
    if keys.values.get("is_encoder_decoder"):
        raise keys.refusal("is_encoder_decoder", f"a cross cache is {NOT_READ}")
    _refuse_layer_types(keys, layers)
    switched_off = not keys.values.get("use_sliding_window", model_type not in WINDOW_BEHIND_SWITCH)
    if model_type in WINDOW_BY_DEFAULT and "sliding_window" not in keys.values:
        raise keys.refusal(
            "sliding_window", f"absent, which gives {model_type} a window in transformers; {NOT_READ} (null means no window)"
        )
    for key, value in keys.values.items():
        name = key.lower()
        if not _says_something(value) or HARMLESS.match(name) or not OTHER_LAYOUT.search(name):
            continue
        if name == "sliding_window" and switched_off:
            continue
        raise keys.refusal(key, f"{shown(value)} is {NOT_READ}")


def _refuse_layer_types(keys: Keys, layers: int) -> None:
    if not keys.has("layer_types"):
        return
    kinds = keys.values["layer_types"]
    if not isinstance(kinds, list) or len(kinds) != layers:
        raise keys.refusal("layer_types", f"must be a list with one kind for each of the {layers} layers, not {shown(kinds)}")
    for index, kind in enumerate(kinds):
        if kind != "full_attention":
            raise keys.refusal("layer_types", f"layer {index} is {shown(kind)}, which is {NOT_READ}")


def _says_something(value: Any) -> bool:
    return value is not None and value is not False and value != 0 and value != [] and value != {} and value != ""
