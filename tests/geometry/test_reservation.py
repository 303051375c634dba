"""What a paged engine reserves for one request, and the floor that recurrent states put under every request."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvassay.cli import run_command
from kvassay.errors import BadInput
from kvassay.geometry.engine.grouping import grouping, kind_counts, smallest_grouping
from kvassay.geometry.engine.reservation import HybridFloor, floor_block_tokens, hybrid_floor, reserve, window_blocks
from kvassay.geometry.price import native_pairs, with_price
from kvassay.geometry.storage import Storage
from support.families import config, nested, read_config
from support.small_geometry import small_geometry

FULL, SLIDING = "full_attention", "sliding_attention"
GEMMA4_31B = nested("gemma4", config("gemma4_text", 60, 5376, 32, 16, head_dim=256, global_head_dim=512, sliding_window=1024, attention_k_eq_v=True, num_global_key_value_heads=4, max_position_embeddings=262144, layer_types=([SLIDING] * 5 + [FULL]) * 10))  # fmt: skip
QWEN3_6_35B = nested("qwen3_5_moe", config("qwen3_5_moe_text", 40, 2048, 16, 2, head_dim=256, full_attention_interval=4, linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4))  # fmt: skip
SCOUT = nested("llama4", config("llama4_text", 48, 5120, 40, 8, head_dim=128, attention_chunk_size=8192, no_rope_layers=[], interleave_moe_layer_step=1))  # fmt: skip

counts = st.integers(1, 300_000)


def test_g1_05_window_of_1024_and_a_step_of_8192_take_577_blocks():
    assert window_blocks(262_144, 1_024, 16, 8_192) == -(-(1_023 + 8_192) // 16) + 1 == 577
    assert 577 * 16 == 9_232


def test_g5_14_a_request_of_16016_tokens_takes_the_window_not_its_length():
    assert window_blocks(16_016, 1_024, 16, 8_192) == 577
    assert window_blocks(16_016, 1_024, 16, 8_192, straddling=False) == (1_024 + 8_192) // 16 == 576
    assert 16_016 // 16 == 1_001  # what admission charged: the whole length


def test_g5_14_shorter_requests_take_their_own_length():
    assert window_blocks(1_000, 1_024, 16, 8_192) == 63
    assert window_blocks(9_216, 1_024, 16, 8_192) == 576
    assert window_blocks(9_232, 1_024, 16, 8_192) == window_blocks(10**9, 1_024, 16, 8_192) == 577


@given(tokens=counts, more=counts, window=st.integers(1, 9000), block=st.integers(1, 300), chunk=st.integers(1, 9000))
def test_window_blocks_never_fall_with_length_and_hold_the_window(tokens, more, window, block, chunk):
    held = window_blocks(tokens, window, block, chunk)
    assert held <= window_blocks(tokens + more, window, block, chunk)
    assert min(tokens, window) <= held * block < tokens + block
    assert window_blocks(tokens, window, block, chunk, straddling=False) <= held


def test_g1_05_bytes_and_blocks_per_kind(tmp_path):
    geometry = read_config(tmp_path, GEMMA4_31B)
    reserved = reserve(geometry, native_pairs(geometry), 262_144, 8_192, Storage(block_tokens=16))
    assert reserved.blocks == {"sliding": 577, "full": 16_384}
    windowed = 50 * 2 * 16 * 256 * 2
    assert reserved.bytes_per_request == 81_920 * 262_144 + windowed * 9_232 == 29_037_690_880
    assert round(reserved.bytes_per_token_at_this_context) == 110_770
    # Half the bytes per element, half the reservation: it is priced in the chosen formats.
    halved = reserve(geometry, [pair.model_copy(update={"k": "fp8_e4m3", "v": "fp8_e4m3"}) for pair in native_pairs(geometry)], 262_144, 8_192, Storage(block_tokens=16))  # fmt: skip
    assert 2 * halved.bytes_per_request == reserved.bytes_per_request


def test_an_engine_that_keeps_every_token_reserves_the_length(tmp_path):
    geometry = read_config(tmp_path, GEMMA4_31B)
    reserved = reserve(geometry, native_pairs(geometry), 262_144, 8_192, Storage(windows="full", block_tokens=16))
    assert reserved.bytes_per_request == 901_120 * 262_144
    assert set(reserved.blocks.values()) == {16_384}


def test_chunked_layers_reserve_their_chunk_and_one_step(tmp_path):
    """Llama 4 Scout: 36 layers of chunks of 8,192; chunks begin where blocks do, so nothing straddles."""
    geometry = read_config(tmp_path, SCOUT)
    reserved = reserve(geometry, native_pairs(geometry), 100_000, 8_192, Storage(block_tokens=16))
    assert reserved.blocks == {"full": 6_250, "chunked": (8_192 + 8_192) // 16}
    assert reserved.bytes_per_request == 49_152 * 100_000 + 147_456 * 16_384


@settings(max_examples=60, deadline=None)
@given(tokens=st.integers(1, 100_000), more=st.integers(0, 100_000), block=st.integers(1, 256), chunk=st.integers(1, 9000))
def test_a_reservation_holds_what_the_request_holds_and_never_falls(tokens, more, block, chunk):
    geometry = small_geometry(sliding_window=512, model_type="mistral")
    pairs = native_pairs(geometry)
    reserved = reserve(geometry, pairs, tokens, chunk, Storage(block_tokens=block))
    assert reserved.bytes_per_request >= with_price(geometry, pairs, tokens).total_bytes > 0
    assert reserve(geometry, pairs, tokens + more, chunk, Storage(block_tokens=block)).bytes_per_request >= reserved.bytes_per_request


@pytest.mark.parametrize(("tokens", "chunk", "block"), [(0, 1, 16), (1, 0, 16), (1, 1, 0)])
def test_counts_below_one_are_refused(tokens, chunk, block):
    geometry = small_geometry()
    with pytest.raises(BadInput, match="at least 1"):
        reserve(geometry, native_pairs(geometry), tokens, chunk, Storage(block_tokens=block))


def test_g1_29_floor_of_a_request_is_one_block_per_group():
    """Blocks of 7,808 tokens in about 23 groups: at most 179,584 tokens for a prompt of 12, however little it holds."""
    floor = HybridFloor(block_tokens=7_808, groups=23, group_size=1, page_bytes=1)
    assert floor.tokens_per_request == 23 * 7_808 == 179_584
    assert floor.requests(457_880) == 2


def test_g1_29_k_and_v_decide_not_k_alone():
    """A state of 2 MiB: 1,024 tokens of 1 KiB of K and 1 KiB of V; K alone would give twice the block."""
    assert floor_block_tokens(2_048, 2 * 2**20, 128) == 1_024
    assert floor_block_tokens(1_024, 2 * 2**20, 128) == 2_048
    assert floor_block_tokens(2_048, 2 * 2**20 + 1, 128) == 1_152
    assert floor_block_tokens(2_048, 0, 128) == 128


@given(row=st.integers(1, 10**6), state=st.integers(1, 10**9), multiple=st.integers(1, 2048))
def test_block_of_a_hybrid_is_the_smallest_multiple_that_holds_a_state(row, state, multiple):
    block = floor_block_tokens(row, state, multiple)
    assert block % multiple == 0
    assert block * row >= state
    assert block == multiple or (block - multiple) * row < state


def test_floor_of_qwen3_6_35b(tmp_path):
    """A state of 32 x 128 x 128 FP32 and three columns of 8,192 BF16 channels, 2,048 bytes of K and V per token: 1,056 tokens of 16."""
    geometry = read_config(tmp_path, QWEN3_6_35B)
    state = 32 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2
    assert state == 2_146_304
    assert 1_056 * 2_048 >= state > 1_040 * 2_048
    floor = hybrid_floor(geometry, native_pairs(geometry), 16, smallest_grouping(kind_counts(geometry)))
    assert (floor.block_tokens, floor.groups, floor.group_size) == (1_056, 4, 10)
    assert floor.tokens_per_request == 4_224
    # A smaller format of K and V needs more tokens for the same state: 1,048 rounds up to 2,096.
    eight_bit = [pair.model_copy(update={"k": "fp8_e4m3", "v": "fp8_e4m3"}) for pair in native_pairs(geometry)]
    assert hybrid_floor(geometry, eight_bit, 16, grouping({"all": 40}, 10)).block_tokens == 2_096


def test_models_without_states_have_no_floor(tmp_path):
    geometry = read_config(tmp_path, GEMMA4_31B)
    assert hybrid_floor(geometry, native_pairs(geometry), 16, smallest_grouping(kind_counts(geometry))) is None


def inspected(tmp_path, capsys, values, *arguments):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values))
    assert run_command(["inspect", str(path), *arguments]) == 0
    return capsys.readouterr().out


def test_inspect_reservation(tmp_path, capsys):
    arguments = ("--block", "16", "--chunk", "8192")
    document = json.loads(inspected(tmp_path, capsys, GEMMA4_31B, *arguments, "--json"))
    assert document["reservation"] == {
        "block_tokens": 16,
        "chunk_tokens": 8192,
        "bytes_per_request": 29_037_690_880,
        "bytes_per_token_at_this_context": 29_037_690_880 / 262_144,
        "blocks": {"sliding": 577, "full": 16_384},
    }
    text = inspected(tmp_path, capsys, GEMMA4_31B, *arguments)
    assert "reserves 27.04 GiB" in text
    assert "110,770 bytes per token at 262,144 tokens only" in text
    assert "reservation" not in json.loads(inspected(tmp_path, capsys, GEMMA4_31B, "--block", "16", "--json"))


def test_inspect_reservation_per_rank(tmp_path, capsys):
    document = json.loads(inspected(tmp_path, capsys, GEMMA4_31B, "--block", "16", "--chunk", "8192", "--tp", "4", "--json"))
    assert document["reservation"]["bytes_per_request"] == 29_037_690_880
    assert 4 * document["reservation"]["bytes_per_request_and_rank"] == 29_037_690_880


def test_inspect_floor(tmp_path, capsys):
    document = json.loads(inspected(tmp_path, capsys, QWEN3_6_35B, "--block", "16", "--json"))
    assert document["reservation"]["floor"] == {"block_tokens": 1_056, "groups": 4, "group_size": 10, "tokens_per_request": 4_224}
    text = inspected(tmp_path, capsys, QWEN3_6_35B, "--block", "16")
    assert "this floor, not the payload, sets how many short requests run at once" in text
