"""Equal layers priced once: the same bytes as the price, for capacities and reservations of every kind of cache."""

import pytest

from kvassay.geometry.engine.alike import bytes_of_tokens
from kvassay.geometry.engine.memory import capacity, longest_context
from kvassay.geometry.engine.reservation import reserve
from kvassay.geometry.price import native_pairs, with_price
from kvassay.geometry.storage import Storage
from kvassay.records.frontier import Pair
from support.families import config, nested, read_config
from support.small_geometry import small_geometry

GEMMA4_31B = nested("gemma4", config("gemma4_text", 60, 5376, 32, 16, head_dim=256, global_head_dim=512, sliding_window=1024, attention_k_eq_v=True, num_global_key_value_heads=4, max_position_embeddings=262144, layer_types=(["sliding_attention"] * 5 + ["full_attention"]) * 10))  # fmt: skip
QWEN3_NEXT = config("qwen3_next", 8, 2048, 16, 2, head_dim=256, full_attention_interval=4, linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4)  # fmt: skip
STATE_BYTES = 32 * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 3 * 2
V3_2 = config("deepseek_v32", 3, 7168, 128, 128, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, index_head_dim=128, index_n_heads=64, index_topk=2048)  # fmt: skip
WHISPER = config("whisper", 4, 384, 6, None, d_model=384, decoder_layers=4, decoder_attention_heads=6, encoder_layers=4, encoder_attention_heads=6, max_source_positions=1500, max_target_positions=448)  # fmt: skip
STORAGES = [Storage(), Storage(windows="full"), Storage(head_align=96, block_tokens=48)]


@pytest.mark.parametrize("values", [GEMMA4_31B, QWEN3_NEXT, V3_2, WHISPER], ids=["windows", "states", "indexer", "cross"])
@pytest.mark.parametrize("storage", STORAGES, ids=["plain", "full", "padded"])
def test_quick_price_is_the_price(tmp_path, values, storage):
    geometry = read_config(tmp_path, values)
    pairs = [Pair(k="fp8_e4m3", v="native")] * len(geometry.owners)
    quick = bytes_of_tokens(geometry, pairs, storage)
    for tokens in (1, 2, 47, 48, 49, 1_023, 1_024, 1_025, 100_000):
        assert quick(tokens) == with_price(geometry, pairs, tokens, storage).total_bytes


def test_longest_context_of_a_model_with_windows(tmp_path):
    """Gemma 4 31B: under 1,024 tokens all 901,120 bytes grow, beyond it 81,920, on top of 838,860,800 of full windows."""
    geometry = read_config(tmp_path, GEMMA4_31B)
    pairs = native_pairs(geometry)
    assert longest_context(geometry, pairs, 901_120 * 500) == 500
    assert longest_context(geometry, pairs, 838_860_800 + 81_920 * 5_000) == 5_000
    assert longest_context(geometry, pairs, 838_860_800 + 81_920 * 300_000) == 262_144


def test_states_bound_requests_and_keep_their_dtype(tmp_path):
    geometry = read_config(tmp_path, QWEN3_NEXT)
    state = 6 * STATE_BYTES
    room = capacity(geometry, 100, 10 * (state + 100 * 4_096), 0)
    assert room.requests["native"] == 10
    assert {each.format: each.bytes_per_request for each in room.formats}["fp8_e4m3"] == state + 100 * 2_048
    assert longest_context(geometry, native_pairs(geometry), state - 1) == 0


def test_formats_that_fit_no_head_are_left_out(tmp_path):
    geometry = read_config(tmp_path, config("opt", 2, 2560, 32))
    assert {layer.k_dim for layer in geometry.owners} == {80}
    names = set(capacity(geometry, 10, 2**30, 0).requests)
    assert "nvfp4" in names  # groups of 16
    assert not names & {"mxfp4", "int4_g32", "int4_g64"}  # groups of 32 and 64 do not divide 80


def test_states_and_cross_caches_are_reserved_whatever_the_length(tmp_path):
    geometry = read_config(tmp_path, QWEN3_NEXT)
    hybrid = reserve(geometry, native_pairs(geometry), 17, 8_192, Storage(block_tokens=16))
    assert hybrid.state_bytes == 6 * STATE_BYTES
    assert hybrid.bytes_per_request == 6 * STATE_BYTES + 2 * 32 * 2 * 2 * 256 * 2  # 17 tokens take two blocks of 16
    geometry = read_config(tmp_path, WHISPER)
    crossed = reserve(geometry, native_pairs(geometry), 16, 8_192, Storage(block_tokens=16))
    assert crossed.blocks == {"full": 1, "cross": 94}  # 1,500 encoder rows in blocks of 16
    assert crossed.bytes_per_request == 4 * (1 + 94) * 16 * 2 * 6 * 64 * 2


def test_indexer_keys_formats_and_padded_heads_are_in_the_blocks(tmp_path):
    latent = read_config(tmp_path, V3_2)
    assert reserve(latent, native_pairs(latent), 64, 64, Storage(block_tokens=64)).bytes_per_request == 3 * 64 * (576 * 2 + 132)
    geometry, pairs = small_geometry(), [Pair(k="fp8_e4m3", v="nvfp4")] * 4
    assert reserve(geometry, pairs, 16, 16, Storage(block_tokens=16)).bytes_per_request == 4 * 16 * 2 * (64 + 32 + 4)
    assert reserve(geometry, pairs, 16, 16, Storage(head_align=128, block_tokens=16)).bytes_per_request == 4 * 16 * 2 * (128 + 64 + 8)


def test_a_chunk_that_blocks_do_not_fill_straddles_one_more(tmp_path):
    scout = config("llama4_text", 4, 5120, 40, 8, head_dim=128, attention_chunk_size=8192, no_rope_layers=[], interleave_moe_layer_step=1)
    geometry = read_config(tmp_path, scout)
    assert reserve(geometry, native_pairs(geometry), 10**6, 8_192, Storage(block_tokens=16)).blocks["chunked"] == (8_192 + 8_192) // 16
    # ceil((8191 + 8192) / 48) + 1
    assert reserve(geometry, native_pairs(geometry), 10**6, 8_192, Storage(block_tokens=48)).blocks["chunked"] == 342 + 1
