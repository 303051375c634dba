"""Readings of an engine's log: growing and fixed parts apart, regimes, what differs, and the files they come in."""

import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvassay.cli.inspect_readings_text import comparison_text
from kvassay.errors import BadInput
from kvassay.geometry.engine.comparison import compare
from kvassay.geometry.engine.fit import divided, solve
from kvassay.geometry.engine.ranks import per_rank
from kvassay.geometry.engine.reading import Reading
from kvassay.geometry.engine.reading_files import MOST_FILE_BYTES, MOST_READINGS, read_readings
from kvassay.geometry.price import native_pairs, with_price
from kvassay.geometry.storage import Storage
from kvassay.records.frontier import Pair
from support.families import config, nested, read_config
from support.small_geometry import small_geometry

GIB = 2**30
FULL, SLIDING = "full_attention", "sliding_attention"
GPT_OSS_120B = config("gpt_oss", 36, 2880, 64, 8, head_dim=64, sliding_window=128, layer_types=[SLIDING, FULL] * 18)
GEMMA4_31B = nested("gemma4", config("gemma4_text", 60, 5376, 32, 16, head_dim=256, global_head_dim=512, sliding_window=1024, attention_k_eq_v=True, num_global_key_value_heads=4, max_position_embeddings=262144, layer_types=([SLIDING] * 5 + [FULL]) * 10))  # fmt: skip
QWEN3_235B = config("qwen3_moe", 94, 4096, 64, 4, head_dim=128)
QWEN3_NEXT = config("qwen3_next", 8, 2048, 16, 2, head_dim=256, full_attention_interval=4, linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4)  # fmt: skip


def of(gib, tokens, length=None, concurrency=None):
    return Reading(math.floor(gib * GIB), tokens, length, "log: line 1", 0.005 * GIB, concurrency)


def printed(growth, fixed, length, memory):
    """What an engine prints: memory ÷ bytes of one longest request, in tokens."""
    return Reading(memory, int(memory / (growth * length + fixed) * length), length, f"log: line {length}")


def compared(geometry, *readings, **options):
    return compare(readings, geometry, native_pairs(geometry), **options)


# --- growth and fixed parts -------------------------------------------------------------------------------------------------------


def test_g1_26_three_runs():
    readings = [Reading(rate * 10**6, 10**6, length, "log") for rate, length in ((67_300, 50_000), (16_100, 250_000), (9_700, 500_000))]
    for chosen in (readings, readings[:2], readings[1:], readings[::2]):
        fit = solve(chosen)
        assert fit.growth_per_token == pytest.approx(3_300, rel=1e-9)
        assert fit.fixed_per_request == pytest.approx(3.2e9, rel=1e-9)
        assert fit.residual < 1e-9
        assert not fit.by_division


@given(
    growth=st.integers(100, 10**6),
    fixed=st.integers(0, 10**10),
    lengths=st.sets(st.sampled_from([2**power for power in range(10, 21)]), min_size=2),
    memory=st.integers(10**11, 10**13),
)
def test_parts_come_back_from_what_an_engine_prints(growth, fixed, lengths, memory):
    readings = [printed(growth, fixed, length, memory) for length in sorted(lengths)]
    fit = solve(readings)
    assert fit.growth_per_token >= 0
    assert fit.fixed_per_request >= 0
    # As far as tokens are rounded down to whole ones.
    assert abs(fit.growth_per_token - growth) <= fit.growth_rounding + 1e-6 * growth
    assert abs(fit.fixed_per_request - fixed) <= fit.fixed_rounding + 1e-6 * max(fixed, growth)
    assert fit.residual < 0.001


def test_errors_of_printed_figures_are_told():
    """5.38 GiB may be 0.005 GiB off, 0.093 %: between lengths a factor 4 apart growth may be off by (4 + 1) / (4 - 1) of that share or so."""
    near = solve([of(5.38, 100_000, 1_000), of(5.38, 100_000, 4_000)])
    assert near.growth_per_token == pytest.approx(5.38 * GIB / 100_000)
    share = 0.005 / 5.38 + 1 / 100_000
    assert near.growth_rounding == pytest.approx(near.growth_per_token * share * 5 / 3)


