"""Field cases, group G1, where an engine's layout, a draft, or a log decides: reservations, records, drafts, maps."""

import json

import pytest

from kvassay.geometry.price import native_pairs
from kvassay.records.kv_map import MapLayer
from kvassay.solving.kv_map import build_kv_map, map_digest
from support.families import config, nested, read_config

FULL, SLIDING = "full_attention", "sliding_attention"
GEMMA4_31B = nested("gemma4", config("gemma4_text", 60, 5376, 32, 16, head_dim=256, global_head_dim=512, sliding_window=1024, attention_k_eq_v=True, num_global_key_value_heads=4, max_position_embeddings=262144, layer_types=([SLIDING] * 5 + [FULL]) * 10))  # fmt: skip
GEMMA4_E2B = nested("gemma4", config("gemma4_text", 35, 1536, 8, 1, head_dim=256, global_head_dim=512, sliding_window=512, num_kv_shared_layers=20, attention_k_eq_v=False, layer_types=([SLIDING] * 4 + [FULL]) * 7))  # fmt: skip
QWEN3_5_27B = nested("qwen3_5", config("qwen3_5_text", 64, 5120, 24, 4, head_dim=256, full_attention_interval=4, linear_num_key_heads=16, linear_num_value_heads=48, linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4, vocab_size=248320, mtp_num_hidden_layers=1))  # fmt: skip


def test_g1_05_each_kind_of_layer_has_its_own_shape(tmp_path):
    geometry = read_config(tmp_path, GEMMA4_31B)
    full, windowed = 2 * 4 * 512 * 2, 2 * 16 * 256 * 2
    assert geometry.bytes.growth_per_token == 10 * full == 81_920
    assert geometry.bytes.all_tokens_per_token == 10 * full + 50 * windowed == 901_120
    assert geometry.bytes.window_bytes == 50 * windowed * 1024 == 838_860_800
    assert geometry.context_tokens == 262_144
    # The wrong answers: one shape for all, the widest for all, full layers in the windowed shape.
    assert (60 * windowed, 60 * 2 * 16 * 512 * 2, 10 * windowed) == (983_040, 1_966_080, 163_840)


def test_g1_05_reservation_holds_at_one_context_only(inspected):
    """A windowed layer holds ceil((1024 - 1 + 8192) / 16) + 1 = 577 blocks of 16 tokens: 9,232 tokens."""
    reserved = inspected(GEMMA4_31B, "--context", "262144", "--block", "16", "--chunk", "8192")["reservation"]
    assert reserved["bytes_per_request"] == 81_920 * 262_144 + 819_200 * 9_232 == 29_037_690_880
    per_token = reserved["bytes_per_request"] / 262_144
    assert per_token == pytest.approx(110_770, abs=1)
    # Two logs of one build: bytes of the pool and the tokens it printed for them.
    for pool_gib, tokens in ((64.68, 626_971), (103.92, 1_007_341)):
        assert pool_gib * 2**30 / per_token == pytest.approx(tokens, rel=1e-4)
    # At another context the same pool gives another rate.
    shorter = inspected(GEMMA4_31B, "--context", "32768", "--block", "16", "--chunk", "8192")["reservation"]
    assert shorter["bytes_per_request"] == 81_920 * 32_768 + 819_200 * 9_232
    assert shorter["bytes_per_request"] / 32_768 > 3 * 81_920


def test_g1_05_a_short_request_reserves_its_own_length(inspected):
    """1,024 tokens are 64 blocks in full layers; a windowed layer cannot hold more than they are, up to one straddling block."""
    reserved = inspected(GEMMA4_31B, "--context", "1024", "--block", "16", "--chunk", "8192")["reservation"]
    assert 901_120 * 1_024 <= reserved["bytes_per_request"] <= 901_120 * (1_024 + 16)


