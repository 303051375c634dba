"""Configurations that say too little or two things at once: refused in one sentence that names the key; never a silent default."""

import pytest

from kvassay.errors import BadInput
from support.families import Family, assert_family, config, nested, read_config

DENSE = config("llama", 4, 1024, 8, 4)
FULL, SLIDING = "full_attention", "sliding_attention"


def changed(values, **more):
    return values | more


def without(values, *keys):
    return {key: value for key, value in values.items() if key not in keys}


HYBRID = config("nemotron_h", 4, 1024, 8, 4, head_dim=128, hybrid_override_pattern="M-M*", mamba_num_heads=16, mamba_head_dim=64, ssm_state_size=64, n_groups=8, conv_kernel=4)  # fmt: skip
LATENT = config("deepseek_v3", 4, 1024, 8, 8, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128)
DELTA = config("qwen3_next", 4, 1024, 8, 2, head_dim=128, full_attention_interval=4, linear_num_key_heads=4, linear_num_value_heads=8, linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4)  # fmt: skip
SHARED = config("gemma3n_text", 10, 2048, 8, 2, head_dim=256, sliding_window=512, layer_types=([SLIDING] * 4 + [FULL]) * 2, num_kv_shared_layers=5)  # fmt: skip
STRANGER = config("a_model_of_next_year", 4, 1024, 8, 4)
NAS_BLOCK = {"attention": {"n_heads_in_group": 2, "no_op": False}, "ffn": {"ffn_mult": 1.0}}
MULTI_QUERY = config("gpt_bigcode", 4, 1024, 8)

CONTRADICTIONS = [
    ("multi_query against KV heads", changed(MULTI_QUERY, multi_query=True, num_key_value_heads=8), "multi_query"),
    ("two names for the layers", changed(DENSE, n_layer=5), "n_layer"),
    ("two names for the KV heads", changed(DENSE, num_kv_heads=2), "num_kv_heads"),
    ("two names for the hidden size", changed(DENSE, n_embd=2048), "n_embd"),
    ("two names for the dtype", changed(DENSE, dtype="float16"), "dtype"),
    ("KV heads that do not divide the heads", changed(DENSE, num_key_value_heads=3), "num_key_value_heads"),
    ("more KV heads than heads", changed(DENSE, num_key_value_heads=16), "num_key_value_heads"),
    ("hidden size that the heads do not divide", changed(DENSE, num_attention_heads=12, num_key_value_heads=4), "head_dim"),
    ("more sharers than layers", changed(SHARED, num_kv_shared_layers=10), "num_kv_shared_layers"),
    ("a kind of sharer without an owner", changed(SHARED, num_kv_shared_layers=7), "num_kv_shared_layers"),
    ("Kimi layers named twice", config("kimi_linear", 2, 1024, 8, 8, kv_lora_rank=64, qk_rope_head_dim=64, qk_nope_head_dim=64, v_head_dim=64, linear_attn_config={"full_attn_layers": [1, 2], "kda_layers": [2], "head_dim": 64, "num_heads": 8, "short_conv_kernel_size": 4}), "linear_attn_config"),
]  # fmt: skip
LENGTHS = [
    ("layer_types too short", changed(DENSE, layer_types=[FULL] * 3), "layer_types"),
    ("layer_types too long", changed(DENSE, layer_types=[FULL] * 5), "layer_types"),
    ("layer_types no list", changed(DENSE, layer_types=FULL), "layer_types"),
    ("a pattern of another length", changed(HYBRID, hybrid_override_pattern="M-M*M"), "hybrid_override_pattern"),
    ("KV heads of another length", changed(DENSE, num_key_value_heads=[4, 4, 4]), "num_key_value_heads"),
    ("blocks of another length", changed(config("nemotron-nas", 4, 1024, 8), block_configs=[NAS_BLOCK] * 3), "block_configs"),
    ("attn_type_list of another length", config("minimax_text_01", 4, 1024, 8, 4, head_dim=128, attn_type_list=[0, 0, 1]), "attn_type_list"),
    ("indexer_types of another length", changed(LATENT, model_type="glm_moe_dsa", index_topk=64, index_head_dim=128, indexer_types=["full"]), "indexer_types"),
    ("a full layer beyond the last", config("bamba", 4, 1024, 8, 4, attn_layer_indices=[4], mamba_n_heads=16, mamba_d_head=64, mamba_n_groups=1, mamba_d_state=64, mamba_d_conv=4, mamba_expand=1), "attn_layer_indices"),
    ("a cross layer beyond the last", nested("mllama", config("mllama_text_model", 4, 1024, 8, 4, cross_attention_layers=[7])), "cross_attention_layers"),
]  # fmt: skip
UNKNOWN_KINDS = [
    ("an unknown kind in layer_types", changed(DENSE, layer_types=[FULL, FULL, "telepathy", FULL]), "layer_types"),
    ("a number in layer_types", changed(DENSE, layer_types=[FULL, 1, FULL, FULL]), "layer_types"),
    ("an unknown letter", changed(HYBRID, hybrid_override_pattern="M-X*"), "hybrid_override_pattern"),
    ("an unknown number", config("minimax_text_01", 2, 1024, 8, 4, head_dim=128, attn_type_list=[0, 2]), "attn_type_list"),
    ("recurrent layers of an unknown type", changed(STRANGER, layer_types=[FULL, "linear_attention"] * 2), "layer_types"),
]
WINDOWS = [
    ("a window on unknown layers of an unknown type", changed(STRANGER, sliding_window=4096), "sliding_window"),
    ("windowed layers without a window", changed(without(STRANGER), layer_types=[FULL, SLIDING] * 2), "sliding_window"),
    ("a window that is no number", changed(config("mistral", 4, 1024, 8, 4), sliding_window="wide"), "sliding_window"),
]
MISSING = [
    ("no layers", without(DENSE, "num_hidden_layers"), "num_hidden_layers"),
    ("no heads and no KV heads", without(DENSE, "num_attention_heads", "num_key_value_heads"), "num_attention_heads"),
    ("no hidden size and no head size", without(DENSE, "hidden_size"), "hidden_size"),
    ("a vision model alone", {"model_type": "x", "vision_config": {"num_hidden_layers": 33, "hidden_size": 1152, "num_attention_heads": 16}}, "text_config"),
    ("a text_config that is no mapping", {"model_type": "x", "text_config": 7}, "text_config"),
    ("a latent without its rotary part", without(LATENT | {"model_type": "a_latent_stranger"}, "qk_rope_head_dim"), "qk_rope_head_dim"),
    ("a state without its size", without(HYBRID | {"model_type": "a_hybrid_stranger"}, "ssm_state_size"), "ssm_state_size"),
    ("a layer without its group", config("nemotron-nas", 1, 1024, 8, block_configs=[{"attention": {"no_op": False}, "ffn": {}}]), "block_configs"),
]  # fmt: skip
NUMBERS = [
    (f"{key} {value!r}", changed(values, **{key: value}), key)
    for values, key in [
        (DENSE, "num_hidden_layers"), (DENSE, "num_attention_heads"), (DENSE, "num_key_value_heads"), (config("qwen3", 4, 1024, 8, 4), "head_dim"),
        (LATENT, "kv_lora_rank"), (DELTA, "linear_num_value_heads"), (DELTA, "linear_conv_kernel_dim"), (HYBRID, "mamba_num_heads"),
        (config("mistral", 4, 1024, 8, 4), "sliding_window"), (SHARED, "num_kv_shared_layers"), (DENSE, "max_position_embeddings"),
    ]
    for value in (-1, 10**30, 1.5, "8", True, [], {})
]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "key"),
    [pytest.param(values, key, id=name) for name, values, key in [*CONTRADICTIONS, *LENGTHS, *UNKNOWN_KINDS, *WINDOWS, *MISSING, *NUMBERS]],
)
def test_refused_by_key(tmp_path, values, key):
    with pytest.raises(BadInput) as refusal:
        read_config(tmp_path, values, 10)
    said = str(refusal.value)
    assert key in said
    assert "config.json" in said
    assert "\n" not in said