def test_residual_tells_what_does_not_fit():
    """20 + 800 / length is 100, 60 and 40 at 10, 20 and 40."""
    at = {length: Reading(rate * 10**6, 10**6, length, "l") for length, rate in ((10, 100), (20, 60), (40, 40))}
    assert solve(list(at.values())).residual < 1e-9
    assert solve([at[10], at[20], Reading(48 * 10**6, 10**6, 40, "l")]).residual > 0.02


def test_contradicting_readings_are_refused():
    with pytest.raises(BadInput, match="rise with max length"):
        solve([Reading(10**9, 10**5, 1_000, "log: line 1"), Reading(10**9, 5 * 10**4, 4_000, "log: line 2")])
    # 100 at 1,000 and 20 at 4,000: a fixed part alone would leave 25.
    with pytest.raises(BadInput, match="fall faster"):
        solve([Reading(10**9, 10**7, 1_000, "log: line 1"), Reading(10**9, 5 * 10**7, 4_000, "log: line 2")])
    with pytest.raises(BadInput, match="too close"):
        solve([of(5.38, 100_000, 4_096), of(5.38, 100_000, 4_097)])
    with pytest.raises(BadInput, match="two max lengths"):
        solve([of(5.38, 100_000, 4_096), of(2.38, 50_000, 4_096), of(2.38, 50_000)])


def test_small_negative_parts_are_rounding():
    fit = solve([Reading(1_000_000, 1_000, 1_000, "log"), Reading(1_005_000, 1_000, 4_000, "log")])
    assert (fit.fixed_per_request, fit.growth_per_token) == (0, 1_002.5)
    fixed_only = solve([Reading(4_000_000, 1_000, 1_000, "log"), Reading(998_000, 1_000, 4_000, "log")])
    assert fixed_only.growth_per_token == 0
    assert fixed_only.fixed_per_request == pytest.approx(4_000_000, rel=0.003)


def test_division_of_a_plain_model():
    fit = divided([of(10, 10_000), of(30, 30_000)])
    assert (fit.growth_per_token, fit.fixed_per_request, fit.residual, fit.by_division) == (GIB / 1_000, 0, 0, True)


# --- one reading ------------------------------------------------------------------------------------------------------------------


def test_one_reading_of_a_plain_model_is_a_division(tmp_path):
    seen = compared(small_geometry(), Reading(2_048 * 1_000, 1_000, None, "log"))
    assert (seen.fit.growth_per_token, seen.regime, seen.ratio_growth, seen.ratio_fixed) == (2_048, "plain", 1, None)
    half = compared(small_geometry(), Reading(1_024 * 1_000, 1_000, None, "log"))
    assert (half.regime, half.ratio_growth) == ("neither", 0.5)
    eight_bit = [Pair(k="fp8_e4m3", v="fp8_e4m3")] * 4
    assert compare([Reading(1_024 * 1_000, 1_000, None, "log")], small_geometry(), eight_bit).regime == "plain"


@pytest.mark.parametrize("values", [GEMMA4_31B, QWEN3_NEXT], ids=["windows", "states"])
def test_one_reading_of_a_hybrid_is_refused(tmp_path, values):
    geometry = read_config(tmp_path, values)
    total = with_price(geometry, native_pairs(geometry), 100_000).total_bytes
    for reading in (Reading(10 * total, 10 * 100_000, 100_000, "log: line 7"), Reading(10 * total, 10 * 100_000, None, "log: line 7")):
        with pytest.raises(BadInput, match="log: line 7: one reading of a hybrid cannot be divided"):
            compared(geometry, reading)
    same = [Reading(many * total, many * 100_000, 100_000, "log: line 7") for many in (10, 20)]
    with pytest.raises(BadInput, match="2 readings without two max lengths of a hybrid"):
        compared(geometry, *same)


def test_windows_longer_than_every_reading_make_no_hybrid(tmp_path):
    geometry = read_config(tmp_path, GEMMA4_31B)
    seen = compared(geometry, Reading(901_120 * 1_000, 1_000, 1_000, "log"))
    assert seen.fit.by_division
    assert set(seen.regimes) == {"windows", "all_tokens"}


def test_an_engine_asked_to_keep_all_is_plain(tmp_path):
    geometry = read_config(tmp_path, GEMMA4_31B)
    seen = compared(geometry, Reading(901_120 * 1_000, 1_000, 100_000, "log"), storage=Storage(windows="full"))
    assert (seen.fit.growth_per_token, seen.regime) == (901_120, "plain")


