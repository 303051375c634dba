"""Older families: other names for the same facts, multi-query switches, lists per layer, and layers without attention."""

import pytest

from kvassay.errors import BadInput
from support.families import BYSTANDERS, Family, assert_family, config, read_config


def older(model_type, **keys):
    """A config.json without the usual names of sizes."""
    return {key: value for key, value in BYSTANDERS.items() if key != "max_position_embeddings"} | {"model_type": model_type} | keys


OPENELM_270M = [3] * 5 + [4] * 7 + [5] * 4
OPENELM_1_1B = [4] * 3 + [5] * 7 + [6] * 8 + [7] * 6 + [8] * 4

FAMILIES = [
    # GPT-2 and its kin: n_layer, n_embd, n_head.
    Family("GPT-2", older("gpt2", n_layer=12, n_embd=768, n_head=12, n_positions=1024, n_ctx=1024), 12 * 2 * 12 * 64 * 2, {"full": 12}),
    Family("GPT-2-XL", older("gpt2", n_layer=48, n_embd=1600, n_head=25, n_positions=1024), 48 * 2 * 25 * 64 * 2, {"full": 48}),
    Family("GPT-J-6B", older("gptj", n_layer=28, n_embd=4096, n_head=16, n_positions=2048, rotary_dim=64), 28 * 2 * 16 * 256 * 2, {"full": 28}),
    Family("CodeGen-350M", older("codegen", n_layer=20, n_embd=1024, n_head=16, n_positions=2048), 20 * 2 * 16 * 64 * 2, {"full": 20}),
    Family("GPT-NeoX-20B", config("gpt_neox", 44, 6144, 64), 44 * 2 * 64 * 96 * 2, {"full": 44}),
    Family("Pythia-70M", config("gpt_neox", 6, 512, 8, rotary_pct=0.25), 6 * 2 * 8 * 64 * 2, {"full": 6}),
    Family("OPT-125M", config("opt", 12, 768, 12, ffn_dim=3072, word_embed_proj_dim=768), 12 * 2 * 12 * 64 * 2, {"full": 12}),
    Family("OPT-6.7B", config("opt", 32, 4096, 32, ffn_dim=16384), 32 * 2 * 32 * 128 * 2, {"full": 32}),
    Family("BLOOM-560M", older("bloom", n_layer=24, n_embed=1024, num_attention_heads=16), 24 * 2 * 16 * 64 * 2, {"full": 24}),
    Family("BLOOM-7B1", older("bloom", n_layer=30, hidden_size=4096, n_head=32), 30 * 2 * 32 * 128 * 2, {"full": 30}),
    Family("MPT-7B", older("mpt", n_layers=32, d_model=4096, n_heads=32, max_seq_len=2048, attn_config={"alibi": True, "attn_type": "multihead_attention"}), 32 * 2 * 32 * 128 * 2, {"full": 32}),
    Family("DBRX", older("dbrx", n_layers=40, d_model=6144, n_heads=48, attn_config={"kv_n_heads": 8, "clip_qkv": 8, "rope_theta": 500000}), 40 * 2 * 8 * 128 * 2, {"full": 40}),
    # Multi-query by a switch; StarCoder2 is grouped and windowed, see the windows.
    Family("SantaCoder", older("gpt_bigcode", n_layer=24, n_embd=2048, n_head=16, multi_query=True, n_positions=2048), 24 * 2 * 1 * 128 * 2, {"full": 24}),
    Family("StarCoder-15B", older("gpt_bigcode", n_layer=40, n_embd=6144, n_head=48, multi_query=True, n_positions=8192), 40 * 2 * 1 * 128 * 2, {"full": 40}),
    Family("a StarCoder without multi_query", older("gpt_bigcode", n_layer=40, n_embd=6144, n_head=48, multi_query=False), 40 * 2 * 48 * 128 * 2, {"full": 40}),
    # Falcon: num_kv_heads counts with the new decoder architecture only.
    Family("Falcon-7B", config("falcon", 32, 4544, 71, multi_query=True, new_decoder_architecture=False, parallel_attn=True, num_kv_heads=71), 32 * 2 * 1 * 64 * 2, {"full": 32}),
    Family("Falcon-40B", config("falcon", 60, 8192, 128, multi_query=True, new_decoder_architecture=True, num_kv_heads=8), 60 * 2 * 8 * 64 * 2, {"full": 60}),
    Family("Falcon-180B", config("falcon", 80, 14848, 232, multi_query=True, new_decoder_architecture=True, num_kv_heads=8), 80 * 2 * 8 * 64 * 2, {"full": 80}),
    Family("Falcon-RW-1B", config("falcon", 24, 2048, 32, multi_query=False, new_decoder_architecture=False, alibi=True), 24 * 2 * 32 * 64 * 2, {"full": 24}),
    # Lists per layer.
    Family("OpenELM-270M", older("openelm", num_transformer_layers=16, model_dim=1280, head_dim=64, num_gqa_groups=4, num_kv_heads=OPENELM_270M, num_query_heads=[4 * heads for heads in OPENELM_270M], max_context_length=2048), (5 * 3 + 7 * 4 + 4 * 5) * 2 * 64 * 2, {"full": 16}),
    Family("OpenELM-1.1B", older("openelm", num_transformer_layers=28, model_dim=2048, head_dim=64, num_gqa_groups=4, num_kv_heads=OPENELM_1_1B, num_query_heads=[4 * heads for heads in OPENELM_1_1B]), (3 * 4 + 7 * 5 + 8 * 6 + 6 * 7 + 4 * 8) * 2 * 64 * 2, {"full": 28}),
]  # fmt: skip

