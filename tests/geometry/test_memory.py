"""Sizes as people write them, and how many requests fit beside the weights."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvassay.cli import run_command
from kvassay.errors import BadInput
from kvassay.geometry.engine.memory import capacity, longest_context
from kvassay.geometry.engine.sizes import MOST_BYTES, parse_bytes
from kvassay.geometry.price import native_pairs, with_price
from kvassay.geometry.storage import Storage
from support.families import config
from support.small_geometry import small_geometry

GIB = 2**30
QWEN3_8B = config("qwen3", 36, 4096, 32, 8, head_dim=128, max_position_embeddings=40960)
V2_LITE = config("deepseek_v2", 27, 2048, 16, 16, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, q_lora_rank=None)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("80GiB", 80 * GIB),
        ("80 gib", 80 * GIB),
        (" 16.5GB ", 16_500_000_000),
        ("0.5KiB", 512),
        ("5.38GiB", int(5.38 * GIB)),
        ("1TB", 10**12),
        ("1TiB", 2**40),
        ("3MB", 3_000_000),
        ("3MiB", 3 * 2**20),
        ("7KB", 7_000),
        ("123B", 123),
        ("0B", 0),
        ("1048576TiB", MOST_BYTES),
    ],
)
def test_sizes(text, size):
    assert parse_bytes(text, "--memory") == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        "80",
        "GiB",
        "-3GiB",
        "nan",
        "nanGiB",
        "infGiB",
        "1e3GiB",
        "1,000GiB",
        "80GiBs",
        "80Gib/s",
        "8 0GiB",
        "..GiB",
        "1.GiB",
        ".5GiB",
        "٣GiB",
        "9" * 30 + "GiB",
        "1048577TiB",
        "9" * 10**6 + "GiB",
        "80PiB",
        "1\n2GiB",
    ],
)
def test_what_is_no_size_is_refused_by_its_option(text):
    with pytest.raises(BadInput, match="--weights") as refused:
        parse_bytes(text, "--weights")
    assert len(str(refused.value)) < 250


@given(st.text(max_size=70))
def test_any_text_is_a_size_or_bad_input(text):
    try:
        assert 0 <= parse_bytes(text, "--memory") <= MOST_BYTES
    except BadInput as refused:
        assert "--memory" in str(refused)


@given(st.integers(0, 10**6), st.sampled_from(["B", "KB", "MB", "GB", "KiB", "MiB", "GiB"]))
def test_whole_numbers_are_exact(count, unit):
    assert parse_bytes(f"{count}{unit}", "--memory") == count * parse_bytes(f"1{unit}", "--memory")


def test_requests_of_each_format():
    """4 layers of 2 heads of 64: 2,048 bytes per token natively, 1,024 in FP8, 4.5 bits per element in NVFP4: 576."""
    geometry = with_price(small_geometry(), native_pairs(small_geometry()), 1000)
    room = capacity(geometry, 1000, 10_000_000, 1_000_000)
    assert room.free_bytes == 9_000_000
    assert room.requests["native"] == room.requests["bf16"] == 9_000_000 // 2_048_000 == 4
    assert room.requests["fp8_e4m3"] == 9_000_000 // 1_024_000 == 8
    assert room.requests["nvfp4"] == 9_000_000 // 576_000 == 15
    assert room.longest_context_tokens == 4096  # the model's own longest; 9 MB would take 4,394
    assert "int4_g128" not in room.requests  # a head of 64 has no group of 128


def test_a_request_that_does_not_fit_is_none_and_the_longest_is_shorter():
    geometry = small_geometry()
    room = capacity(geometry, 4096, 2_048 * 100 + 1, 0)
    assert room.requests["native"] == 0
    assert room.longest_context_tokens == 100
    assert capacity(geometry, 4096, 2_047, 0).longest_context_tokens == 0


def test_weights_that_leave_nothing_are_refused():
    for weights in (10, 11):
        with pytest.raises(BadInput, match="--weights"):
            capacity(small_geometry(), 10, 10, weights)


@settings(max_examples=60, deadline=None)
@given(free=st.integers(1, 2**33), block=st.sampled_from([1, 16, 100]), window=st.sampled_from([None, 300]))
def test_longest_context_fits_and_one_token_more_does_not(free, block, window):
    geometry = small_geometry(sliding_window=window, model_type="mistral") if window else small_geometry()
    storage, pairs = Storage(block_tokens=block), native_pairs(geometry)
    tokens = longest_context(geometry, pairs, free, storage)
    assert 0 <= tokens <= geometry.max_position_embeddings
    if tokens:
        assert with_price(geometry, pairs, tokens, storage).total_bytes <= free
    if tokens < geometry.max_position_embeddings:
        assert with_price(geometry, pairs, tokens + 1, storage).total_bytes > free


@settings(max_examples=40, deadline=None)
@given(memory=st.integers(2, 2**34), more=st.integers(0, 2**34), tokens=st.integers(1, 4096))
def test_more_memory_never_fits_fewer(memory, more, tokens):
    geometry = small_geometry()
    small, large = (capacity(geometry, tokens, size, 1) for size in (memory, memory + more))
    assert small.longest_context_tokens <= large.longest_context_tokens
    for name, count in small.requests.items():
        assert 0 <= count <= large.requests[name]


@pytest.fixture
def inspect(tmp_path, capsys):
    def run(values, *arguments):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(values))
        code = run_command(["inspect", str(path), *arguments])
        return code, capsys.readouterr()

    return run


def test_inspect_capacity(inspect):
    """64 GiB hold 14 requests of 4.5 GiB, 28 of 2.25 GiB, and 50 in NVFP4 (1.265625 GiB)."""
    code, said = inspect(QWEN3_8B, "--context", "32768", "--memory", "80GiB", "--weights", "16GiB", "--json")
    assert code == 0
    shown = json.loads(said.out)["capacity"]
    assert (shown["memory_bytes"], shown["weights_bytes"], shown["free_bytes"]) == (80 * GIB, 16 * GIB, 64 * GIB)
    assert shown["longest_context_tokens"] == 40_960
    assert (shown["requests"]["native"], shown["requests"]["fp8_e4m3"], shown["requests"]["nvfp4"]) == (14, 28, 50)
    assert "chosen" not in shown["requests"]
    code, said = inspect(QWEN3_8B, "--context", "32768", "--memory", "80GiB", "--weights", "16GiB")
    assert "64.00 GiB of 80.00 GiB are left for caches" in said.out
    assert ["nvfp4", "50", "40,960"] in [line.split() for line in said.out.splitlines()]


def test_inspect_chosen_formats_are_counted_beside_the_uniform_ones(inspect):
    """K in FP8 and V in NVFP4: 36 x 8 x (128 + 72) x 32,768 bytes, 36 times in 64 GiB."""
    held = 36 * 8 * (128 + 72) * 32_768
    _, said = inspect(QWEN3_8B, "--context", "32768", "--memory", "64GiB", "--k", "fp8_e4m3", "--v", "nvfp4", "--json")
    shown = json.loads(said.out)["capacity"]["requests"]
    assert shown["chosen"] == 64 * GIB // held == 36
    assert (shown["native"], shown["fp8_e4m3"]) == (14, 28)


def test_inspect_capacity_of_one_rank(inspect):
    _, said = inspect(QWEN3_8B, "--context", "32768", "--memory", "16GiB", "--tp", "4", "--json")
    shown = json.loads(said.out)["capacity"]["requests"]
    assert shown["native"] == 16 * 4 * 2 // 9  # a quarter of 4.5 GiB each


def test_inspect_expanded_latents_have_no_quantized_v(inspect):
    """K of 192 and V of 128 elements: what `--v` refuses is no capacity either."""
    _, said = inspect(V2_LITE, "--mla", "expanded", "--memory", "64GiB", "--json")
    assert set(json.loads(said.out)["capacity"]["requests"]) == {"native", "bf16", "f16", "f32"}
    _, said = inspect(V2_LITE, "--memory", "64GiB", "--json")
    assert "fp8_e4m3" in json.loads(said.out)["capacity"]["requests"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--weights", "1GiB"), "--memory"),
        (("--memory", "80"), "--memory '80'"),
        (("--memory", "80GiB", "--weights", "-1GiB"), "--weights '-1GiB'"),
        (("--memory", "16GiB", "--weights", "16GiB"), "leave nothing"),
    ],
)
def test_inspect_refusals(inspect, arguments, words):
    code, said = inspect(QWEN3_8B, *arguments)
    assert code == 2
    assert words in said.err
    assert "Traceback" not in said.err


def test_inspect_a_model_of_sharers_only_has_no_limit(inspect):
    """No attention layer, so nothing that a memory could run out of."""
    code, said = inspect({"num_kv_heads": [0, 0], "head_dim": 64}, "--memory", "1GiB")
    assert code == 2
    assert "no cache" in said.err