# --- regimes ----------------------------------------------------------------------------------------------------------------------


def test_g1_04_the_log_is_of_all_tokens(tmp_path):
    seen = compared(read_config(tmp_path, GPT_OSS_120B), of(5.38, 78_384, 131_072))
    assert round(seen.apparent[0]) == 73_698
    assert seen.regimes == ("all_tokens",)
    prices = {each.regime: each for each in seen.prices}
    assert (prices["all_tokens"].growth_per_token, prices["windows"].growth_per_token) == (73_728, 36_864)
    assert prices["all_tokens"].distance == pytest.approx(30 / 73_728, rel=0.02)
    assert prices["windows"].distance == pytest.approx(1, abs=0.01)  # twice as much as capped windows
    assert any("keeping every token" in line for line in comparison_text(seen))


def test_two_readings_tell_which_regime(tmp_path):
    geometry = read_config(tmp_path, GEMMA4_31B)
    capped = compared(geometry, *(printed(81_920, 838_860_800, length, 10**11) for length in (16_384, 131_072)))
    assert capped.regimes == ("windows",)
    assert (capped.ratio_growth, capped.ratio_fixed) == (pytest.approx(1, abs=1e-4), pytest.approx(1, abs=1e-4))
    kept = compared(geometry, *(printed(901_120, 0, length, 10**11) for length in (16_384, 131_072)))
    assert kept.regimes == ("all_tokens",)
    assert kept.fit.growth_per_token == pytest.approx(901_120, rel=1e-4)


def test_g1_05_both_logs_are_the_reservation(tmp_path):
    geometry = read_config(tmp_path, GEMMA4_31B)
    logs = [of(64.68, 626_971, 262_144), of(103.92, 1_007_341, 262_144)]
    seen = compared(geometry, *logs, chunk_tokens=8_192, storage=Storage(block_tokens=16))
    assert [round(each) for each in seen.apparent] == [110_770, 110_770]
    assert (seen.fit, seen.regimes) == (None, ("reservation",))
    assert seen.difference.cause == "memory"
    assert any("stay mixed" in line for line in comparison_text(seen))
    # Without a max length they are held against the reservation of the context asked about.
    assert compared(geometry, of(64.68, 626_971), chunk_tokens=8_192, storage=Storage(block_tokens=16)).regimes == ("reservation",)
    with pytest.raises(BadInput, match="cannot be divided"):
        compared(geometry, *logs)
    # The other build: no regime of this model gives 983,000.
    with pytest.raises(BadInput, match="983,"):
        compared(geometry, of(24.54, 26_800, 262_144), chunk_tokens=8_192, storage=Storage(block_tokens=16))


def test_states_are_a_regime_of_their_own(tmp_path):
    geometry = read_config(tmp_path, QWEN3_NEXT)
    state = geometry.bytes.fixed_per_request
    seen = compared(geometry, *(printed(4_096, state, length, 10**11) for length in (1_024, 8_192)))
    assert seen.regimes == ("states",)
    assert (seen.ratio_growth, seen.ratio_fixed) == (pytest.approx(1, abs=1e-3), pytest.approx(1, abs=1e-3))


# --- what differs between readings ------------------------------------------------------------------------------------------------


def test_g1_32_the_budget_differs_not_the_payload(tmp_path):
    whole = read_config(tmp_path, QWEN3_235B)
    geometry = per_rank(whole, native_pairs(whole), 4)
    assert geometry.bytes.growth_per_token == 94 * 2 * 1 * 128 * 2 == 48_128
    seen = compared(geometry, of(16.46, 367_404), of(8.11, 178_880))
    assert seen.regime == "plain"
    assert seen.spread == pytest.approx(48_681 / 48_104 - 1, rel=0.01) == pytest.approx(0.012, abs=0.0005)
    assert seen.memory_spread == pytest.approx(16.46 / 8.11 - 1)
    difference = seen.difference
    assert (difference.more.tokens, difference.less.tokens, difference.cause) == (367_404, 178_880, "memory")
    assert difference.tokens_ratio == pytest.approx(2.0539, abs=1e-4)
    assert difference.memory_ratio / difference.bytes_per_token_ratio == pytest.approx(difference.tokens_ratio)
    assert any("not the payload" in line for line in comparison_text(seen))