def test_g1_07_a_map_gives_formats_to_owners_only(tmp_path, inspected):
    geometry = read_config(tmp_path, GEMMA4_E2B)
    kv_map = build_kv_map(geometry, "a" * 64, "b" * 64, "transformers", native_pairs(geometry))
    assert [layer.index for layer in kv_map.layers] == list(range(15))
    path = tmp_path / "map.json"
    path.write_text(kv_map.model_dump_json())
    assert inspected(GEMMA4_E2B, "--map", str(path))["bytes"]["growth_per_token"] == 6_144
    sharer = MapLayer(index=15, module=geometry.layers[15].module, k="native", v="native")
    wrong = kv_map.model_copy(update={"layers": (*kv_map.layers, sharer)})
    path.write_text(wrong.model_copy(update={"digest": map_digest(wrong)}).model_dump_json())
    assert "layer 15" in inspected(GEMMA4_E2B, "--map", str(path), code=2)


GLM_5_2 = config("glm_moe_dsa", 78, 6144, 64, 64, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=192, v_head_dim=256, index_head_dim=128, index_n_heads=32, index_topk=2048, index_topk_freq=4, index_skip_topk_offset=3, num_nextn_predict_layers=1)  # fmt: skip


@pytest.mark.parametrize(("name", "record"), [("fp8_ds_mla", 512 + 4 * 4 + 64 * 2), ("nvfp4_ds_mla", 256 + 32 + 16 + 64 * 2)])
def test_g1_11_low_bit_latent_keeps_its_rotary_part_scales_and_padding(inspected, name, record):
    """GLM-5.2: 78 records and 21 indexers, the prediction layer's on a line of their own; 54,728 B and 37,032 B together."""
    document = inspected(GLM_5_2, "--k", name)
    assert record == {"fp8_ds_mla": 656, "nvfp4_ds_mla": 432}[name]
    assert document["bytes"]["growth_per_token"] == 78 * record
    assert document["bytes"]["indexer_per_token"] == 21 * 132
    assert 79 * record + 22 * 132 == {"fp8_ds_mla": 54_728, "nvfp4_ds_mla": 37_032}[name]
    assert document["draft"]["bytes"]["indexer_per_token"] == 132


def test_g1_33_prediction_layer_is_a_line_of_its_own(inspected):
    document = inspected(QWEN3_5_27B, "--context", "262144")
    assert document["bytes"]["growth_per_token"] == 16 * 2 * 4 * 256 * 2 == 65_536
    assert document["total_bytes"] == 65_536 * 262_144 + document["bytes"]["fixed_per_request"]
    draft = document["draft"]
    assert draft["bytes"]["growth_per_token"] == 1 * 2 * 4 * 256 * 2 == 4_096
    assert draft["total_bytes"] == 4_096 * 262_144 == 2**30  # the 1 GiB that was always allocated
    assert len(draft["layers"]) == 1


def test_g1_33_no_draft_no_line(inspected):
    values = QWEN3_5_27B | {"text_config": QWEN3_5_27B["text_config"] | {"mtp_num_hidden_layers": 0}}
    assert inspected(values).get("draft") is None


def test_g1_33_a_draft_is_sized_by_its_own_config(tmp_path, inspected):
    """An EAGLE-3 head: one Llama layer of 8 KV heads of 128, not the target's 64 layers."""
    drafting = tmp_path / "draft.json"
    drafting.write_text(json.dumps(config("llama", 1, 5120, 40, 8, head_dim=128)))
    plain = inspected(QWEN3_5_27B, "--context", "1000")
    document = inspected(QWEN3_5_27B, "--context", "1000", "--draft", str(drafting))
    assert document["draft"]["bytes"]["growth_per_token"] == 1 * 2 * 8 * 128 * 2
    assert document["draft"]["total_bytes"] == 1000 * 4_096
    assert str(drafting) in document["draft"]["source"]
    assert (document["bytes"], document["total_bytes"]) == (plain["bytes"], plain["total_bytes"])