SHARED_HEADS = {"ffn_mult": 2.625, "no_op": False, "replace_with_linear": False}


def block(heads_in_group):
    """One block of a searched architecture: attention with groups of this size, or none at all."""
    attention = {"n_heads_in_group": heads_in_group, "no_op": heads_in_group is None, "replace_with_linear": False}
    return {"attention": attention, "ffn": SHARED_HEADS}


# 49 of 80 blocks attend, 8 query heads to a KV head; which ones is illustrative, their number is the published one.
SUPER_49B = [block(8)] * 33 + [block(None)] * 31 + [block(8)] * 16
NAS = [
    Family("Llama-3_3-Nemotron-Super-49B", config("nemotron-nas", 80, 8192, 64, block_configs=SUPER_49B, num_key_value_heads=None), 49 * 2 * 8 * 128 * 2, {"full": 49, "none": 31}),
    # Groups of 8, 16 and 32 query heads in one model: 8, 4 and 2 KV heads.
    Family("a small one with mixed groups", config("nemotron-nas", 4, 8192, 64, block_configs=[block(8), block(16), block(None), block(32)]), (8 + 4 + 2) * 2 * 128 * 2, {"full": 3, "none": 1}),
    # DeciLM-7B lists KV heads per layer under a name of its own (numbers illustrative).
    Family("DeciLM", config("deci", 32, 4096, 32, num_key_value_heads_per_layer=[4] * 16 + [2] * 12 + [1] * 4), (16 * 4 + 12 * 2 + 4) * 2 * 128 * 2, {"full": 32}),
    # Ultra-253B has 162 blocks; here 80 of them attend (positions and count illustrative).
    Family("162 entries with zeros", config("llama", 162, 16384, 128, [8, 0] * 80 + [0, 0]), 80 * 2 * 8 * 128 * 2, {"full": 80, "none": 82}),
]  # fmt: skip


@pytest.mark.parametrize("row", [*FAMILIES, *NAS], ids=lambda row: row.name)
def test_family(tmp_path, row):
    assert_family(tmp_path, row)


def test_layers_without_attention_own_nothing(tmp_path):
    geometry = assert_family(tmp_path, NAS[1])
    assert [layer.owner for layer in geometry.layers] == [True, True, False, True]
    assert [layer.kv_heads for layer in geometry.layers] == [8, 4, 0, 2]
    assert [layer.index for layer in geometry.owners] == [0, 1, 3]


def test_linear_in_place_of_attention_keeps_nothing(tmp_path):
    linear = {"attention": {"n_heads_in_group": None, "no_op": False, "replace_with_linear": True}, "ffn": SHARED_HEADS}
    values = config("nemotron-nas", 2, 8192, 64, block_configs=[block(8), linear])
    assert_family(tmp_path, Family("", values, 2 * 8 * 128 * 2, {"full": 1, "none": 1}))


@pytest.mark.parametrize(("row", "longest"), [(FAMILIES[0], 1024), (FAMILIES[2], 2048)], ids=["GPT-2", "GPT-J"])
def test_older_name_of_the_longest_context(tmp_path, row, longest):
    geometry = read_config(tmp_path, row.config)
    assert (geometry.max_position_embeddings, geometry.context_tokens) == (longest, longest)


def test_gpt_neo_has_local_layers(tmp_path):
    """GPT-Neo 1.3B: 12 × (global, local), window 256, 16 heads of 128: 2 * 16 * 128 * 2 = 8,192 bytes a layer."""
    values = older("gpt_neo", num_layers=24, hidden_size=2048, num_heads=16, window_size=256, attention_types=[[["global", "local"], 12]])
    row = Family("GPT-Neo-1.3B", values, 12 * 8192, {"full": 12, "sliding": 12}, all_tokens=24 * 8192, window=12 * 8192 * 256)
    geometry = assert_family(tmp_path, row)
    assert [layer.window for layer in geometry.layers[:3]] == [None, 256, None]


# Remote-code spellings of multi-query: right, or refused by name; never priced as multi-head.
REMOTE = [
    ("SantaCoder", older("gpt2", n_layer=24, n_embd=2048, n_head=16, attention_head_type="multiquery"), "attention_head_type", 24 * 2 * 128 * 2),
    ("Qwen-7B", config("qwen", 32, 4096, 32, kv_channels=128, seq_length=8192), "kv_channels", 32 * 2 * 32 * 128 * 2),
    ("GLM-4-9B-chat", older("chatglm", num_layers=40, hidden_size=4096, num_attention_heads=32, kv_channels=128, multi_query_attention=True, multi_query_group_num=2), "multi_query_attention", 40 * 2 * 2 * 128 * 2),
    ("Hunyuan-Large", config("hunyuan", 64, 6400, 80, 8, attention_head_dim=128, use_cla=True, cla_share_factor=2), "use_cla", 32 * 2 * 8 * 128 * 2),
]  # fmt: skip


@pytest.mark.parametrize(("name", "values", "key", "growth"), REMOTE, ids=[row[0] for row in REMOTE])
def test_right_or_refused_by_name(tmp_path, name, values, key, growth):
    try:
        assert read_config(tmp_path, values).bytes.growth_per_token == growth
    except BadInput as refusal:
        assert key in str(refusal)
