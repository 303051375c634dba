"""Recurrent and hybrid families: a fixed state per request beside the caches of the attention layers.

Recurrent matrices are FP32 (4 bytes): transformers' modeling files compute and keep them so whatever the model's dtype, and the
configs that name a dtype (`mamba_ssm_dtype`, `mamba_ssm_cache_dtype`) name float32. Convolution states follow the model's dtype
(2 bytes) and hold kernel − 1 columns, as the engines' state shapes do. Kimi's delta attention keeps both in FP32 (case G1-15);
lightning attention keeps its matrix in the model's dtype.
"""

import pytest

from support.families import Family, assert_family, config, nested, read_config


def hybrid(name, values, attention, recurrent, **more):
    """attention: (caches, bytes per token of one); recurrent: (layers, FP32 elements, elements of the model's dtype)."""
    (caches, each), (layers, wide, narrow) = attention, recurrent
    kinds = {kind: count for kind, count in (("full", caches), ("recurrent", layers)) if count} | more.pop("others", {})
    return Family(name, values, caches * each, kinds, fixed=layers * (wide * 4 + narrow * 2), **more)


# Mamba-1: ssm d_inner × d_state, conv d_inner × 3. Mamba-2: ssm heads × head size × d_state, conv (d_inner + 2 × groups × d_state) × 3.
JAMBA = {"attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 256}  # fmt: skip
BAMBA = {"mamba_n_heads": 128, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 128, "mamba_d_conv": 4, "mamba_expand": 2}
NEMOTRON_H = {"conv_kernel": 4, "ssm_state_size": 128, "n_groups": 8, "expand": 2, "chunk_size": 128, "mamba_ssm_cache_dtype": "float32"}
NEMOTRON_8B = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"
NEMOTRON_9B_V2 = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"
NEMOTRON_3_NANO = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
FALCON_H1_HALF = {"mamba_d_ssm": 1536, "mamba_n_heads": 24, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 128, "mamba_d_conv": 4, "mamba_expand": 2}  # fmt: skip
FALCON_H1_34B = {"mamba_d_ssm": 4096, "mamba_n_heads": 32, "mamba_d_head": 128, "mamba_n_groups": 2, "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_expand": 2}  # fmt: skip
ZAMBA2_IDS = [6, 12, 18, 24, 30, 36, 42, 47, 51]
ZAMBA2 = {"mamba_d_state": 64, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_ngroups": 1, "n_mamba_heads": 80, "attention_head_dim": 160, "hybrid_layer_ids": ZAMBA2_IDS, "layers_block_type": ["hybrid" if index in ZAMBA2_IDS else "mamba" for index in range(54)]}  # fmt: skip
GRANITE_TINY = ["attention" if index in (5, 15, 25, 35) else "mamba" for index in range(40)]

MAMBA_FAMILIES = [
    hybrid("Falcon-Mamba-7B", config("falcon_mamba", 64, 4096, 32, intermediate_size=8192, state_size=16, conv_kernel=4, expand=16), (0, 0), (64, 8192 * 16, 8192 * 3)),
    hybrid("Mamba-130M", config("mamba", 24, 768, 12, intermediate_size=1536, state_size=16, conv_kernel=4, expand=2), (0, 0), (24, 1536 * 16, 1536 * 3)),
    hybrid("Mamba-Codestral-7B", config("mamba2", 64, 4096, 32, num_heads=128, head_dim=64, state_size=128, n_groups=8, conv_kernel=4, expand=2), (0, 0), (64, 128 * 64 * 128, (8192 + 2 * 8 * 128) * 3)),
    hybrid("Jamba-v0.1", config("jamba", 32, 4096, 32, 8, **JAMBA), (4, 2 * 8 * 128 * 2), (28, 8192 * 16, 8192 * 3)),
    hybrid("Jamba-1.5-Large", config("jamba", 72, 8192, 64, 8, **JAMBA), (9, 2 * 8 * 128 * 2), (63, 16384 * 16, 16384 * 3)),
    hybrid("Bamba-9B", config("bamba", 32, 4096, 32, 8, attn_layer_indices=[9, 18, 27], **BAMBA), (3, 2 * 8 * 128 * 2), (29, 128 * 64 * 128, (8192 + 2 * 128) * 3)),
    hybrid("Granite-4.0-H-Tiny", config("granitemoehybrid", 40, 1536, 12, 4, layer_types=GRANITE_TINY, **BAMBA | {"mamba_n_heads": 48}), (4, 2 * 4 * 128 * 2), (36, 48 * 64 * 128, (3072 + 2 * 128) * 3)),
    hybrid("Granite-4.0-H-Small", config("granitemoehybrid", 40, 4096, 32, 8, layer_types=GRANITE_TINY, **BAMBA), (4, 2 * 8 * 128 * 2), (36, 128 * 64 * 128, (8192 + 2 * 128) * 3)),
    hybrid("Granite-4.0-Micro, attention only", config("granitemoehybrid", 40, 2560, 40, 8, layer_types=["attention"] * 40, **BAMBA), (40, 2 * 8 * 64 * 2), (0, 0, 0)),
    # Nemotron-H: every letter is a layer; M keeps a state, * keys and values, - and E nothing.
    hybrid("Nemotron-H-8B", config("nemotron_h", 52, 4096, 32, 8, attention_head_dim=128, head_dim=128, hybrid_override_pattern=NEMOTRON_8B, mamba_num_heads=128, mamba_head_dim=64, **NEMOTRON_H), (4, 2 * 8 * 128 * 2), (24, 128 * 64 * 128, (8192 + 2 * 8 * 128) * 3), others={"none": 24}),
    hybrid("Nemotron-Nano-9B-v2", config("nemotron_h", 56, 4480, 40, 8, head_dim=128, hybrid_override_pattern=NEMOTRON_9B_V2, mamba_num_heads=128, mamba_head_dim=80, **NEMOTRON_H), (4, 2 * 8 * 128 * 2), (27, 128 * 80 * 128, (10240 + 2 * 8 * 128) * 3), others={"none": 25}),
    hybrid("Nemotron-3-Nano-30B-A3B", config("nemotron_h", 52, 2688, 32, 2, head_dim=128, hybrid_override_pattern=NEMOTRON_3_NANO, mamba_num_heads=64, mamba_head_dim=64, **NEMOTRON_H), (6, 2 * 2 * 128 * 2), (23, 64 * 64 * 128, (4096 + 2 * 8 * 128) * 3), others={"none": 23}),
    # Falcon-H1: attention and Mamba-2 side by side in every layer.
    hybrid("Falcon-H1-0.5B", config("falcon_h1", 36, 1024, 8, 2, head_dim=64, **FALCON_H1_HALF), (36, 2 * 2 * 64 * 2), (36, 24 * 64 * 128, (1536 + 2 * 128) * 3)),
    hybrid("Falcon-H1-34B", config("falcon_h1", 72, 5120, 20, 4, head_dim=128, **FALCON_H1_34B), (72, 2 * 4 * 128 * 2), (72, 32 * 128 * 256, (4096 + 2 * 2 * 256) * 3)),
    # Zamba2: 9 of 54 layers add the shared attention (heads of 2 × 2560 / 32) to their Mamba-2.
    hybrid("Zamba2-2.7B", config("zamba2", 54, 2560, 32, 32, **ZAMBA2), (9, 2 * 32 * 160 * 2), (54, 80 * 64 * 64, (5120 + 2 * 64) * 3)),
]  # fmt: skip

GDN = {"linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "full_attention_interval": 4}  # fmt: skip
QWEN35 = GDN | {"head_dim": 256, "mamba_ssm_dtype": "float32", "attn_output_gate": True}
KDA_48B = {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "kda_layers": [i for i in range(1, 28) if i not in (4, 8, 12, 16, 20, 24, 27)], "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4}  # fmt: skip
MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "q_lora_rank": None}
LFM2_1_2B = [2, 5, 8, 10, 12, 14]
LFM2_8B = ["full_attention" if index in (2, 6, 10, 14, 18, 21) else "conv" for index in range(24)]

LINEAR_FAMILIES = [
    # Gated delta: v heads × k size × v size, conv (2 × k heads × k size + v heads × v size) × 3.
    hybrid("Qwen3-Next-80B-A3B", config("qwen3_next", 48, 2048, 16, 2, head_dim=256, **GDN), (12, 2 * 2 * 256 * 2), (36, 32 * 128 * 128, (2 * 16 * 128 + 32 * 128) * 3)),
    hybrid("Qwen3.5-27B", nested("qwen3_5", config("qwen3_5_text", 64, 5120, 24, 4, mtp_num_hidden_layers=1, **QWEN35 | {"linear_num_value_heads": 48})), (16, 2 * 4 * 256 * 2), (48, 48 * 128 * 128, (2 * 16 * 128 + 48 * 128) * 3)),
    hybrid("Qwen3.6-35B-A3B", nested("qwen3_5_moe", config("qwen3_5_moe_text", 40, 2048, 16, 2, mtp_num_hidden_layers=1, **QWEN35)), (10, 2 * 2 * 256 * 2), (30, 32 * 128 * 128, (2 * 16 * 128 + 32 * 128) * 3)),
    hybrid("Qwen3.5 by layer_types", config("qwen3_5_text", 4, 4096, 16, 4, layer_types=["linear_attention"] * 3 + ["full_attention"], **QWEN35), (1, 2 * 4 * 256 * 2), (3, 32 * 128 * 128, (2 * 16 * 128 + 32 * 128) * 3)),
    # Kimi: heads × 128 × 128 and three convolutions of heads × 128 × 3, all FP32; full layers are latent.
    Family("Kimi-Linear-48B-A3B", config("kimi_linear", 27, 2304, 32, 32, linear_attn_config=KDA_48B, **MLA), 7 * 576 * 2, {"mla": 7, "recurrent": 20}, fixed=20 * (32 * 128 * 128 + 3 * 32 * 128 * 3) * 4),
    # Lightning attention: 64 heads × 128 × 128 in the model's dtype; each eighth layer is full.
    Family("MiniMax-Text-01", config("minimax_text_01", 80, 6144, 64, 8, head_dim=128, attn_type_list=[0, 0, 0, 0, 0, 0, 0, 1] * 10), 10 * 2 * 8 * 128 * 2, {"full": 10, "recurrent": 70}, fixed=70 * 64 * 128 * 128 * 2),
    Family("MiniMax-Text-01 in transformers' words", config("minimax", 80, 6144, 64, 8, head_dim=128, layer_types=(["linear_attention"] * 7 + ["full_attention"]) * 10), 10 * 2 * 8 * 128 * 2, {"full": 10, "recurrent": 70}, fixed=70 * 64 * 128 * 128 * 2),
    # Short convolutions: hidden × 2 in the model's dtype.
    hybrid("LFM2-1.2B", config("lfm2", 16, 2048, 32, 8, conv_L_cache=3, full_attn_idxs=LFM2_1_2B), (6, 2 * 8 * 64 * 2), (10, 0, 2048 * 2)),
    hybrid("LFM2-8B-A1B", config("lfm2_moe", 24, 2048, 32, 8, conv_L_cache=3, layer_types=LFM2_8B), (6, 2 * 8 * 64 * 2), (18, 0, 2048 * 2)),
    # RG-LRU: a number per channel and a convolution of 3 columns; attention keeps a window of 2,048.
    Family("RecurrentGemma-2B", config("recurrent_gemma", 26, 2560, 10, 1, attention_window_size=2048, lru_width=2560, conv1d_width=4, block_types=["recurrent", "recurrent", "attention"]), 0, {"sliding": 8, "recurrent": 18}, all_tokens=8 * 2 * 256 * 2, window=8 * 2 * 256 * 2 * 2048, fixed=18 * (2560 * 4 + 2560 * 3 * 2)),
    # RWKV-4: two shifted tokens in the model's dtype, three numbers per channel in FP32.
    hybrid("RWKV-4-169M", config("rwkv", 12, 768, 12, attention_hidden_size=768, context_length=1024), (0, 0), (12, 3 * 768, 2 * 768)),
]  # fmt: skip


@pytest.mark.parametrize("row", [*MAMBA_FAMILIES, *LINEAR_FAMILIES], ids=lambda row: row.name)
def test_family(tmp_path, row):
    geometry = assert_family(tmp_path, row)
    for layer in geometry.layers:
        assert (layer.kind == "recurrent") is bool(layer.states)
        if layer.kind in ("recurrent", "none"):
            assert (layer.owner, layer.kv_heads, layer.k_dim, layer.v_dim, layer.window) == (False, 0, 0, 0, None)


def test_parallel_layers_have_two_entries_of_one_index(tmp_path):
    geometry = assert_family(tmp_path, next(row for row in MAMBA_FAMILIES if row.name == "Falcon-H1-0.5B"))
    assert sorted((layer.index, layer.kind) for layer in geometry.layers)[:4] == [(0, "full"), (0, "recurrent"), (1, "full"), (1, "recurrent")]  # fmt: skip
    assert [layer.index for layer in geometry.owners] == list(range(36))


def test_every_letter_of_the_pattern_is_a_layer(tmp_path):
    geometry = assert_family(tmp_path, next(row for row in MAMBA_FAMILIES if row.name == "Nemotron-3-Nano-30B-A3B"))
    assert [layer.index for layer in geometry.owners] == [5, 12, 19, 26, 33, 42]


def test_formats_do_not_touch_the_state(tmp_path):
    row = next(row for row in LINEAR_FAMILIES if row.name == "Qwen3-Next-80B-A3B")
    states = [state for layer in read_config(tmp_path, row.config).layers for state in layer.states]
    assert {state.dtype for state in states} == {"float32", "bfloat16"}
    assert sum(state.bytes for state in states) == row.fixed


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2)])
def test_a_written_state_dtype_decides(tmp_path, dtype, size):
    values = config("nemotron_h", 2, 2688, 32, 2, head_dim=128, hybrid_override_pattern="M*", mamba_num_heads=64, mamba_head_dim=64, **NEMOTRON_H | {"mamba_ssm_cache_dtype": dtype})  # fmt: skip
    assert read_config(tmp_path, values).bytes.fixed_per_request == 64 * 64 * 128 * size + (4096 + 2 * 8 * 128) * 3 * 2
