"""Small configurations of every class that transformers registers, by rules on key names rather than by a list of models.

Every type has the shape `small`; `bare` has what can be switched off switched off; VARIANTS are layouts that one class knows besides.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

# No multiple of the periods of layer patterns, so that their last, cut period shows.
LAYERS = 13

# Numbers differ pairwise where they may, so that two formulas cannot agree by accident.
SMALL: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "emb_dim", "embed_dim", "embedding_dim", "dim", "decoder_hidden_size"), 64),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "num_decoder_layers"), LAYERS),
    **dict.fromkeys(("decoder_num_hidden_layers", "text_num_hidden_layers", "num_blocks"), LAYERS),
    **dict.fromkeys(("speech_encoder_layers", "depth"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("num_decoder_attention_heads", "decoder_num_attention_heads", "num_heads", "speech_encoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads", "decoder_num_key_value_heads", "kv_n_heads"), 2),
    **dict.fromkeys(("head_dim", "d_kv", "kv_channels", "attention_head_dim", "dim_head", "d_head", "attention_head_size"), 24),
    "v_head_dim": 12, "kv_lora_rank": 40, "q_lora_rank": 20, "qk_rope_head_dim": 8, "qk_nope_head_dim": 20, "qk_head_dim": None,
    "index_head_dim": 32, "index_n_heads": 2, "index_topk": 4, "indexer_head_dim": 28, "indexer_n_heads": 2, "indexer_kv_heads": 1,
    "indexer_budget": 8, "indexer_compress_ratio": 2,
    "index_block_size": 4, "index_topk_blocks": 2, "o_lora_rank": 16, "o_groups": 2,
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

# Layers and heads of an encoder are its own, and differ from the decoder's.
ENCODER = {
    **dict.fromkeys(("encoder_layers", "encoder_num_hidden_layers", "num_encoder_layers"), 3),
    **dict.fromkeys(("encoder_attention_heads", "num_encoder_attention_heads", "encoder_num_attention_heads"), 8),
    "encoder_num_key_value_heads": 8,
}
# Encoders of images and sound are only built, never run.
TOWER = {"num_hidden_layers": 2, "depth": 2, "num_layers": 2, "hidden_size": 32, "embed_dim": 32, "num_attention_heads": 2, "num_heads": 2,
         "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 7, "out_hidden_size": 64, "d_model": 32}  # fmt: skip
TOWER_WORDS = ("vision", "audio", "vq", "codec", "qformer", "perceiver", "encoder_config", "tokenizer")
# The shape `bare`: windows and sharing off, one KV head, head sizes left to the class.
BARE: dict[str, Any] = {
    "sliding_window": None, "attention_chunk_size": None, "use_sliding_window": False, "num_kv_shared_layers": 0, "num_key_value_heads": 1,
    "num_kv_heads": 1, "head_dim": None, "multi_query": False, "new_decoder_architecture": True, "attention_k_eq_v": True,
    "global_head_dim": None, "num_global_key_value_heads": 1, "layer_types": None,
}  # fmt: skip
# Fields that are None by default and mean a number all the same.
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
# Parts of composites that do not come by default; a tower of another library (timm) is built as one of this one.
PARTS: dict[str, dict[str, str]] = {
    "encoder-decoder": {"encoder": "bert", "decoder": "gpt2"},
    "vision-encoder-decoder": {"encoder": "vit", "decoder": "gpt2"},
    "speech-encoder-decoder": {"encoder": "wav2vec2", "decoder": "bert"},
    "musicgen": {"text_encoder": "t5", "audio_encoder": "encodec", "decoder": "musicgen_decoder"},
    "musicgen_melody": {"text_encoder": "t5", "audio_encoder": "encodec", "decoder": "musicgen_melody_decoder"},
    "fast_vlm": {"vision_config": "siglip_vision_model"},
    "diffusion_gemma": {"vision_config": "gemma4_vision"},
    "granite4_vision": {"text_config": "granite4_vision_text"},
}


def _mrope(partial: float, section: list[int]) -> dict[str, Any]:
    """Rotary settings whose sections add up to half of the part of a head that is rotated."""
    return {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": partial, "mrope_section": section}}


def _repeating(*kinds: str) -> list[str]:
    return [kinds[index % len(kinds)] for index in range(LAYERS)]


THREE_AXES = _mrope(1.0, [2, 2, 4])["rope_parameters"]
WINDOWS_BETWEEN = {"layer_types": _repeating("sliding_attention", "full_attention", "sliding_attention", "sliding_attention")}
ONE_KV_HEAD_PER_HEAD = {"num_key_value_heads": 4}
# What the rules cannot know: model_type -> keys.
OVERRIDES: dict[str, dict[str, Any]] = {
    **{name: {"head_dim": 24} for name in ("ministral", "hunyuan_v1_dense", "hunyuan_v1_moe")},
    **{name: _mrope(0.5, [1, 1, 2]) for name in ("glm4v_text", "glm4v_moe_text", "glm_ocr_text")},
    "bamba": {"attn_layer_indices": [2, 7]},
    "granitemoehybrid": {"layer_types": _repeating("linear_attention", "full_attention", "linear_attention")},
    "zamba2": {"layers_block_type": _repeating("linear_attention", "linear_attention", "hybrid"), "n_mamba_heads": 8},
    "nemotron_h": {
        "mamba_num_heads": 6,
        "mamba_head_dim": 20,
        "layers_block_type": _repeating("linear_attention", "moe", "full_attention", "mlp"),
    },
    "lfm2_moe": {"layer_types": _repeating("conv", "full_attention")},
    "lfm2": {"full_attn_idxs": [1, 5, 9]},
    **dict.fromkeys(("laguna", "mellum", "step3p5"), WINDOWS_BETWEEN),
    "minimax_m3_vl_text": {"layer_types": _repeating("full_attention", "minimax_m3_sparse", "minimax_m3_sparse")},
    "xmod": {"default_language": "en_XX"},
    "deepseek_v4": {
        "num_key_value_heads": 1,
        "layer_types": _repeating("heavily_compressed_attention", "compressed_sparse_attention", "sliding_attention"),
        "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 6},
    },
    "zaya": {"num_experts_per_tok": 1},
    "mamba2": {"num_heads": 8, "head_dim": 16},
    "longcat_flash": ONE_KV_HEAD_PER_HEAD | {"head_dim": 8},
    "helium": {"head_dim": 16},
    "gpt_neo": {"attention_types": [[["global", "local"], 6], [["global"], 1]]},
    "dots1": {"n_shared_experts": 1, "num_experts_per_tok": 2},
    "qwen4_exp_text": {
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 28,
        "indexer_budget": 8,
        "indexer_compress_ratio": 2,
    },
    **{name: {"video_temporal_patch_size": 2} for name in ("nemotron_h_omni", "radio")},
    **{name: {"vocabulary_map": {"<image>": 90, "<|extra_200|>": 89}} for name in ("emu3", "chameleon")},
    "cohere_compass_text": WINDOWS_BETWEEN | {"rope_parameters": dict.fromkeys(set(WINDOWS_BETWEEN["layer_types"]), THREE_AXES)},
    "DbrxAttentionConfig": {"rope_theta": 1e4, "clip_qkv": 8},
    # The library makes the decoder's cache by the encoder's layers.
    "prophetnet": {"num_encoder_layers": LAYERS},
    "xlstm": {"hidden_size": 128, "embedding_dim": 128},
    "deepseek_ocr2_text": {"num_experts_per_tok": 2, "mlp_layer_types": _repeating("dense", "sparse")},
    "diffusion_gemma_text": {"top_k_experts": 2},
    "granite4_vision": {"deepstack_layer_map": [], "spatial_target_layers": [], "downsample_rate": "4/8"},
    "hunyuan_vl_text": _mrope(1.0, [2, 2, 2, 2]) | {"head_dim": 16},
    "pix2struct_text_model": {"d_kv": 16},
    "led": {"attention_window": 4},
    "moonshine_streaming": {"num_key_value_heads": 4},
    "moonshine_streaming_encoder": {"hidden_size": 64},
    "timm_wrapper": {"model_args": {"embed_dim": 32}},
    "FunAsrNanoAdaptorConfig": {"intermediate_size": 16},
    "VibeVoiceDiffusionHeadConfig": {"latent_size": 32},
    "dia_decoder": {"cross_hidden_size": 32, "cross_num_attention_heads": 6, "cross_num_key_value_heads": 3, "cross_head_dim": 20},
    "mimi": {"upsample_groups": 32},
    "musicgen_melody": {"chroma_length": 6},
    "kyutai_speech_to_text": {"audio_pad_token_id": 95},
    "mllama_text_model": {"cross_attention_layers": [3, 8]},
    "mllama_vision_model": {"max_num_tiles": 4},
    "ernie4_5_vl_moe_text": _mrope(1.0, [2, 2, 4]) | {"moe_intermediate_size": [48, 32]},
    "recurrent_gemma": {"num_key_value_heads": 1},
    **{name: _mrope(1.0, [2, 3, 3]) for name in ("qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text")},
    **{name: _mrope(1.0, [4, 4, 4]) for name in ("paddleocr_vl_text", "cosmos3_edge_text")},
    "glm5_next_text": ONE_KV_HEAD_PER_HEAD | {"index_kpool": 2, "qk_rope_head_dim": 0},
    "deepseek_v2": ONE_KV_HEAD_PER_HEAD | {"num_experts_per_tok": 2},
}


# Layouts that one class knows besides: model_type -> name -> keys.
SWITCHED_OFF = {"switched_off": {"use_sliding_window": False}}
SHARED_INDEXERS = {"shared_indexers": {"indexer_types": _repeating("full", "shared", "shared")}}
UNEVEN = {"uneven": {"num_layers": 3, "num_decoder_layers": LAYERS}}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    **dict.fromkeys(("qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3"), SWITCHED_OFF),
    **dict.fromkeys(("t5", "mt5", "umt5", "longt5", "pop2piano", "udop", "switch_transformers"), UNEVEN),
    **dict.fromkeys(("glm_moe_dsa", "hy_v4"), SHARED_INDEXERS),
    "gemma3_text": {"thirds": {"sliding_window_pattern": 3}},
    "cohere2": {"thirds": {"sliding_window_pattern": 3}},
    "falcon": {"multi_head": {"multi_query": False, "new_decoder_architecture": False}},
    "step3p5": {"heads_of_windows": {"num_sliding_attention_heads": 8}},
    "step3p7": {"heads_of_windows": {}},
    "laguna": {"heads_per_layer": {"num_attention_heads_per_layer": [4, 8] * 6 + [4]}},
    "zaya": {"windows": {"sliding_window": 7, "layer_types": _repeating("hybrid", "hybrid_sliding", "hybrid_sliding")}},
    "falcon_h1": {"narrow": {"mamba_d_ssm": 96, "mamba_d_head": 12}},
    "qwen4_exp_text": {"per_layer_embeddings": {
        "ple_layer_ids": [1, 3], "eos_token_id": 2, "ngram_vocab_size_base": 50, "heads_per_ngram": 2, "split_ngram_parts": 2}},
    "deepseek_v4": {"own_pattern": {"layer_types": None}},
    "minimax_m3_vl_text": {"all_full": {"layer_types": None}},
    "xlstm": {"usual_chunk": {"chunk_size": 64}},
}  # fmt: skip


def shapes(model_type: str) -> tuple[str, ...]:
    """Names of the shapes that `small_config` makes of this type."""
    return ("small", "bare", *VARIANTS.get(model_type, ()))


def small_config(config_class: Any, shape: str = "small", tower: bool = False) -> Any:
    """An instance of `config_class` in this shape, its nested configurations small too."""
    from transformers import CONFIG_MAPPING

    model_type = config_class.model_type
    fields = {field.name: field for field in dataclasses.fields(config_class)}
    rules = SMALL | ENCODER | (TOWER if tower else {}) | (BARE if shape == "bare" and not tower else {})
    chosen = {name: value for name, value in rules.items() if _fits(name, value, fields)}
    if "kv_lora_rank" in fields:
        chosen |= ONE_KV_HEAD_PER_HEAD
    chosen |= OVERRIDES.get(model_type or config_class.__name__, {}) | VARIANTS.get(model_type, {}).get(shape, {})
    parts = {key: CONFIG_MAPPING[part] for key, part in PARTS.get(model_type, {}).items()}
    for key, nested in (_nested_classes(config_class) | parts).items():
        made = small_config(nested, shape, tower or any(word in key for word in TOWER_WORDS))
        if key == "decoder" and model_type.endswith("encoder-decoder"):
            made.is_decoder = made.add_cross_attention = True
        chosen[key] = made.to_dict() if model_type in PARTS and "decoder" in parts else made
    return config_class(**chosen)


def _fits(name: str, value: Any, fields: Mapping[str, Any]) -> bool:
    """Whether the class has the field, and takes such a value for it; a field that is None by default is computed from the rest."""
    if name not in fields:
        return False
    default = fields[name].default
    if default is None:
        return name in SET_THOUGH_NONE
    return not isinstance(default, (list, tuple, dict)) and (value is not None or "None" in str(fields[name].type))


def _nested_classes(config_class: Any) -> dict[str, Any]:
    try:
        default = config_class()
    except Exception:  # composites that demand their parts
        return {key: nested for key, nested in config_class.sub_configs.items() if dataclasses.is_dataclass(nested)}
    nested = {key: getattr(default, key, None) for key in config_class.sub_configs or {}}
    return {key: type(each) for key, each in nested.items() if dataclasses.is_dataclass(each) and hasattr(each, "model_type")}