def test_a_smaller_format_is_told_from_a_larger_memory():
    geometry = small_geometry()
    native, eight_bit, both = (
        Reading(2_048_000, 1_000, None, "l"),
        Reading(2_048_000, 2_000, None, "l"),
        Reading(4_096_000, 4_000, None, "l"),
    )
    assert compared(geometry, native, eight_bit).difference.cause == "bytes_per_token"
    assert compared(geometry, native, both).difference.cause == "both"
    assert compared(geometry, native, native).difference is None


def test_a_log_that_counts_tokens_by_blocks_is_noted(tmp_path):
    geometry = read_config(tmp_path, GPT_OSS_120B)
    assert "3.52 requests" in compared(geometry, of(5.38, 78_384, 131_072, concurrency=3.52)).notes[0]
    assert compared(geometry, of(5.38, 78_384, 131_072, concurrency=0.6)).notes == ()  # 0.598, rounded
    assert compared(geometry, of(5.38, 78_384, 131_072)).notes == ()


@given(
    st.lists(st.tuples(st.integers(1, 2**60), st.integers(1, 2**40), st.one_of(st.none(), st.integers(1, 2**40))), min_size=1, max_size=6)
)
def test_any_readings_are_explained_or_refused(rows):
    readings = [Reading(memory, tokens, length, f"log: line {line}") for line, (memory, tokens, length) in enumerate(rows, 1)]
    for geometry in (small_geometry(), small_geometry(sliding_window=512, model_type="mistral")):
        try:
            seen = compared(geometry, *readings, chunk_tokens=512, storage=Storage(block_tokens=16))
        except BadInput as refused:
            assert str(refused).startswith("log: line")
        else:
            figures = [
                seen.spread,
                *seen.apparent,
                *((seen.fit.growth_per_token, seen.fit.fixed_per_request, seen.fit.residual) if seen.fit else ()),
            ]
            assert all(math.isfinite(each) and each >= 0 for each in figures)
            assert comparison_text(seen)


def test_too_many_max_lengths_are_refused():
    with pytest.raises(BadInput, match="256"):
        compared(small_geometry(), *(Reading(10**9, 10**5, length, "log: line 1") for length in range(1, 258)))


# --- files ------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def readings_of(tmp_path):
    def read(content):
        path = tmp_path / "readings"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return [(each.memory_bytes, each.tokens, each.max_length) for each in read_readings(path)]

    return read


EXPECTED = [(5 * GIB, 78_384, 131_072), (10 * GIB, 156_768, None)]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([{"memory": "5GiB", "tokens": 78_384, "max_length": 131_072}, {"memory_bytes": 10 * GIB, "tokens": 156_768, "max_length": None}]),
        json.dumps([{"memory_gib": 5, "tokens": 78_384, "max_model_len": 131_072, "host": "a"}, {"memory": 10 * GIB, "tokens": "156,768"}], indent=2),
        '{"memory": "5 GiB", "tokens": 78384, "max_length": 131072}\n\n{"memory_gib": 10.0, "tokens": 156768}\n',
        "memory,tokens,max_length\n5GiB,78384,131072\n10 GiB,156768,\n",
        "\ufeffTokens,Memory_GiB,max_model_len,host\r\n\"78,384\",5,\"131,072\",a\r\n156768,10.00,,b\r\n",
    ],
    ids=["list", "pretty", "lines", "csv", "csv from a sheet"],
)  # fmt: skip
def test_tables(readings_of, content):
    assert readings_of(content) == EXPECTED


def test_one_object_over_several_lines(readings_of):
    assert readings_of('{\n "memory": "5GiB",\n "tokens": 10\n}\n') == [(5 * GIB, 10, None)]


VLLM = """\
(Worker pid=9) INFO 12-01 04:00:01 [gpu_worker.py:298] Available KV cache memory: 5.38 GiB
(EngineCore pid=8) INFO 12-01 04:00:02 [kv_cache_utils.py:849] GPU KV cache size: 78,384 tokens
(EngineCore pid=8) INFO 12-01 04:00:02 [kv_cache_utils.py:853] Maximum concurrency for 131,072 tokens per request: 3.52x
(APIServer pid=1) INFO Application startup complete.
"""


