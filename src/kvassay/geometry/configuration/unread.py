"""Keys that speak of a layout and that no reader understood: refused by name, since a wrong number is worse than none."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from kvassay.geometry.configuration.keys import Keys, shown

NOT_READ = "not read for this model_type, and may change what the cache holds"

# A key whose name holds one of these, and whose value says something, speaks of another layout.
SIGNS = {
    "windows and chunks": ("sliding", "swa_", "window", "attention_chunk", "attn_chunk", "chunk_size"),
    "recurrent state": (
        "mamba", "ssm", "rwkv", "wkv", "recurrent", "conv_", "conv.", "linear_attn", "linear_num", "linear_key", "linear_value",
        "linear_conv", "delta", "kda", "gla_", "lightning", "mixer", "state_size", "d_state",
    ),
    "one latent in place of K and V": (
        "lora_rank", "qk_nope", "qk_rope", "nope_head", "v_head_dim", "value_length", "_mla", "use_mla", "latent",
    ),
    "an indexer beside the cache": ("index_topk", "index_head", "index_n_head", "indexer", "sparse_attention"),
    "shared caches": ("kv_shared", "shared_kv", "k_eq_v", "kv_sharing", "reuse_layer", "cla_", "use_cla"),
    "shapes of their own per layer": (
        "global_", "per_layer", "block_configs", "num_kv_heads", "n_head_kv", "multi_query", "head_dims", "num_query_heads", "kv_channels",
        "layer_type", "layers_type", "layers_block_type", "layer_block_type", "layer_group", "attn_layer", "attention_layers", "attn_type",
        "attention_types", "full_attention", "hybrid", "pattern", "attn_config",
    ),
    "cross attention": ("cross", "encoder_layers", "num_encoder", "decoder_block", "decoder_layers", "encoder_attention"),
    "layers that run more than once and cache each time": ("ut_steps", "loop_num", "num_loops", "mean_recurrence"),
    "further layers": ("nextn", "mtp_", "draft", "medusa", "eagle"),
}  # fmt: skip
DROPS_TOKENS = ("windows and chunks", "recurrent state")
# Names that look like another layout but do not change what the cache holds.
HARMLESS = (
    "use_sliding_window",
    "max_window_layers",
    "chunk_size_feed_forward",
    "cross_attention_hidden_size",
    "mlp_layer_types",
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "num_mtp_layers",
    # Convolutions over image patches and frames (ERNIE 4.5 VL).
    "spatial_conv_size",
    "temporal_conv_size",
    "use_temporal_conv",
    # Rows of an aligner between the encoder and the model (Evolla).
    "resampler_num_latents",
)
# Keys that change what is cached in every family that has them; in a family that has not, nobody knows what they are meant to do.
SWITCHES = (
    "sliding_window", "attention_chunk_size", "kv_lora_rank", "num_kv_shared_layers", "attention_k_eq_v", "global_head_dim",
    "num_global_key_value_heads", "swa_num_key_value_heads", "swa_head_dim", "linear_attn_config", "linear_num_value_heads",
    "mamba_d_state", "ssm_state_size", "multi_query", "block_configs", "cross_attention_layers", "index_topk", "v_head_dim", "use_cla",
    "ple_layer_ids",
)  # fmt: skip
# Words in a model_type that say "recurrent" or "linear attention".
RECURRENT_NAMES = frozenset((
    "rwkv", "mamba", "retnet", "gla", "gsa", "hgrn", "delta", "deltanet", "xlstm", "hyena", "stripedhyena", "lightnet", "mesa", "comba",
))  # fmt: skip
# A list of kinds, where there is one, overrides these.
PATTERNS = ("full_attention_interval", "hybrid_override_pattern", "sliding_window_pattern", "attn_layer_period")


def refuse_unread(keys: Keys, about: Collection[str] = SIGNS) -> None:
    """Raise BadInput for the first key that speaks of a layout (of those in `about`) and that no reader asked for.

    For an unknown model_type, whose keys nobody here knows; a known one that transformers does not register may still keep windows or
    states in place of all tokens.
    """
    for key, value in keys.values.items():
        if key in keys.asked or key in HARMLESS or not says_something(value) or (value == 1 and key.endswith("_every_n")):
            continue
        if (what := speaks_of(key)) and what in about:
            raise keys.refusal(key, f"{shown(value)} ({what}) is {NOT_READ}")


def refuse_recurrent_name(keys: Keys, has_states: bool) -> None:
    """Raise BadInput for an unknown model_type that is recurrent by its name while no key says so: RWKV-6 lists sizes like a Llama."""
    words = set(re.findall("[a-z]+", keys.model_type.lower()))
    if not has_states and (named := sorted(words & RECURRENT_NAMES)):
        raise keys.refusal("model_type", f"{named[0]} layers keep a state in place of K and V, and what this one keeps is not known here")


def refuse_foreign(keys: Keys) -> None:
    """Raise BadInput for the first key of a known family that switches on a layout which the family does not have."""
    own = keys.own or frozenset()
    patterns = () if keys.values.get("layer_types") else PATTERNS
    for key in (*SWITCHES, *patterns):
        value = keys.values.get(key)
        if key not in keys.asked and key not in own and says_something(value):
            raise keys.refusal(
                key, f"{shown(value)} belongs to another layout than that of model_type {keys.model_type}; take one of them out"
            )


def speaks_of(key: str) -> str | None:
    """What kind of layout the name of a key speaks of, None where of none."""
    name = f"{key.lower()}_"
    return next((what for what, signs in SIGNS.items() if any(sign in name for sign in signs)), None)


def says_something(value: Any) -> bool:
    """Whether a key's value switches anything on: not null, false, zero, empty, or the -1 that stands for none."""
    return value not in (None, False, 0, -1, "") and value != [] and value != {}
