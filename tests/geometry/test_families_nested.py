"""Models inside models: the language part of vision, audio and omni models; vision towers and encoders count for nothing."""

import pytest

from support.families import Family, assert_family, config, nested, read_config

LLAMA_DEFAULTS = {"_name_or_path": "lmsys/vicuna-7b-v1.5", "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096, "model_type": "llama", "rms_norm_eps": 1e-05, "torch_dtype": "float16", "vocab_size": 32064}  # fmt: skip
VICUNA_13B = LLAMA_DEFAULTS | {"hidden_size": 5120, "intermediate_size": 13824, "num_attention_heads": 40, "num_hidden_layers": 40, "num_key_value_heads": 40}  # fmt: skip
GEMMA3_4B = {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}  # fmt: skip
GEMMA3_27B = {"head_dim": 128, "hidden_size": 5376, "intermediate_size": 21504, "model_type": "gemma3_text", "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16, "query_pre_attn_scalar": 168, "sliding_window": 1024}  # fmt: skip
QWEN2_5_7B = {"use_sliding_window": False, "sliding_window": 32768, "max_window_layers": 28}
PHI4MM = {"sliding_window": 262144, "vision_lora": {"r": 256}, "speech_lora": {"r": 320}, "audio_processor": {"name": "cascades"}, "img_processor": None, "embd_layer": {"embedding_cls": "image_audio"}}  # fmt: skip


def full(name, values, growth, layers):
    return Family(name, values, growth, {"full": layers})


FAMILIES = [
    # LLaVA-1.5 writes nothing of its Llama but what differs from Llama-7B.
    full("LLaVA-1.5-7B", nested("llava", LLAMA_DEFAULTS, torch_dtype="bfloat16"), 32 * 2 * 32 * 128 * 2, 32),
    full("LLaVA-1.5-13B", nested("llava", VICUNA_13B, torch_dtype="bfloat16"), 40 * 2 * 40 * 128 * 2, 40),
    # Gemma 3: 4B leaves out 8 heads, 4 KV heads of 256; full are layers 5, 11, ..., 29 of 34 and 10 of 62.
    Family("Gemma-3-4B", nested("gemma3", GEMMA3_4B), 5 * 2 * 4 * 256 * 2, {"full": 5, "sliding": 29}, all_tokens=34 * 2 * 4 * 256 * 2, window=29 * 2 * 4 * 256 * 2 * 1024),
    Family("Gemma-3-27B", nested("gemma3", GEMMA3_27B), 10 * 2 * 16 * 128 * 2, {"full": 10, "sliding": 52}, all_tokens=62 * 2 * 16 * 128 * 2, window=52 * 2 * 16 * 128 * 2 * 1024),
    full("Mistral-Small-3.1-24B", nested("mistral3", config("mistral", 40, 5120, 32, 8, head_dim=128, sliding_window=None)), 40 * 2 * 8 * 128 * 2, 40),
    # Qwen-VL: older files are flat beside a vision_config, newer ones nest.
    full("Qwen2-VL-7B, flat", config("qwen2_vl", 28, 3584, 28, 4, vision_config={"depth": 32, "embed_dim": 1280, "num_heads": 16, "hidden_size": 3584}, **QWEN2_5_7B), 28 * 2 * 4 * 128 * 2, 28),
    full("Qwen2.5-VL-3B, flat", config("qwen2_5_vl", 36, 2048, 16, 2, vision_config={"depth": 32, "hidden_size": 1280, "num_heads": 16}, **QWEN2_5_7B), 36 * 2 * 2 * 128 * 2, 36),
    full("Qwen2.5-VL-7B, nested", nested("qwen2_5_vl", config("qwen2_5_vl_text", 28, 3584, 28, 4, **QWEN2_5_7B)), 28 * 2 * 4 * 128 * 2, 28),
    full("Qwen3-VL-8B", nested("qwen3_vl", config("qwen3_vl_text", 36, 4096, 32, 8, head_dim=128)), 36 * 2 * 8 * 128 * 2, 36),
    full("Qwen3-VL-30B-A3B", nested("qwen3_vl_moe", config("qwen3_vl_moe_text", 48, 2048, 32, 4, head_dim=128)), 48 * 2 * 4 * 128 * 2, 48),
    full("Qwen2.5-Omni-7B", {"model_type": "qwen2_5_omni", "torch_dtype": "bfloat16", "thinker_config": nested("qwen2_5_omni_thinker", config("qwen2_5_omni_text", 28, 3584, 28, 4, **QWEN2_5_7B)), "talker_config": {"num_hidden_layers": 24, "hidden_size": 896}}, 28 * 2 * 4 * 128 * 2, 28),
    full("InternVL under llm_config", nested("internvl_chat", config("qwen2", 28, 3584, 28, 4, **QWEN2_5_7B), key="llm_config"), 28 * 2 * 4 * 128 * 2, 28),
    full("Voxtral-Mini", {"model_type": "voxtral", "torch_dtype": "bfloat16", "audio_config": {"num_hidden_layers": 32, "hidden_size": 1280}, "text_config": config("llama", 30, 3072, 32, 8, head_dim=128)}, 30 * 2 * 8 * 128 * 2, 30),
    # DeepSeek-VL2 keeps its language model under language_config; MLA there.
    Family("DeepSeek-VL2", nested("deepseek_vl_v2", config("deepseek_v2", 30, 2560, 32, 32, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128), key="language_config"), 30 * 576 * 2, {"mla": 30}),
    # Phi-4-multimodal is flat; its window is longer than its context, so it drops nothing.
    full("Phi-4-multimodal", config("phi4mm", 32, 3072, 24, 8, **PHI4MM), 32 * 2 * 8 * 128 * 2, 32),
    full("Phi-4-multimodal in transformers\' words", config("phi4_multimodal", 32, 3072, 24, 8, vision_config={"num_hidden_layers": 27}, audio_config={"num_blocks": 24}, sliding_window=262144), 32 * 2 * 8 * 128 * 2, 32),
]  # fmt: skip


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row.name)
def test_family(tmp_path, row):
    assert_family(tmp_path, row)


def test_outer_dtype_stands_for_the_whole(tmp_path):
    """LLaVA says float16 above and the row says nothing below."""
    inner = {key: value for key, value in LLAMA_DEFAULTS.items() if key != "torch_dtype"}
    assert read_config(tmp_path, nested("llava", inner, torch_dtype="float16")).native_dtype == "float16"
