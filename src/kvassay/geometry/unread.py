"""Layouts that are not plain dense attention, found by their keys and refused by name: a wrong number is worse than none."""

from __future__ import annotations

from typing import Any

from kvassay.geometry.keys import Keys, shown

NOT_READ = "not read yet by this build, and its cache is not that of plain attention"

# A key whose name holds one of these, and whose value says something, speaks of another layout.
SIGNS = {
    "windows and chunks": ("sliding", "swa_", "window", "attention_chunk", "attn_chunk", "chunk_size"),
    "recurrent state": (
        "mamba", "ssm", "rwkv", "wkv", "recurrent", "conv_", "conv.", "linear_attn", "linear_num", "linear_key", "linear_value",
        "linear_conv", "delta", "kda", "gla_", "lightning", "state_size", "d_state",
    ),
    "one latent in place of K and V": (
        "lora_rank", "qk_nope", "qk_rope", "nope_head", "v_head", "value_length", "_mla", "use_mla", "latent",
    ),
    "an indexer beside the cache": ("index_topk", "index_head", "index_n_head", "indexer", "sparse_attention"),
    "shared caches": ("kv_shared", "shared_kv", "k_eq_v", "kv_sharing", "reuse_layer", "cla_", "use_cla"),
    "shapes of their own per layer": (
        "global_", "per_layer", "block_configs", "num_kv_heads", "n_head_kv", "multi_query", "head_dims", "num_query_heads", "kv_channels",
        "layer_type", "layers_type", "layers_block_type", "layer_block_type", "layer_group", "attn_layer", "attention_layers", "attn_type",
        "attention_types", "full_attention", "hybrid", "pattern", "attn_config",
    ),
    "cross attention": ("cross", "encoder_layers", "num_encoder", "decoder_block", "decoder_layers", "encoder_attention"),
    "further layers": ("nextn", "mtp_", "draft", "medusa", "eagle"),
}  # fmt: skip
# Names that look like another layout but do not change what the cache holds.
HARMLESS = (
    "use_sliding_window",
    "max_window_layers",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "layer_types",
    "mlp_layer_types",
)
NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "decoder", "encoder", "vision_config", "audio_config")

# What transformers 5.19 fills in when a config.json leaves sliding_window, or the switch before it, out.
WINDOW_BY_DEFAULT = ("mistral", "ministral", "cohere2", "gemma2", "gemma3", "gemma3_text", "olmo3", "exaone4", "gpt_oss")
WINDOW_BEHIND_SWITCH = ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3")


def refuse_unread(keys: Keys, model_type: str, layers: int) -> None:
    """Raise BadInput for the first key that says the cache is not plain K and V of every token in every layer."""
    for key in NESTED:
        if keys.has(key):
            raise keys.refusal(key, f"a model inside a model is {NOT_READ}")
    if keys.values.get("is_encoder_decoder"):
        raise keys.refusal("is_encoder_decoder", f"a cross cache is {NOT_READ}")
    _refuse_layer_types(keys, layers)
    if model_type in WINDOW_BY_DEFAULT and "sliding_window" not in keys.values:
        problem = f"absent, which gives {model_type} a window in transformers; {NOT_READ} (null means no window)"
        raise keys.refusal("sliding_window", problem)
    harmless = HARMLESS if keys.values.get("use_sliding_window", model_type not in WINDOW_BEHIND_SWITCH) else (*HARMLESS, "sliding_window")
    for key, value in keys.values.items():
        if not says_something(value) or key in harmless:
            continue
        for what, signs in SIGNS.items():
            if any(sign in f"{key.lower()}_" for sign in signs):
                raise keys.refusal(key, f"{shown(value)} ({what}) is {NOT_READ}")


def says_something(value: Any) -> bool:
    """Whether a key's value switches anything on: not null, false, zero or empty."""
    return value not in (None, False, 0, "") and value != [] and value != {}


def _refuse_layer_types(keys: Keys, layers: int) -> None:
    if not keys.has("layer_types"):
        return
    kinds = keys.values["layer_types"]
    if not isinstance(kinds, list) or len(kinds) != layers:
        raise keys.refusal("layer_types", f"must be a list with one kind for each of the {layers} layers, not {shown(kinds)}")
    for index, kind in enumerate(kinds):
        if kind != "full_attention":
            raise keys.refusal("layer_types", f"layer {index} is {shown(kind)}, which is {NOT_READ}")
