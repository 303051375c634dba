"""Field cases, group G1, where an engine's pool decides: equal groups, floors of hybrids, and what its own log says."""

import json

import pytest

from kvassay.cli import run_command
from kvassay.errors import BadInput
from kvassay.geometry.engine.fit import solve
from kvassay.geometry.engine.grouping import grouping, grouping_trade_off, smallest_grouping
from kvassay.geometry.engine.reading import Reading
from kvassay.geometry.engine.reservation import HybridFloor, floor_block_tokens, window_blocks
from support.families import config, nested

FULL, SLIDING = "full_attention", "sliding_attention"
GPT_OSS_120B = config("gpt_oss", 36, 2880, 64, 8, head_dim=64, sliding_window=128, layer_types=[SLIDING, FULL] * 18)
GEMMA4_31B = nested("gemma4", config("gemma4_text", 60, 5376, 32, 16, head_dim=256, global_head_dim=512, sliding_window=1024, attention_k_eq_v=True, num_global_key_value_heads=4, max_position_embeddings=262144, layer_types=([SLIDING] * 5 + [FULL]) * 10))  # fmt: skip
QWEN3_6_35B = nested("qwen3_5_moe", config("qwen3_5_moe_text", 40, 2048, 16, 2, head_dim=256, full_attention_interval=4, linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4, max_position_embeddings=262144))  # fmt: skip
QWEN3_235B = config("qwen3_moe", 94, 4096, 64, 4, head_dim=128)


@pytest.fixture
def read_log(tmp_path, capsys):
    """`kvassay inspect --json` of a config and readings of an engine's log; what it says on stderr where it refuses."""

    def run(values, readings, *arguments, code=0):
        (tmp_path / "config.json").write_text(json.dumps(values))
        log = tmp_path / "readings.json"
        log.write_text(json.dumps(readings))
        got = run_command(["inspect", str(tmp_path / "config.json"), "--json", "--from-logs", str(log), *arguments])
        said = capsys.readouterr()
        assert got == code, said.err[-400:]
        return json.loads(said.out)["readings"] if code == 0 else said.err

    return run


def test_g1_04_a_log_is_matched_to_its_regime(read_log):
    """5.38 GiB for 78,384 tokens is every layer at full length, not 18 of 36."""
    seen = read_log(GPT_OSS_120B, [{"memory": "5.38 GiB", "tokens": 78_384}])
    assert seen["apparent"] == [pytest.approx(73_698, abs=1)]
    assert seen["regime"] == "all_tokens"
    assert next(price["growth_per_token"] for price in seen["prices"] if price["regime"] == "all_tokens") == 73_728


def test_g1_05_both_long_logs_are_the_reservation(read_log):
    logs = [{"memory": f"{gib} GiB", "tokens": tokens, "max_length": 262_144} for gib, tokens in ((64.68, 626_971), (103.92, 1_007_341))]
    assert read_log(GEMMA4_31B, logs, "--block", "16", "--chunk", "8192")["regime"] == "reservation"
    # The other build's log is another regime: 983,176 bytes per token, every layer in the windowed shape.
    other = read_log(
        GEMMA4_31B, [{"memory": "24.54 GiB", "tokens": 26_800, "max_length": 262_144}], "--block", "16", "--chunk", "8192", code=2
    )
    assert "one reading" in other


@pytest.mark.parametrize(
    ("counts", "size", "groups", "padding", "fraction"),
    [
        ({"full": 19, "sliding": 18}, 18, 2 + 1, 2 * 18 - 19, 17 / 19),
        ({"full": 19, "sliding": 18}, 19, 1 + 1, 1, 1 / 18),
        ({"full": 20, "sliding": 30}, 20, 1 + 2, 2 * 20 - 30, 10 / 30),
        ({"full": 20, "sliding": 30}, 10, 2 + 3, 0, 0.0),
        ({"full": 10, "sliding": 16}, 10, 1 + 2, 2 * 10 - 16, 4 / 16),
        ({"full": 10, "sliding": 16}, 2, 5 + 8, 0, 0.0),
        # Minimum-based sizing makes 46 groups of one; ignoring the single layer, 10 groups of five.
        ({"recurrent": 30, "full": 10, "sliding": 5, "single": 1}, 1, 46, 0, 0.0),
        ({"recurrent": 30, "full": 10, "sliding": 5, "single": 1}, 5, 6 + 2 + 1 + 1, 4, 4 / 1),
        # The two open proposals: width 3 pads no full layer, width 10 has a third of the groups.
        ({"full": 9, "sliding": 39, "draft": 5}, 3, 3 + 13 + 2, 1, 1 / 5),
        ({"full": 9, "sliding": 39, "draft": 5}, 10, 1 + 4 + 1, 1 + 1 + 5, 7 / 53),
    ],
)
def test_g1_25_padding_and_groups(counts, size, groups, padding, fraction):
    its = grouping(counts, size)
    assert (its.groups, its.padding_layers) == (groups, padding)
    assert its.padding_per_layer == pytest.approx(fraction)
    assert groups * size == sum(counts.values()) + padding


def test_g1_25_a_trade_off_is_shown_not_one_optimum():
    counts = {"full": 9, "sliding": 39, "draft": 5}
    shown = {each.size: (each.groups, each.padding_layers) for each in grouping_trade_off(counts)}
    assert shown[3] == (18, 1)
    assert len(shown) > 1
    # More groups never come with more padding than fewer groups.
    pairs = sorted(shown.values())
    assert [padding for _, padding in pairs] == sorted((padding for _, padding in pairs), reverse=True)
    assert smallest_grouping({"recurrent": 30, "full": 10, "sliding": 5, "single": 1}).groups == 46


