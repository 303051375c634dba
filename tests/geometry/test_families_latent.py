"""Latent attention: one row of latent and rotary part per token, no V; some models keep an indexer's key beside it (132 bytes for 128)."""

import pytest

from support.families import Family, assert_family, config, nested, read_config

DEEPSEEK = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "q_lora_rank": 1536, "n_routed_experts": 160}  # fmt: skip
GLM_LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 192, "v_head_dim": 256}
INDEXER = {"index_head_dim": 128, "index_n_heads": 64, "index_topk": 2048}
GLM_5_2 = {"index_topk_freq": 4, "index_skip_topk_offset": 3, "index_topk_pattern": None, "index_head_dim": 128, "index_n_heads": 32, "index_topk": 2048}  # fmt: skip
FULL_INDEXERS = [index for index in range(78) if index < 3 or (index - 2) % 4 == 0]


def latent(name, values, layers, row=512 + 64, **more):
    return Family(name, values, layers * row * 2, {"mla": layers}, **more)


FAMILIES = [
    latent("DeepSeek-V2-Lite", config("deepseek_v2", 27, 2048, 16, 16, **DEEPSEEK | {"q_lora_rank": None}), 27),
    latent("DeepSeek-V2", config("deepseek_v2", 60, 5120, 128, 128, **DEEPSEEK), 60),
    latent("DeepSeek-V3", config("deepseek_v3", 61, 7168, 128, 128, num_nextn_predict_layers=1, **DEEPSEEK), 61),
    latent("DeepSeek-V3.2", config("deepseek_v32", 61, 7168, 128, 128, num_nextn_predict_layers=1, **DEEPSEEK, **INDEXER), 61, indexer=61 * 132),
    latent("Kimi-K2", config("kimi_k2", 61, 7168, 64, 64, num_nextn_predict_layers=0, **DEEPSEEK), 61),
    latent("Kimi-K2.5", nested("kimi_k25", config("kimi_k2", 61, 7168, 64, 64, **DEEPSEEK)), 61),
    latent("GLM-4.7-Flash", config("glm4_moe_lite", 47, 2048, 20, 20, q_lora_rank=768, num_nextn_predict_layers=1, **GLM_LATENT), 47),
    latent("GLM-5", config("glm_moe_dsa", 78, 6144, 64, 64, q_lora_rank=2048, num_nextn_predict_layers=1, head_dim=64, **GLM_LATENT, **INDEXER), 78, indexer=78 * 132),
    # GLM-5.2: indexers in layers 0, 1, 2, 6, 10, ... 74, 21 of them; the others read the last one before.
    latent("GLM-5.2 by frequency", config("glm_moe_dsa", 78, 6144, 64, 64, q_lora_rank=2048, **GLM_LATENT, **GLM_5_2), 78, indexer=21 * 132),
    latent("GLM-5.2 by list", config("glm_moe_dsa", 78, 6144, 64, 64, q_lora_rank=2048, **GLM_LATENT, **INDEXER, indexer_types=["full" if index in FULL_INDEXERS else "shared" for index in range(78)]), 78, indexer=21 * 132),
    latent("GLM-5.2 by pattern", config("glm_moe_dsa", 78, 6144, 64, 64, q_lora_rank=2048, **GLM_LATENT, **INDEXER, index_topk_pattern="".join("F" if index in FULL_INDEXERS else "S" for index in range(78))), 78, indexer=21 * 132),
    latent("MiniCPM3-4B", config("minicpm3", 62, 2560, 40, 40, kv_lora_rank=256, qk_rope_head_dim=32, qk_nope_head_dim=64, v_head_dim=64, q_lora_rank=768), 62, row=256 + 32),
    # Two attention blocks in each of 28 layers.
    Family("LongCat-Flash", config("longcat_flash", 28, 6144, 64, 64, num_layers=28, **DEEPSEEK), 56 * 576 * 2, {"mla": 56}),
]  # fmt: skip


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row.name)
def test_family(tmp_path, row):
    geometry = assert_family(tmp_path, row)
    assert {(layer.kv_heads, layer.k_dim, layer.v_dim) for layer in geometry.layers} == {(1, row.growth // 2 // len(geometry.layers), 0)}


def test_indexer_stands_in_its_own_layers_only(tmp_path):
    geometry = assert_family(tmp_path, next(row for row in FAMILIES if row.name == "GLM-5.2 by frequency"))
    assert [layer.index for layer in geometry.layers if layer.indexer_dim == 128] == FULL_INDEXERS
    assert len(FULL_INDEXERS) == 21


def test_multi_token_prediction_layer_of_a_latent_model(tmp_path):
    """One further layer of 576 * 2 = 1,152 bytes per token, in no total."""
    geometry = assert_family(tmp_path, next(row for row in FAMILIES if row.name == "DeepSeek-V3"))
    assert geometry.draft is not None
    assert geometry.draft.bytes.growth_per_token == 1152
    assert [layer.kind for layer in geometry.draft.layers] == ["mla"]


def test_multi_token_prediction_layer_has_an_indexer_of_its_own(tmp_path):
    """GLM-5.2: its last layer reads another's, the prediction layer does not."""
    values = next(row.config for row in FAMILIES if row.name == "GLM-5.2 by frequency") | {"num_nextn_predict_layers": 1}
    geometry = read_config(tmp_path, values, 10)
    assert geometry.bytes.indexer_per_token == 21 * 132
    assert geometry.draft is not None
    assert (geometry.draft.bytes.growth_per_token, geometry.draft.bytes.indexer_per_token) == (1152, 132)


def test_no_multi_token_prediction_layer_where_the_count_is_zero(tmp_path):
    assert assert_family(tmp_path, next(row for row in FAMILIES if row.name == "Kimi-K2")).draft is None


# An engine that expands the latent: K of nope + rope, V of v_head_dim, in every query head.
EXPANDED = [
    ("DeepSeek-V2-Lite", 27 * 16 * (192 + 128) * 2, (16, 192, 128)),
    ("DeepSeek-V3", 61 * 128 * (192 + 128) * 2, (128, 192, 128)),
    ("GLM-4.7-Flash", 47 * 20 * (256 + 256) * 2, (20, 256, 256)),
]


@pytest.mark.parametrize(("name", "growth", "shape"), EXPANDED, ids=[row[0] for row in EXPANDED])
def test_expanded(tmp_path, name, growth, shape):
    values = next(row.config for row in FAMILIES if row.name == name)
    geometry = read_config(tmp_path, values, 10, mla="expanded")
    assert geometry.bytes.growth_per_token == growth
    assert geometry.total_bytes == 10 * growth
    assert {(layer.kv_heads, layer.k_dim, layer.v_dim) for layer in geometry.layers} == {shape}
