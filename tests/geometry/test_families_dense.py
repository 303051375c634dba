"""Families whose every layer keeps K and V of every token: layers × 2 × KV heads × head size × 2 bytes, from the public configs."""

import pytest

from support.families import Family, assert_family, config


def full(name, values, growth):
    return Family(name, values, growth, {"full": _layers(values)})


def _layers(values):
    return next(values[key] for key in ("num_hidden_layers", "n_layer", "n_layers") if key in values)


NO_WINDOW = {"sliding_window": None}
QWEN_WINDOW_OFF = {"sliding_window": 131072, "use_sliding_window": False, "max_window_layers": 21}

FAMILIES = [
    # Llama: no head_dim in the first two generations, 64 in the small ones of the third.
    full("Llama-2-7B", config("llama", 32, 4096, 32, 32), 32 * 2 * 32 * 128 * 2),
    full("Llama-2-70B", config("llama", 80, 8192, 64, 8), 80 * 2 * 8 * 128 * 2),
    full("Llama-3.1-405B", config("llama", 126, 16384, 128, 8), 126 * 2 * 8 * 128 * 2),
    full("Llama-3.2-1B", config("llama", 16, 2048, 32, 8, head_dim=64), 16 * 2 * 8 * 64 * 2),
    full("Falcon3-7B", config("llama", 28, 3072, 12, 4, head_dim=256), 28 * 2 * 4 * 256 * 2),
    full("SmolLM2-135M", config("llama", 30, 576, 9, 3), 30 * 2 * 3 * 64 * 2),
    full("SmolLM2-1.7B", config("llama", 24, 2048, 32, 32), 24 * 2 * 32 * 64 * 2),
    # Mistral since v0.2 says null; Nemo's heads are narrower than hidden / heads = 160.
    full("Mistral-7B-v0.3", config("mistral", 32, 4096, 32, 8, **NO_WINDOW), 32 * 2 * 8 * 128 * 2),
    full("Mistral-Nemo-12B", config("mistral", 40, 5120, 32, 8, head_dim=128, **NO_WINDOW), 40 * 2 * 8 * 128 * 2),
    full("Mistral-Small-24B", config("mistral", 40, 5120, 32, 8, head_dim=128, **NO_WINDOW), 40 * 2 * 8 * 128 * 2),
    full("Mixtral-8x7B", config("mixtral", 32, 4096, 32, 8, num_local_experts=8, **NO_WINDOW), 32 * 2 * 8 * 128 * 2),
    full("Mixtral-8x22B", config("mixtral", 56, 6144, 48, 8, num_local_experts=8, **NO_WINDOW), 56 * 2 * 8 * 128 * 2),
    # Qwen: a window is written and switched off.
    full("Qwen2-7B", config("qwen2", 28, 3584, 28, 4, **QWEN_WINDOW_OFF), 28 * 2 * 4 * 128 * 2),
    full("Qwen2.5-0.5B", config("qwen2", 24, 896, 14, 2, **QWEN_WINDOW_OFF), 24 * 2 * 2 * 64 * 2),
    full("Qwen2.5-72B", config("qwen2", 80, 8192, 64, 8, **QWEN_WINDOW_OFF), 80 * 2 * 8 * 128 * 2),
    full("Qwen1.5-MoE-A2.7B", config("qwen2_moe", 24, 2048, 16, 16, **QWEN_WINDOW_OFF), 24 * 2 * 16 * 128 * 2),
    full("Qwen3-0.6B", config("qwen3", 28, 1024, 16, 8, head_dim=128, use_sliding_window=False), 28 * 2 * 8 * 128 * 2),
    full("Qwen3-32B", config("qwen3", 64, 5120, 64, 8, head_dim=128, use_sliding_window=False), 64 * 2 * 8 * 128 * 2),
    full("Qwen3-30B-A3B", config("qwen3_moe", 48, 2048, 32, 4, head_dim=128, use_sliding_window=False), 48 * 2 * 4 * 128 * 2),
    full("Qwen3-235B-A22B", config("qwen3_moe", 94, 4096, 64, 4, head_dim=128, use_sliding_window=False), 94 * 2 * 4 * 128 * 2),
    full("SmolLM3-3B", config("smollm3", 36, 2048, 16, 4, no_rope_layers=[1, 1, 1, 0] * 9, use_sliding_window=False, **NO_WINDOW), 36 * 2 * 4 * 128 * 2),
    full("Gemma-7B", config("gemma", 28, 3072, 16, 16, head_dim=256), 28 * 2 * 16 * 256 * 2),
    full("Gemma-2B", config("gemma", 18, 2048, 8, 1, head_dim=256), 18 * 2 * 1 * 256 * 2),
    full("Phi-2", config("phi", 32, 2560, 32, 32), 32 * 2 * 32 * 80 * 2),
    full("Phi-4", config("phi3", 40, 5120, 40, 10, **NO_WINDOW), 40 * 2 * 10 * 128 * 2),
    full("GLM-4-9B-0414", config("glm4", 40, 4096, 32, 2, head_dim=128), 40 * 2 * 2 * 128 * 2),
    full("GLM-4.5-Air", config("glm4_moe", 46, 4096, 96, 8, head_dim=128, num_nextn_predict_layers=1), 46 * 2 * 8 * 128 * 2),
    full("GLM-4.6", config("glm4_moe", 92, 5120, 96, 8, head_dim=128, num_nextn_predict_layers=1), 92 * 2 * 8 * 128 * 2),
    full("MiniMax-M2", config("minimax_m2", 62, 3072, 48, 8, head_dim=128, attn_type_list=[1] * 62, use_mtp=True, num_mtp_modules=3), 62 * 2 * 8 * 128 * 2),
    full("Granite-3.1-2B", config("granite", 40, 2048, 32, 8), 40 * 2 * 8 * 64 * 2),
    full("Granite-3.1-8B", config("granite", 40, 4096, 32, 8), 40 * 2 * 8 * 128 * 2),
    full("Command-R", config("cohere", 40, 8192, 64, 64), 40 * 2 * 64 * 128 * 2),
    full("Command-R+", config("cohere", 64, 12288, 96, 8), 64 * 2 * 8 * 128 * 2),
    full("OLMo-7B", config("olmo", 32, 4096, 32, 32), 32 * 2 * 32 * 128 * 2),
    full("OLMo-2-13B", config("olmo2", 40, 5120, 40, 40), 40 * 2 * 40 * 128 * 2),
    full("OLMo-2-32B", config("olmo2", 64, 5120, 40, 8), 64 * 2 * 8 * 128 * 2),
    full("EXAONE-4.0-1.2B", config("exaone4", 30, 2048, 32, 8, sliding_window_pattern="LLLG", layer_types=["full_attention"] * 30, **NO_WINDOW), 30 * 2 * 8 * 64 * 2),
    full("Hunyuan-7B", config("hunyuan_v1_dense", 32, 4096, 32, 8, head_dim=128, use_cla=False, cla_share_factor=2), 32 * 2 * 8 * 128 * 2),
    full("Hunyuan-A13B", config("hunyuan_v1_moe", 32, 4096, 32, 8, attention_head_dim=128, head_dim=128, use_cla=False), 32 * 2 * 8 * 128 * 2),
    full("ERNIE-4.5-0.3B", config("ernie4_5", 18, 1024, 16, 2, head_dim=128), 18 * 2 * 2 * 128 * 2),
    full("ERNIE-4.5-21B-A3B", config("ernie4_5_moe", 28, 2560, 20, 4, head_dim=128), 28 * 2 * 4 * 128 * 2),
    full("Nemotron-4-Minitron-8B", config("nemotron", 32, 4096, 48, 8, head_dim=128), 32 * 2 * 8 * 128 * 2),
    full("MiMo-7B", config("mimo", 36, 4096, 32, 8, head_dim=128, num_nextn_predict_layers=1), 36 * 2 * 8 * 128 * 2),
    full("InternLM2-7B", config("internlm2", 32, 4096, 32, 8), 32 * 2 * 8 * 128 * 2),
    full("StableLM-2-12B", config("stablelm", 40, 5120, 32, 8), 40 * 2 * 8 * 160 * 2),
]  # fmt: skip

