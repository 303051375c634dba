"""Small configurations of every class that transformers registers, by rules on key names rather than by a list of models."""

from __future__ import annotations

import dataclasses
from typing import Any

LAYERS = 12

# Numbers differ pairwise where they may, so that two formulas cannot agree by accident.
SMALL: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "emb_dim", "embed_dim", "embedding_dim", "dim", "decoder_hidden_size"), 64),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "num_decoder_layers"), LAYERS),
    **dict.fromkeys(("decoder_num_hidden_layers", "text_num_hidden_layers", "num_blocks"), LAYERS),
    # The library sizes the decoder's cache by the encoder's number of layers in some classes: equal numbers run.
    **dict.fromkeys(("encoder_layers", "encoder_num_hidden_layers", "num_encoder_layers"), LAYERS),
    **dict.fromkeys(("speech_encoder_layers", "depth"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "attention_heads", "decoder_attention_heads"), 4),
    "encoder_attention_heads": 4,
    **dict.fromkeys(("num_decoder_attention_heads", "num_encoder_attention_heads", "decoder_num_attention_heads", "num_heads"), 4),
    **dict.fromkeys(("encoder_num_attention_heads", "speech_encoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads", "encoder_num_key_value_heads", "decoder_num_key_value_heads"), 2),
    **dict.fromkeys(("head_dim", "d_kv", "kv_channels", "attention_head_dim", "dim_head", "d_head", "attention_head_size"), 24),
    "v_head_dim": 12, "kv_lora_rank": 40, "q_lora_rank": 20, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "qk_head_dim": None,
    "index_head_dim": 32, "index_n_heads": 2, "index_topk": 4, "o_lora_rank": 16, "o_groups": 2,
    "num_global_key_value_heads": 1, "global_head_dim": 40, "swa_num_key_value_heads": 4, "swa_head_dim": 20, "swa_num_attention_heads": 4,
    "num_kv_shared_layers": 4, "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 96, "laurel_rank": 8,
    "sliding_window": 7, "sliding_window_size": 7, "attention_window_size": 7, "window_size": 7, "local_attention": 14,
    "attention_chunk_size": 9, "max_window_layers": 5, "use_sliding_window": True,
    **dict.fromkeys(("intermediate_size", "ffn_dim", "decoder_ffn_dim", "encoder_ffn_dim", "moe_intermediate_size", "d_ff"), 48),
    **dict.fromkeys(("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "expert_ffn_hidden_size"), 48),
    **dict.fromkeys(("ffn_hidden_size", "shared_intermediate_size", "speech_encoder_intermediate_size", "share_expert_dim"), 48),
    **dict.fromkeys(("intermediate_size_mlp", "n_inner", "dense_intermediate_size", "moe_shared_intermediate_size"), 48),
    **dict.fromkeys(("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "num_routed_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "moe_k", "num_experts_per_token", "top_k_experts", "moe_top_k"), 2),
    "n_group": 1, "topk_group": 1, "num_expert_group": 1, "zero_expert_num": 2,
    "vocab_size": 96, "max_position_embeddings": 128, "n_positions": 128, "max_target_positions": 128, "max_source_positions": 11,
    "max_encoder_position_embeddings": 128, "max_decoder_position_embeddings": 128, "n_ctx": 128, "max_sequence_length": 128,
    "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_n_groups": 2, "mamba_d_state": 20, "mamba_d_ssm": 128, "mamba_num_heads": 8,
    "mamba_head_dim": 16, "ssm_state_size": 20, "n_groups": 2, "state_size": 20, "n_mamba_heads": 2, "mamba_ngroups": 1, "mamba_dt_rank": 6,
    "time_step_rank": 6, "mamba_chunk_size": 8, "chunk_size": 8, "lru_width": 64,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 12, "linear_value_head_dim": 20,
    "linear_num_heads": 3, "linear_head_dim": 28,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 1, "forced_eos_token_id": None,
    "forced_bos_token_id": None, "sep_token_id": 3, "image_token_id": 90, "video_token_id": 91,
    "audio_token_id": 92, "image_token_index": 90,
    "video_token_index": 91, "audio_token_index": 92, "vision_start_token_id": 93, "vision_end_token_id": 94,
    "first_k_dense_replace": 1, "num_dense_layers": 1, "num_hash_layers": 1,
    "rotary_dim": 8, "word_embed_proj_dim": 64, "projection_dim": 16, "image_size": 28, "patch_size": 14, "max_num_tiles": 2,
    "num_nextn_predict_layers": 0, "mtp_num_hidden_layers": 0, "num_mem_blocks": 1, "adapter_rank": 4,
    "num_layers_per_stack": 6, "num_mel_bins": 8, "attn_layer_period": 4, "attn_layer_offset": 1, "gate_low_rank_dim": 8,
}  # fmt: skip

# Encoders of images and sound are only built, never run.
TOWER = {"num_hidden_layers": 2, "depth": 2, "num_layers": 2, "hidden_size": 32, "embed_dim": 32, "num_attention_heads": 2, "num_heads": 2,
         "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 7, "out_hidden_size": 64, "d_model": 32}  # fmt: skip


def _mrope(partial: float, section: list[int]) -> dict[str, Any]:
    """Rotary settings whose sections add up to half of the part of a head that is rotated."""
    return {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": partial, "mrope_section": section}}


ONE_KV_HEAD_PER_HEAD = {"num_key_value_heads": 4}
ATTENTION_IN_TWO = ["linear_attention", "full_attention", "linear_attention"] * 4
# What the rules cannot know: model_type -> keys.
OVERRIDES: dict[str, dict[str, Any]] = {
    **{name: {"head_dim": 24} for name in ("ministral", "hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan_vl_text")},
    **{name: _mrope(0.5, [1, 1, 2]) for name in ("glm4v_text", "glm4v_moe_text", "glm_ocr_text")},
    "bamba": {"attn_layer_indices": [2, 7]},
    "granitemoehybrid": {"layer_types": ATTENTION_IN_TWO},
    "zamba2": {"layers_block_type": ["linear_attention", "linear_attention", "hybrid"] * 4, "n_mamba_heads": 8},
    "nemotron_h": {"layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"] * 3, "num_hidden_layers": 12},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 6},
    "lfm2": {"full_attn_idxs": [1, 5, 9]},
    "zaya": {"num_experts_per_tok": 1},
    "mamba2": {"num_heads": 8, "head_dim": 16},
    "longcat_flash": ONE_KV_HEAD_PER_HEAD | {"head_dim": 8},
    "helium": {"head_dim": 16},
    "gpt_neo": {"attention_types": [[["global", "local"], 6]]},
    "dots1": {"n_shared_experts": 1, "num_experts_per_tok": 2},
    "qwen4_exp_text": {
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 32,
        "indexer_budget": 8,
        "indexer_compress_ratio": 2,
    },
    "nemotron_h_omni": {"video_temporal_patch_size": 2},
    "mllama_text_model": {"cross_attention_layers": [3, 8]},
    "mllama_vision_model": {"max_num_tiles": 4},
    "ernie4_5_vl_moe_text": {"moe_intermediate_size": [48, 32]},
    "florence_vision": {"patch_size": [7, 3, 3, 3]},
    "deepseek_v4": {"num_key_value_heads": 1},
    "recurrent_gemma": {"num_key_value_heads": 1},
    **{name: _mrope(1.0, [2, 3, 3]) for name in ("qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text")},
    **{name: _mrope(1.0, [4, 4, 4]) for name in ("paddleocr_vl_text", "cosmos3_edge_text")},
    "glm5_next_text": ONE_KV_HEAD_PER_HEAD | {"index_kpool": 2, "qk_rope_head_dim": 0},
    "deepseek_v2": ONE_KV_HEAD_PER_HEAD | {"num_experts_per_tok": 2},
}
# Fields that are None by default and mean a number all the same; any other such field is computed from the rest.
SET_THOUGH_NONE = frozenset(
    {
        "sliding_window",
        "num_key_value_heads",
        "lru_width",
        "mamba_d_ssm",
        "moe_intermediate_size",
        "intermediate_size",
        "num_experts",
        "n_routed_experts",
    }
)
NULLABLE = frozenset({"forced_eos_token_id", "forced_bos_token_id", "sliding_window"})
TOWER_WORDS = ("vision", "audio", "vq", "codec", "qformer", "perceiver", "encoder_config", "tokenizer")


def small_config(config_class: Any, tower: bool = False) -> Any:
    """A small instance of `config_class`, its nested configurations small too."""
    fields = {field.name: field.default for field in dataclasses.fields(config_class)}
    own = OVERRIDES.get(config_class.model_type, {})
    latent = ONE_KV_HEAD_PER_HEAD if "kv_lora_rank" in fields else {}
    chosen = {
        name: value
        for name, value in (SMALL | (TOWER if tower else {}) | latent | own).items()
        if name in own
        or (
            name in fields
            and (fields[name] is not None or name in SET_THOUGH_NONE)
            and not (value is None and fields[name] is not None and name not in NULLABLE)
        )
    }
    for key, nested in _nested_classes(config_class).items():
        chosen[key] = small_config(nested, tower or any(word in key for word in TOWER_WORDS))
    return config_class(**chosen)


def _nested_classes(config_class: Any) -> dict[str, Any]:
    try:
        default = config_class()
    except Exception:  # composites that demand their parts
        return {key: nested for key, nested in config_class.sub_configs.items() if dataclasses.is_dataclass(nested)}
    nested = {key: getattr(default, key, None) for key in config_class.sub_configs or {}}
    return {key: type(each) for key, each in nested.items() if dataclasses.is_dataclass(each) and hasattr(each, "model_type")}
