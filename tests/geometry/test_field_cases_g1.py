"""Field cases, group G1: what public tools got wrong about the size of a cache. Numbers from the model's own config."""

import pytest

from kvassay.errors import BadInput
from support.families import config, nested, read_config

FULL, SLIDING = "full_attention", "sliding_attention"


QWEN3_4B = {"model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 2560, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}  # fmt: skip
GPT_OSS_120B = config("gpt_oss", 36, 2880, 64, 8, head_dim=64, sliding_window=128, layer_types=[SLIDING, FULL] * 18)
GPT_OSS_20B = config("gpt_oss", 24, 2880, 64, 8, head_dim=64, sliding_window=128, layer_types=[SLIDING, FULL] * 12)
E2B = nested("gemma4", config("gemma4_text", 35, 1536, 8, 1, head_dim=256, global_head_dim=512, sliding_window=512, num_kv_shared_layers=20, attention_k_eq_v=False, layer_types=([SLIDING] * 4 + [FULL]) * 7))  # fmt: skip
V3_2 = config("deepseek_v32", 61, 7168, 128, 128, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, index_head_dim=128, index_n_heads=64, index_topk=2048)  # fmt: skip
V2_LITE = config("deepseek_v2", 27, 2048, 16, 16, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, q_lora_rank=None)  # fmt: skip
QWEN3_6_35B = nested("qwen3_5_moe", config("qwen3_5_moe_text", 40, 2048, 16, 2, head_dim=256, full_attention_interval=4, linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4))  # fmt: skip
K3_FULL = [*range(4, 93, 4), 93]
KIMI_K3 = nested("kimi_k3", config("kimi_linear", 93, 7168, 96, 96, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, q_lora_rank=1536, linear_attn_config={"full_attn_layers": K3_FULL, "kda_layers": [i for i in range(1, 94) if i not in K3_FULL], "head_dim": 128, "num_heads": 96, "short_conv_kernel_size": 4}))  # fmt: skip
LLAMA3_8B = config("llama", 32, 4096, 32, 8)
QWEN3_VL_30B = nested("qwen3_vl_moe", config("qwen3_vl_moe_text", 48, 2048, 32, 4, head_dim=128))
SCOUT = nested("llama4", config("llama4_text", 48, 5120, 40, 8, head_dim=128, attention_chunk_size=8192, no_rope_layers=[], interleave_moe_layer_step=1))  # fmt: skip


def test_g1_01_explicit_head_dim_wins(tmp_path):
    assert read_config(tmp_path, QWEN3_4B).bytes.growth_per_token == 36 * 2 * 8 * 128 * 2 == 147_456
    assert 36 * 2 * 8 * (2560 // 32) * 2 == 92_160  # the wrong answer: hidden / heads


def test_g1_04_windowed_and_full_length_pages_are_two_numbers(tmp_path):
    geometry = read_config(tmp_path, GPT_OSS_120B)
    assert geometry.bytes.growth_per_token == 18 * 2 * 8 * 64 * 2 == 36_864
    assert geometry.bytes.all_tokens_per_token == 36 * 2 * 8 * 64 * 2 == 73_728
    # The log: 5.38 GiB for 78,384 tokens is the second of the two.
    logged = 5.38 * 2**30 / 78_384
    assert logged == pytest.approx(geometry.bytes.all_tokens_per_token, rel=0.001)


def test_g1_04_gpt_oss_20b_at_8192_tokens_32_times(tmp_path, inspected):
    capped = read_config(tmp_path, GPT_OSS_20B, 8192).total_bytes * 32
    assert capped == (12 * 2048 * 8192 + 12 * 2048 * 128) * 32
    assert capped / 2**30 == pytest.approx(6.094, abs=0.001)
    uncapped = inspected(GPT_OSS_20B, "--storage", "full", "--context", "8192")
    assert uncapped["total_bytes"] * 32 == 24 * 2048 * 8192 * 32 == 12 * 2**30


def test_g1_07_sharers_read_the_last_owner_of_their_kind(tmp_path):
    geometry = read_config(tmp_path, E2B)
    assert geometry.bytes.growth_per_token == 3 * 2 * 512 * 2 == 6_144
    assert geometry.bytes.all_tokens_per_token == 3 * 2 * 512 * 2 + 12 * 2 * 256 * 2 == 18_432
    assert geometry.bytes.window_bytes == 12 * 2 * 256 * 2 * 512 == 6_291_456
    assert {layer.reads_from for layer in geometry.layers if layer.kind == "sliding" and not layer.owner} == {13}
    assert {layer.reads_from for layer in geometry.layers if layer.kind == "full" and not layer.owner} == {14}
    assert sum(not layer.owner for layer in geometry.layers) == 20
    unshared = 7 * 2 * 512 * 2 + 28 * 2 * 256 * 2
    assert unshared == 43_008
    assert 1 - 18_432 / unshared == pytest.approx(0.571, abs=0.001)


def test_g1_09_latent_is_one_head_of_576(tmp_path):
    geometry = read_config(tmp_path, V3_2)
    assert geometry.bytes.growth_per_token == 61 * (512 + 64) * 2 == 70_272
    assert geometry.bytes.indexer_per_token == 61 * (128 + 4) == 8_052
    assert 61 * 2 * 128 * (7168 // 128) * 2 == 1_748_992  # the wrong answer: 128 heads of 56


def test_g1_12_runtime_decides_between_expanded_and_latent(inspected):
    expanded = inspected(V2_LITE, "--mla", "expanded", "--context", "40960")
    assert expanded["bytes"]["growth_per_token"] == 27 * 16 * 192 * 2 + 27 * 16 * 128 * 2 == 165_888 + 110_592 == 276_480
    assert expanded["total_bytes"] == (6_480 + 4_320) * 2**20
    assert inspected(V2_LITE)["bytes"]["growth_per_token"] == 27 * 576 * 2 == 31_104
    assert inspected(V2_LITE, "--mla", "latent")["bytes"]["growth_per_token"] == 31_104


def test_g1_12_quantized_v_is_refused_when_expanded(inspected):
    assert "--v" in inspected(V2_LITE, "--mla", "expanded", "--v", "int8_g32", code=2)
    # K alone needs no flash attention: 27 * 16 * 192 elements in groups of 32 with a 16-bit scale and bias.
    assert inspected(V2_LITE, "--mla", "expanded", "--k", "int8_g32")["bytes"]["growth_per_token"] == 27 * 16 * (192 + 6 * 4) + 110_592


def test_g1_13_only_each_fourth_layer_attends(tmp_path):
    geometry = read_config(tmp_path, QWEN3_6_35B)
    assert geometry.bytes.growth_per_token == 10 * 2 * 2 * 256 * 2 == 20_480
    assert 64 * geometry.bytes.growth_per_token == 1.25 * 2**20
    assert 40 * 2 * 2 * 256 * 2 == 81_920  # the wrong answer: every layer
    assert geometry.bytes.fixed_per_request == 30 * (32 * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 3 * 2)


def test_g1_15_linear_layers_keep_a_32_bit_state(inspected):
    document = inspected(KIMI_K3, "--context", "1048576")
    assert document["bytes"]["growth_per_token"] == 24 * 576 * 2 == 27_648
    assert document["bytes"]["fixed_per_request"] == 69 * (3 * 3 * 96 * 128 + 96 * 128 * 128) * 4 == 464_633_856
    assert document["total_bytes"] == 27 * 2**30 + 464_633_856
    # A format for the cache leaves the state as it is.
    halved = {"growth_per_token": 24 * 576, "all_tokens_per_token": 24 * 576}
    assert inspected(KIMI_K3, "--k", "fp8_e4m3")["bytes"] == document["bytes"] | halved


def test_g1_18_kv_heads_per_layer(tmp_path):
    heads = [3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5]
    geometry = read_config(tmp_path, {"num_kv_heads": heads, "head_dim": 64})
    assert geometry.bytes.growth_per_token == 63 * 2 * 64 * 2 == 16_128
    assert [layer.kv_heads for layer in geometry.layers] == heads
    assert (16 * 5 * 2 * 64 * 2, 16 * 3 * 2 * 64 * 2) == (20_480, 12_288)  # the wrong answers: the maximum, the first


def test_g1_18_zero_heads_hold_nothing_and_take_no_format(tmp_path):
    geometry = read_config(tmp_path, {"num_kv_heads": [8, 0] * 81, "head_dim": 128})
    assert (len(geometry.layers), len(geometry.owners)) == (162, 81)
    assert geometry.bytes.growth_per_token == 81 * 8 * 2 * 128 * 2
    assert {layer.kind for layer in geometry.layers if layer.kv_heads == 0} == {"none"}


def test_g1_18_each_layer_divides_by_the_ranks_or_is_named(inspected):
    assert inspected({"num_kv_heads": [4, 8, 2], "head_dim": 64}, "--tp", "4")["per_rank"]["growth_per_token"] == (1 + 2 + 1) * 2 * 64 * 2
    assert "layer 1" in inspected({"num_kv_heads": [4, 3, 2], "head_dim": 64}, "--tp", "2", code=2)


def test_g1_19_multi_query_by_a_switch(tmp_path):
    santacoder = {"model_type": "gpt_bigcode", "n_layer": 24, "n_embd": 2048, "n_head": 16, "multi_query": True}
    geometry = read_config(tmp_path, santacoder, 8192)
    assert geometry.bytes.growth_per_token == 24 * 2 * 1 * 128 * 2 == 12_288
    assert geometry.total_bytes == 100_663_296  # wrong: 16 heads, 1,610,612,736
    gpt2 = read_config(tmp_path, {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12}, 8192)
    assert gpt2.bytes.growth_per_token == 12 * 2 * 12 * 64 * 2 == 36_864
    assert gpt2.total_bytes == 301_989_888


def test_g1_20_more_ranks_than_heads_repeat_them(inspected):
    document = inspected(QWEN3_VL_30B, "--tp", "8")
    assert document["bytes"]["growth_per_token"] == 48 * 2 * 4 * 128 * 2 == 98_304
    assert document["per_rank"]["growth_per_token"] == 48 * 2 * 1 * 128 * 2 == 24_576  # not 12,288
    assert 8 * document["per_rank"]["growth_per_token"] == 196_608


def test_g1_22_every_rank_holds_the_whole_latent(inspected):
    document = inspected(V2_LITE, "--tp", "8")
    assert document["per_rank"]["growth_per_token"] == document["bytes"]["growth_per_token"] == 31_104  # not 3,888
    assert 1 - 1 / 8 == 0.875  # what a host tier saves by storing one of the eight copies


def test_g1_24_self_layers_hold_text_and_cross_layers_images(inspected):
    vision = nested("mllama", config("mllama_text_model", 40, 4096, 32, 8, cross_attention_layers=[3, 8, 13, 18, 23, 28, 33, 38]))
    document = inspected(vision, "--encoder-tokens", "6193", "--context", "43")
    assert document["bytes"]["growth_per_token"] == 32 * 2 * 8 * 128 * 2 == 131_072
    assert document["bytes"]["fixed_per_request"] == 8 * 2 * 8 * 128 * 2 * 6193 == 32_768 * 6193
    assert document["bytes"]["all_tokens_per_token"] == 163_840
    assert document["total_bytes"] == 131_072 * 43 + 32_768 * 6193
    assert 1 - document["total_bytes"] / (163_840 * (6193 + 43)) == pytest.approx(0.796, abs=0.001)


def test_g1_27_language_model_under_text_config(tmp_path):
    seen = {"model_type": "x", "vision_config": {"num_hidden_layers": 33}, "text_config": {"num_hidden_layers": 40, "num_key_value_heads": 8, "head_dim": 128}}  # fmt: skip
    assert read_config(tmp_path, seen).bytes.growth_per_token == 40 * 2 * 8 * 128 * 2 == 163_840
    del seen["text_config"]
    with pytest.raises(BadInput, match="text_config"):
        read_config(tmp_path, seen)


def test_g1_28_chunks_with_and_without_hybrid_allocation(inspected):
    hybrid = inspected(SCOUT, "--context", "100000")
    assert hybrid["bytes"]["growth_per_token"] == 12 * 2 * 8 * 128 * 2 == 49_152
    assert hybrid["bytes"]["window_bytes"] == 36 * 2 * 8 * 128 * 2 * 8192 == 147_456 * 8_192 == 1_207_959_552
    assert hybrid["total_bytes"] == 49_152 * 100_000 + 1_207_959_552
    assert {layer["kind"] for layer in hybrid["layers"]} == {"full", "chunked"}
    off = inspected(SCOUT, "--context", "100000", "--storage", "full")
    assert (off["bytes"]["growth_per_token"], off["bytes"]["window_bytes"]) == (196_608, 0)
    assert off["total_bytes"] == 196_608 * 100_000


@pytest.mark.parametrize(("k", "v", "expected"), [("bf16", "bf16", 98_304), ("int8_g64", "int8_g64", 52_224), ("int8_g64", "int4_g64", 39_936), ("int4_g64", "int8_g64", 39_936)])  # fmt: skip
def test_g1_30_group_scales_count(inspected, k, v, expected):
    """int8 and int4 in groups of 64 with a 16-bit scale and bias: 136 and 72 bytes for 128 elements."""
    sizes = {"bf16": 256, "int8_g64": 128 + 2 * 4, "int4_g64": 64 + 2 * 4}
    assert 48 * 4 * (sizes[k] + sizes[v]) == expected
    assert inspected(config("qwen3_moe", 48, 2048, 32, 4, head_dim=128), "--k", k, "--v", v)["bytes"]["growth_per_token"] == expected


def test_g1_34_absent_kv_heads_are_multi_head_and_said(tmp_path):
    assert read_config(tmp_path, LLAMA3_8B).bytes.growth_per_token == 32 * 2 * 8 * 128 * 2 == 131_072
    geometry = read_config(tmp_path, {key: value for key, value in LLAMA3_8B.items() if key != "num_key_value_heads"})
    assert geometry.bytes.growth_per_token == 32 * 2 * 32 * 128 * 2 == 524_288
    assert any("MHA assumed" in note for note in geometry.assumptions)


def test_g1_37_head_alignment_is_allocated_not_payload(inspected):
    document = inspected(config("opt", 32, 2560, 32), "--head-align", "64", "--context", "1000")
    assert document["parts"]["payload"] == 32 * 2 * 32 * 80 * 2 * 1000 == 327_680 * 1000
    assert document["parts"]["payload"] + document["parts"]["padding"] == 32 * 2 * 32 * 128 * 2 * 1000 == 524_288 * 1000
    assert document["total_bytes"] == 524_288 * 1000
    assert (document["bytes"]["growth_per_token"], document["allocated"]["growth_per_token"]) == (327_680, 524_288)