def test_log_of_a_gpu(readings_of, tmp_path):
    assert readings_of(VLLM) == [(math.floor(5.38 * GIB), 78_384, 131_072)]
    reading = read_readings(tmp_path / "readings")[0]
    assert (reading.where, reading.concurrency, reading.memory_rounding_bytes) == (f"{tmp_path / 'readings'}: line 2", 3.52, 0.005 * GIB)


def test_log_on_one_line_of_a_cpu_and_of_a_fixed_budget(readings_of):
    line = "{} KV cache size: 93,184 tokens, Maximum concurrency for 2,048 tokens per request: 45.50x\n"
    assert readings_of("Explicitly set (1.0/23.03) GiB for KV cache on node 0.\n" + line.format("CPU")) == [(GIB, 93_184, 2_048)]
    assert readings_of("Auto set (1.5/18.0) GiB for KV cache on node 0, with more\n" + line.format("GPU")) == [
        (3 * GIB // 2, 93_184, 2_048)
    ]
    fixed = "Initial free memory 31.17 GiB, reserved 2.0 GiB memory for KV Cache as specified by kv_cache_memory_bytes\n"
    assert readings_of(fixed + line.format("GPU")) == [(2 * GIB, 93_184, 2_048)]


def test_several_starts_in_one_log(readings_of):
    second = VLLM.replace("5.38", "2.69").replace("78,384", "39,184").replace("131,072", "65,536")
    assert readings_of(VLLM + second) == [(math.floor(5.38 * GIB), 78_384, 131_072), (math.floor(2.69 * GIB), 39_184, 65_536)]
    # A start that found too little memory says a negative figure and gives up.
    assert len(readings_of("Available KV cache memory: -3.21 GiB\nValueError: No available memory\n" + VLLM)) == 1
    # One that cannot hold a single request gives up too; so does one that ends before it says its capacity.
    for end in ("EngineCore failed to start.\n", "RuntimeError: Engine core initialization failed.\n", "vLLM API server version 0.32.0\n"):
        assert readings_of("Available KV cache memory: 1.00 GiB\n" + end + VLLM) == readings_of(VLLM)


def test_the_smallest_worker_decides(readings_of):
    workers = "".join(f"Available KV cache memory: {gib} GiB\n" for gib in ("8.20", "8.11", "8.25", "8.20"))
    size = "GPU KV cache size: 178,880 tokens\nMaximum concurrency for 40,960 tokens per request: 4.37x\n"
    assert readings_of(workers + size) == [(math.floor(8.11 * GIB), 178_880, 40_960)]
    assert readings_of(workers + size * 4) == [(math.floor(8.11 * GIB), 178_880, 40_960)]
    # Each worker with a capacity of its own: the smaller memory is the smaller capacity.
    apart = "Available KV cache memory: 8.00 GiB\nAvailable KV cache memory: 4.00 GiB\nGPU KV cache size: 100 tokens\nGPU KV cache size: 200 tokens\n"
    assert readings_of(apart) == [(4 * GIB, 100, None), (8 * GIB, 200, None)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "line 1: neither"),
        ("hello\nworld\n", "line 1: neither"),
        ("[]", "no reading"),
        ("memory,tokens\n", "no reading"),
        ("[1]", "reading 1: must be an object"),
        ('[{"memory": "5GiB"}]', "reading 1: tokens: missing"),
        ('[{"tokens": 5}]', "reading 1: memory: missing"),
        ('[{"memory": "5GiB", "memory_gib": 5, "tokens": 5}]', "memory and memory_gib: say one"),
        ('[{"memory": "5GiB", "tokens": 5, "max_length": 1, "max_model_len": 1}]', "max_length and max_model_len: say one"),
        ('[{"memory": "5GiB", "tokens": 5.5}]', "tokens: must be a whole number"),
        ('[{"memory": "5GiB", "tokens": true}]', "tokens: must be a whole number"),
        ('[{"memory": "5GiB", "tokens": 0}]', "tokens: must be a whole number from 1"),
        ('[{"memory": "5GiB", "tokens": 1' + "0" * 400 + "}]", "tokens: must be a whole number from 1"),
        ('[{"memory": "5GiB", "tokens": "1,00"}]', "tokens: must be a whole number"),
        ('[{"memory": "5GiB", "tokens": 5, "max_length": -1}]', "max_length: must be a whole number from 1"),
        ('[{"memory": "5 bananas", "tokens": 5}]', "reading 1: memory .*not a size"),
        ('[{"memory": -5, "tokens": 5}]', "memory: must be a positive number"),
        ('[{"memory": true, "tokens": 5}]', "memory: must be a positive number"),
        ('[{"memory_gib": 1e400, "tokens": 5}]', "memory_gib: must be a positive number"),
        ('[{"memory_gib": NaN, "tokens": 5}]', "NaN is not JSON"),
        ('[{"memory_gib": 1e-30, "tokens": 5}]', "memory_gib: must be more than 0"),
        ('[{"memory_gib": 1e15, "tokens": 5}]', "memory_gib .*more than any machine"),
        ('[{"memory_bytes": "5GiB", "tokens": 5}]', "memory_bytes: must be a positive number"),
        ('[{"memory": 0.5, "tokens": 5}]', "memory: must be more than 0"),
        ('[{"memory": "5GiB", "memory": "6GiB", "tokens": 5}]', "a key stands twice"),
        ("[" * 100_000, "not valid JSON"),
        ('{"memory": "5GiB", "tokens": 5}\n{"memory": "5GiB", "tokens": -5}\n', "line 2: tokens"),
        ('{"memory": "5GiB", "tokens": 5}\noops\n', "line 2: not valid JSON"),
        ("memory,tokens\n5GiB,7\n5GiB\n", "line 3: has 1 cells"),
        ("memory,tokens\n5GiB,seven\n", "line 2: tokens"),
        ("memory,tokens,tokens\n5GiB,7,7\n", "line 1: neither"),
        ('memory,tokens\n"5GiB,7\n', "not CSV"),
        ("memory,tokens\n" + "9" * 200_000 + ",7\n", "line 2: not CSV"),
        ("GPU KV cache size: 78,384 tokens\n", "line 1: a cache of 78,384 tokens without the memory"),
        ("Available KV cache memory: -3.21 GiB\nGPU KV cache size: 78,384 tokens\n", "line 2: a cache of"),
        ("Available KV cache memory: 5..38 GiB\nGPU KV cache size: 78,384 tokens\n", "line 1: memory .*not a size"),
        ("Available KV cache memory: 5.38 GiB\nGPU KV cache size: 0 tokens\n", "line 2: tokens"),
        ("Available KV cache memory: 5.38 GiB\nGPU KV cache size: ,,, tokens\n", "line 2: tokens"),
        (VLLM + "GPU KV cache size: 78,385 tokens\n", "line 2: 2 different capacities and memory on 1 lines"),
        (VLLM + "Maximum concurrency for 4,096 tokens per request: 9.99x\n", "line 2: one start of the engine names 2 max lengths"),
        (b"\xff\xfe\x00\x01" * 100, "line 1: neither"),
    ],
)  # fmt: skip
def test_refusals_name_the_line(readings_of, content, words):
    with pytest.raises(BadInput, match=words) as refused:
        readings_of(content)
    assert len(str(refused.value)) < 400