# Types without a reader of their own, under the usual keys.
STRANGERS = [
    full("Yi-34B's shape", config("a_model_of_next_year", 60, 7168, 56, 8), 60 * 2 * 8 * 128 * 2),
]


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row.name)
def test_family(tmp_path, row):
    geometry = assert_family(tmp_path, row)
    assert all(layer.owner and layer.window is None for layer in geometry.layers)


@pytest.mark.parametrize("row", STRANGERS, ids=lambda row: row.name)
def test_unknown_type_with_the_usual_keys(tmp_path, row):
    assert_family(tmp_path, row, known=False)


def test_multi_token_prediction_layers_stay_out_of_the_totals(tmp_path):
    """GLM-4.6: one further layer of the same shape, on a line of its own: 2 * 8 * 128 * 2 = 4,096 bytes per token."""
    geometry = assert_family(tmp_path, next(row for row in FAMILIES if row.name == "GLM-4.6"))
    assert geometry.draft is not None
    assert len(geometry.layers) == 92
    assert (len(geometry.draft.layers), geometry.draft.bytes.growth_per_token) == (1, 4096)


def test_names_its_modules(tmp_path):
    geometry = assert_family(tmp_path, FAMILIES[0])
    assert [layer.module for layer in geometry.layers[:2]] == ["model.layers.0.self_attn", "model.layers.1.self_attn"]