@pytest.mark.parametrize("key", ["num_hidden_layers", "num_attention_heads", "head_dim"])
def test_zero_is_no_size(tmp_path, key):
    with pytest.raises(BadInput, match=key):
        read_config(tmp_path, DENSE | {key: 0}, 10)


def test_unknown_type_is_read_and_said(tmp_path):
    geometry = assert_family(tmp_path, Family("", STRANGER, 4 * 2 * 4 * 128 * 2, {"full": 4}), known=False)
    assert any("a_model_of_next_year" in note and "standard layout assumed" in note for note in geometry.assumptions)


def test_unknown_type_with_layer_types(tmp_path):
    values = STRANGER | {"sliding_window": 100, "layer_types": [SLIDING, SLIDING, SLIDING, FULL]}
    assert_family(tmp_path, Family("", values, 2048, {"sliding": 3, "full": 1}, all_tokens=4 * 2048, window=3 * 2048 * 100), known=False)


def test_absent_kv_heads_and_dtype_are_said(tmp_path):
    geometry = read_config(tmp_path, without(DENSE, "num_key_value_heads", "torch_dtype"), 10)
    assert geometry.bytes.growth_per_token == 4 * 2 * 8 * 128 * 2
    assert any("MHA assumed" in note for note in geometry.assumptions)
    assert any("dtype" in note and "bfloat16 assumed" in note for note in geometry.assumptions)


def test_null_is_absent(tmp_path):
    geometry = read_config(tmp_path, DENSE | {"head_dim": None, "sliding_window": None, "layer_types": None, "num_kv_heads": None}, 10)
    assert geometry.bytes.growth_per_token == 4 * 2 * 4 * 128 * 2


def test_float16_and_float32_are_priced_as_they_are(tmp_path):
    sizes = [read_config(tmp_path, DENSE | {"torch_dtype": dtype}, 10).bytes.growth_per_token for dtype in ("float16", "float32")]
    assert sizes == [4 * 2 * 4 * 128 * 2, 4 * 2 * 4 * 128 * 4]