def test_sizes_of_files_are_bounded(readings_of, tmp_path):
    line = '{"memory": "5GiB", "tokens": 5}\n'
    assert len(readings_of(line * MOST_READINGS)) == MOST_READINGS
    with pytest.raises(BadInput, match="more than 10,000 readings"):
        readings_of(line * (MOST_READINGS + 1))
    with pytest.raises(BadInput, match="larger than"):
        readings_of("x" * (MOST_FILE_BYTES + 1))
    with pytest.raises(BadInput, match="no such file"):
        read_readings(tmp_path / "none")
    with pytest.raises(BadInput, match="not a regular file"):
        read_readings(tmp_path)


@pytest.mark.parametrize(
    "piece",
    ["GPU KV cache size: ", "Available KV cache memory: ", "Maximum concurrency for 1", "set (9/", "reserved 1.1", "KV cache size: 1 tokens\n", "{", '"', "\n", "[{"],
)  # fmt: skip
def test_hostile_text_ends_soon(readings_of, piece):
    started = time.monotonic()
    with pytest.raises(BadInput):
        readings_of(piece * (MOST_FILE_BYTES // len(piece)))
    assert time.monotonic() - started < 10


@given(st.binary(max_size=300))
def test_any_bytes_are_readings_or_bad_input(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any-readings"
    path.write_bytes(data)
    with pytest.raises(BadInput):
        read_readings(path)