def test_g1_26_two_runs_tell_growth_and_fixed_parts_apart():
    """3,300 B of growth and 3.2e9 B fixed look like 67,300, 16,100 and 9,700 bytes per token at three max lengths."""
    memory, apparent = 40_000_000_000, {50_000: 67_300, 250_000: 16_100, 500_000: 9_700}
    readings = [Reading(memory, memory // per_token, length, f"log:{length}") for length, per_token in apparent.items()]
    assert [round(reading.bytes_per_token) for reading in readings] == list(apparent.values())
    for some in (readings, readings[:2], readings[1:]):
        fit = solve(some)
        assert fit.growth_per_token == pytest.approx(3_300, rel=0.01)
        assert fit.fixed_per_request == pytest.approx(3.2e9, rel=0.01)
    with pytest.raises(BadInput, match="two max lengths"):
        solve(readings[:1])


def test_g1_26_one_run_of_a_hybrid_is_not_divided(read_log):
    """Qwen3.6-35B-A3B: 20,480 B of growth and 64,389,120 B of state: 22,445 bytes per token at 32,768, 20,726 at 262,144."""
    growth, fixed, memory = 20_480, 64_389_120, 10 * 2**30
    logs = [
        {"memory_bytes": memory, "tokens": round(memory / (growth + fixed / length)), "max_length": length} for length in (32_768, 262_144)
    ]
    seen = read_log(QWEN3_6_35B, logs)
    assert [round(each) for each in seen["apparent"]] == [22_445, 20_726]
    assert seen["growth_per_token"] == pytest.approx(growth, rel=0.001)
    assert seen["fixed_per_request"] == pytest.approx(fixed, rel=0.01)
    assert "one reading" in read_log(QWEN3_6_35B, logs[:1], code=2)


def test_g1_29_block_is_inflated_until_it_holds_a_state():
    """K and V of 1,024 B a token and a state of 1 MiB: 1,024 tokens; from K alone it came out twice as long."""
    assert floor_block_tokens(1_024, 2**20, 16) == 1_024
    assert floor_block_tokens(512, 2**20, 16) == 2_048
    # Not a multiple: the next one.
    assert floor_block_tokens(1_000, 2**20, 16) == 1_056 == 66 * 16
    assert floor_block_tokens(1_000, 1, 16) == 16


def test_g1_29_floor_of_a_request_sets_the_concurrency():
    """GLM-5.3-Flash: 23 groups of 7,808 tokens; a pool of 457,880 tokens serves two requests, however short."""
    floor = HybridFloor(block_tokens=7_808, groups=23, group_size=2, page_bytes=1)
    assert floor.tokens_per_request == 23 * 7_808 == 179_584
    assert floor.requests(457_880) == 2
    # Measured: 12 tokens took 32.9 % of the pool, under the bound.
    assert 12 < 0.329 * 457_880 < floor.tokens_per_request


def test_g1_29_inspect_says_the_floor_of_a_hybrid(tmp_path, capsys):
    """Qwen3.6: a state of 2,146,304 B against 2,048 B a token: 1,048 tokens, so 1,056 in blocks of 16."""
    (tmp_path / "config.json").write_text(json.dumps(QWEN3_6_35B))
    assert run_command(["inspect", str(tmp_path / "config.json"), "--json", "--block", "16", "--chunk", "8192"]) == 0
    floor = json.loads(capsys.readouterr().out)["reservation"]["floor"]
    assert 32 * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 3 * 2 == 2_146_304
    assert floor["block_tokens"] == 1_056 == 66 * 16
    assert floor["tokens_per_request"] == floor["groups"] * 1_056


def test_g1_32_twice_the_tokens_is_twice_the_memory(read_log):
    """94 layers × 2 × 1 head × 128 × 2 bytes on each of 4 ranks: 48,128 B in both logs."""
    logs = [{"memory": "16.46 GiB", "tokens": 367_404}, {"memory": "8.11 GiB", "tokens": 178_880}]
    seen = read_log(QWEN3_235B, logs, "--tp", "4")
    assert 94 * 2 * 1 * 128 * 2 == 48_128
    assert seen["regime"] == "plain"
    assert seen["growth_per_token"] == pytest.approx(48_128, rel=0.02)
    assert all(each == pytest.approx(48_128, rel=0.02) for each in seen["apparent"])
    assert seen["difference"]["cause"] == "memory"
    assert seen["difference"]["memory_ratio"] == pytest.approx(16.46 / 8.11)
    assert seen["difference"]["tokens_ratio"] == pytest.approx(367_404 / 178_880)


@pytest.mark.parametrize(("straddling", "blocks"), [(True, 577), (False, 576)])
def test_a_window_and_a_step_bound_the_blocks_of_a_windowed_layer(straddling, blocks):
    """Gemma 4 31B (also case G5-14): 1,024 + 8,192 tokens in blocks of 16, not the 1,001 blocks of a request of 16,016 tokens."""
    assert -(-16_016 // 16) == 1_001
    assert window_blocks(16_016, 1_024, 16, 8_192, straddling=straddling) == blocks
    assert window_blocks(100, 1_024, 16, 8_192, straddling=straddling) == 7
