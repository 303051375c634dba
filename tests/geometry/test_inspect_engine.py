"""`kvassay inspect` with what an engine says or has: --block, --chunk, --memory, --weights, --from-logs."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvassay.cli import run_command
from support.families import config, nested

GIB = 2**30
FULL, SLIDING = "full_attention", "sliding_attention"
QWEN3_8B = config("qwen3", 36, 4096, 32, 8, head_dim=128, max_position_embeddings=40960)
QWEN3_235B = config("qwen3_moe", 94, 4096, 64, 4, head_dim=128)
V2_LITE = config("deepseek_v2", 27, 2048, 16, 16, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, q_lora_rank=None)  # fmt: skip
GPT_OSS_120B = config("gpt_oss", 36, 2880, 64, 8, head_dim=64, sliding_window=128, layer_types=[SLIDING, FULL] * 18)
GEMMA4_31B = nested("gemma4", config("gemma4_text", 60, 5376, 32, 16, head_dim=256, global_head_dim=512, sliding_window=1024, attention_k_eq_v=True, num_global_key_value_heads=4, max_position_embeddings=262144, layer_types=([SLIDING] * 5 + [FULL]) * 10))  # fmt: skip
QWEN3_6_35B = nested("qwen3_5_moe", config("qwen3_5_moe_text", 40, 2048, 16, 2, head_dim=256, full_attention_interval=4, linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4))  # fmt: skip
GEMMA4_LOGS = [{"memory": "64.68GiB", "tokens": 626_971, "max_length": 262_144}, {"memory_gib": 103.92, "tokens": 1_007_341, "max_model_len": 262_144}]  # fmt: skip
GPT_OSS_LOG = """\
(EngineCore pid=7) INFO 08-05 12:00:01 [gpu_worker.py:227] Available KV cache memory: 5.38 GiB
(EngineCore pid=7) INFO 08-05 12:00:01 [kv_cache_utils.py:833] GPU KV cache size: 78,384 tokens
(EngineCore pid=7) INFO 08-05 12:00:01 [kv_cache_utils.py:837] Maximum concurrency for 131,072 tokens per request: 3.52x
"""


@pytest.fixture
def said(tmp_path, capsys):
    """Exit code, stdout and stderr of `kvassay inspect` on a config; `logs` is a file for --from-logs."""

    def run(values, *arguments, logs=None):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(values))
        if logs is not None:
            (tmp_path / "engine.log").write_bytes(logs if isinstance(logs, bytes) else logs.encode())
            arguments += ("--from-logs", str(tmp_path / "engine.log"))
        code = run_command(["inspect", str(path), *arguments])
        both = capsys.readouterr()
        return code, both.out, both.err

    return run


@pytest.fixture
def document(said):
    def run(values, *arguments, logs=None):
        code, out, err = said(values, *arguments, "--json", logs=logs)
        assert code == 0, err
        return json.loads(out)

    return run


@pytest.fixture
def refusal(said):
    def run(values, *arguments, logs=None):
        code, _, err = said(values, *arguments, logs=logs)
        assert code == 2, err
        assert "Traceback" not in err
        return err

    return run


def lines(rows):
    return "\n".join(json.dumps(row) for row in rows)


def test_reservation(document, said):
    """577 blocks of 16 tokens in 50 windowed layers, 16,384 in 10 full ones."""
    arguments = ("--block", "16", "--chunk", "8192")
    assert document(GEMMA4_31B, *arguments)["reservation"] == {
        "block_tokens": 16,
        "chunk_tokens": 8192,
        "bytes_per_request": 29_037_690_880,
        "bytes_per_token_at_this_context": 29_037_690_880 / 262_144,
        "blocks": {"sliding": 577, "full": 16_384},
    }
    _, text, _ = said(GEMMA4_31B, *arguments)
    assert "reserves 27.04 GiB" in text
    assert "110,770 bytes per token at 262,144 tokens only" in text
    assert "reservation" not in document(GEMMA4_31B, "--block", "16")


def test_reservation_per_rank(document):
    reserved = document(GEMMA4_31B, "--block", "16", "--chunk", "8192", "--tp", "4")["reservation"]
    assert reserved["bytes_per_request"] == 4 * reserved["bytes_per_request_and_rank"] == 29_037_690_880


def test_floor(document, said):
    """A state of 2,146,304 bytes, 2,048 bytes per token: 1,056 tokens of 16; 10 + 30 layers in groups of 10."""
    floor = document(QWEN3_6_35B, "--block", "16")["reservation"]["floor"]
    assert floor == {"block_tokens": 1_056, "groups": 4, "group_size": 10, "tokens_per_request": 4_224}
    _, text, _ = said(QWEN3_6_35B, "--block", "16")
    assert "this floor, not the payload, sets how many short requests run at once" in text
    assert "reservation" not in document(QWEN3_8B, "--block", "16")


def test_grouping(document, said):
    """19 full and 18 windowed layers: nothing padded in 37 groups, one layer in 2."""
    values = config("gpt_oss", 37, 2880, 64, 8, head_dim=64, sliding_window=128, layer_types=[FULL, SLIDING] * 18 + [FULL])
    shown = document(values, "--block", "16")["grouping"]
    assert [(each["size"], each["groups"], each["padding_layers"]) for each in shown] == [(1, 37, 0), (19, 2, 1)]
    assert [each["padding_per_layer"] for each in shown] == [0.0, 1 / 18]
    assert "5.6%" in said(values, "--block", "16")[1]
    assert "grouping" not in document(values)
    assert "grouping" not in document(QWEN3_8B, "--block", "16")


def test_capacity(document, said):
    """64 GiB hold 14 requests of 4.5 GiB, 28 of 2.25 GiB, and 50 in NVFP4 (1.265625 GiB)."""
    arguments = ("--context", "32768", "--memory", "80GiB", "--weights", "16GiB")
    shown = document(QWEN3_8B, *arguments)["capacity"]
    assert (shown["memory_bytes"], shown["weights_bytes"], shown["free_bytes"]) == (80 * GIB, 16 * GIB, 64 * GIB)
    assert shown["longest_context_tokens"] == 40_960
    assert (shown["requests"]["native"], shown["requests"]["fp8_e4m3"], shown["requests"]["nvfp4"]) == (14, 28, 50)
    assert "chosen" not in shown["requests"]
    _, text, _ = said(QWEN3_8B, *arguments)
    assert "64.00 GiB of 80.00 GiB are left for caches" in text
    assert ["nvfp4", "50", "40,960"] in [line.split() for line in text.splitlines()]


def test_capacity_in_the_chosen_formats(document):
    """K in FP8 and V in NVFP4: 36 x 8 x (128 + 72) x 32,768 bytes."""
    shown = document(QWEN3_8B, "--context", "32768", "--memory", "64GiB", "--k", "fp8_e4m3", "--v", "nvfp4")["capacity"]["requests"]
    assert shown["chosen"] == 64 * GIB // (36 * 8 * (128 + 72) * 32_768) == 36
    assert (shown["native"], shown["fp8_e4m3"]) == (14, 28)


def test_capacity_of_one_rank(document):
    """A quarter of 4.5 GiB each."""
    assert document(QWEN3_8B, "--context", "32768", "--memory", "16GiB", "--tp", "4")["capacity"]["requests"]["native"] == 16 * 8 // 9


def test_capacity_of_expanded_latents_has_no_quantized_v(document):
    """K of 192 and V of 128 elements: what --v refuses is no capacity either."""
    expanded = document(V2_LITE, "--mla", "expanded", "--memory", "64GiB")["capacity"]["requests"]
    assert set(expanded) == {"native", "bf16", "f16", "f32"}
    assert "fp8_e4m3" in document(V2_LITE, "--memory", "64GiB")["capacity"]["requests"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--weights", "1GiB"), "--memory"),
        (("--chunk", "16"), "--block"),
        (("--memory", "80"), "--memory '80'"),
        (("--memory", "80GiB", "--weights", "-1GiB"), "--weights '-1GiB'"),
        (("--memory", "16GiB", "--weights", "16GiB"), "leave nothing"),
        (("--from-logs", "nowhere.log"), "nowhere.log"),
        (("--from-logs", "."), "not a regular file"),
    ],
)
def test_options_that_say_nothing_are_refused(refusal, arguments, words):
    assert words in refusal(QWEN3_8B, *arguments)


def test_nothing_to_hold_has_no_capacity(refusal):
    assert "no cache" in refusal({"num_kv_heads": [0, 0], "head_dim": 64}, "--memory", "1GiB")


def test_g1_04_a_log_of_all_tokens_is_told_from_one_of_windows(document, said):
    """5.38 GiB for 78,384 tokens: 73,698 bytes, against 36,864 with windows and 73,728 without."""
    shown = document(GPT_OSS_120B, logs=GPT_OSS_LOG)["readings"]
    assert shown["apparent"] == [int(5.38 * GIB) / 78_384]
    assert round(shown["growth_per_token"]) == 73_698
    assert (shown["regime"], shown["fixed_per_request"]) == ("all_tokens", 0)
    assert shown["ratio_growth"] == pytest.approx(73_698 / 73_728, abs=1e-5)
    _, text, _ = said(GPT_OSS_120B, logs=GPT_OSS_LOG)
    assert "73,698" in text
    assert "the log agrees with windowed layers keeping every token too" in text


def test_g1_05_logs_of_one_length_agree_with_the_reservation_or_are_refused(document, refusal):
    shown = document(GEMMA4_31B, "--block", "16", "--chunk", "8192", logs=lines(GEMMA4_LOGS))["readings"]
    assert shown["regime"] == "reservation"
    assert [round(each / 110_770, 4) for each in shown["apparent"]] == [1.0, 1.0]
    assert "growth_per_token" not in shown  # one length: nothing was solved
    assert shown["difference"]["cause"] == "memory"
    assert "another max length" in refusal(GEMMA4_31B, logs=lines(GEMMA4_LOGS))


def test_g1_26_two_lengths_solve_growth_and_fixed_parts(document, refusal):
    """Growth of 20,480 and a state of 64,389,120 bytes, at two and at three lengths."""
    rows = [{"memory_bytes": (20_480 * length + 64_389_120) * 10, "tokens": 10 * length, "max_length": length} for length in (1_000, 5_000, 100_000)]  # fmt: skip
    for some in (rows[:2], rows):
        shown = document(QWEN3_6_35B, logs=lines(some))["readings"]
        assert shown["growth_per_token"] == pytest.approx(20_480, rel=1e-6)
        assert shown["fixed_per_request"] == pytest.approx(64_389_120, rel=1e-6)
        assert (shown["ratio_growth"], shown["ratio_fixed"]) == (pytest.approx(1), pytest.approx(1))
        assert shown["regime"] == "states"
        assert shown["residual"] == pytest.approx(0, abs=1e-9)
    assert round(shown["apparent"][0]) == 20_480 + 64_389
    assert "one reading of a hybrid" in refusal(QWEN3_6_35B, logs=lines(rows[:1]))


def test_g1_26_synthetic_figures_belong_to_no_model_but_are_solved(document):
    """3,300 bytes of growth and 3.2e9 fixed: apparent 67,300, 16,100 and 9,700."""
    rows = [{"memory_bytes": 3_300 * length + 3_200_000_000, "tokens": length, "max_length": length} for length in (50_000, 250_000, 500_000)]  # fmt: skip
    shown = document(QWEN3_6_35B, logs=lines(rows))["readings"]
    assert [round(each) for each in shown["apparent"]] == [67_300, 16_100, 9_700]
    assert shown["growth_per_token"] == pytest.approx(3_300, rel=1e-6)
    assert shown["fixed_per_request"] == pytest.approx(3.2e9, rel=1e-6)
    assert shown["regime"] == "neither"


def test_readings_that_no_cache_gives_are_refused(refusal):
    rows = [{"memory_bytes": 40_000 * 1_000, "tokens": 1_000, "max_length": 1_000}, {"memory_bytes": 400_000 * 1_000, "tokens": 1_000, "max_length": 100_000}]  # fmt: skip
    assert "no cache does" in refusal(QWEN3_6_35B, logs=lines(rows))


def test_g1_32_servers_differ_in_memory_not_in_bytes_per_token(document, said):
    """94 layers of one KV head per rank: 94 x 2 x 128 x 2 = 48,128 bytes; 16.46 and 8.11 GiB."""
    logs = "memory_gib,tokens\n16.46,367404\n8.11,178880\n"
    whole = document(QWEN3_235B, "--tp", "4", logs=logs)
    shown = whole["readings"]
    assert whole["per_rank"]["growth_per_token"] == 94 * 2 * 128 * 2 == 48_128
    assert [round(each) for each in shown["apparent"]] == [round(16.46 * GIB / 367_404), round(8.11 * GIB / 178_880)] == [48_105, 48_681]
    assert shown["spread"] == pytest.approx(48_681 / 48_105 - 1, abs=1e-4)
    assert (shown["regime"], shown["difference"]["cause"]) == ("plain", "memory")
    assert shown["ratio_growth"] == pytest.approx(1, abs=0.02)
    assert "the memory left for the cache makes it, not the payload" in said(QWEN3_235B, "--tp", "4", logs=logs)[1]


def test_one_reading_of_a_plain_model_is_a_division(document):
    shown = document(QWEN3_8B, logs='{"memory": 147456000, "tokens": 1000}')["readings"]
    assert (shown["growth_per_token"], shown["ratio_growth"], shown["regime"]) == (147_456, 1.0, "plain")


ONE = {"memory": 147_456_000, "tokens": 1000}


@pytest.mark.parametrize(
    "logs",
    [
        json.dumps([ONE, ONE]),
        lines([ONE, ONE]) + "\n\n",
        "tokens, memory\n1000,147456000\n1000,147456000\n",
        'memory,tokens,max_model_len\n"140.625MiB","1,000",\n147456000,1000,\n',
        "\ufefftokens,memory_bytes\r\n1000,147456000\r\n1000,147456000\r\n",
        "Available KV cache memory: 0.14 GiB\nGPU KV cache size: 1,000 tokens\nAvailable KV cache memory: 0.14 GiB\nGPU KV cache size: 1,000 tokens\n",
    ],
    ids=["list", "lines", "csv", "csv-units", "csv-bom-crlf", "log"],
)
def test_every_file_format_says_the_same(document, logs):
    shown = document(QWEN3_8B, logs=logs)["readings"]
    assert len(shown["apparent"]) == 2
    assert shown["ratio_growth"] == pytest.approx(1, abs=0.03)


def test_a_cpu_worker_prints_both_on_one_line(document):
    logs = (
        "Available KV cache memory: 4.00 GiB\nCPU KV cache size: 29,120 tokens, Maximum concurrency for 40,960 tokens per request: 0.71x\n"
    )
    shown = document(QWEN3_8B, logs=logs)["readings"]
    assert shown["growth_per_token"] == pytest.approx(147_456, rel=0.01)
    assert "notes" not in shown


@pytest.mark.parametrize(
    ("logs", "words"),
    [
        ("", ""),
        ("nothing to see here\n", "CSV"),
        ("[]", "no reading"),
        ("[1]", "reading 1"),
        ('{"memory": 1}', "tokens"),
        ('{"tokens": 1}', "memory"),
        ('{"memory": 5, "memory_gib": 5, "tokens": 1}', "memory"),
        ('{"memory": 147456, "tokens": 1}\n{"memory": -1, "tokens": 1}', "line 2"),
        ('{"memory": 147456, "tokens": 1}\n{"memory": 1e400, "tokens": 1}', "line 2"),
        ('{"memory": NaN, "tokens": 1}', "NaN"),
        ('{"memory": "nanGiB", "tokens": 1}', "memory"),
        ('{"memory": 5, "tokens": true}', "tokens"),
        ('{"memory": 5, "tokens": 0}', "tokens"),
        ('{"memory": 5, "tokens": 1.5}', "tokens"),
        ('{"memory": 5, "tokens": 9999999999999999}', "tokens"),
        ('{"memory": 5, "tokens": 1, "max_length": 0}', "max_length"),
        ('{"memory": 5, "tokens": 1, "tokens": 2}', "twice"),
        ("tokens,memory\n1\n", "line 2"),
        ("tokens,tokens,memory\n1,1,1\n", "once"),
        ("GPU KV cache size: 1,000 tokens\n", "memory"),
        ("Available KV cache memory: -1.20 GiB\nGPU KV cache size: 1,000 tokens\n", "memory"),
        (b"\x00\xff" * 100, ""),
        ("[" * 100_000, "JSON"),
        ('{"memory": 147456, "tokens": 1}\n' * 10_001, "10,000"),
        (b"x" * (4 * 2**20 + 1), "larger than"),
    ],
    ids=range(25),
)
def test_files_of_readings_that_say_nothing_are_refused(refusal, logs, words):
    err = refusal(QWEN3_8B, logs=logs)
    assert words in err
    assert "engine.log" in err
    assert len(err) < 600


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["memory", "memory_bytes", "memory_gib", "tokens", "max_length", "max_model_len"]),
            st.one_of(st.integers(1, 2**41), st.floats(), st.text(max_size=8), st.none(), st.booleans(), st.just("5.38GiB")),
            max_size=4,
        ),
        max_size=4,
    )
)
def test_any_readings_are_answered_or_refused(said, rows):
    for values in (QWEN3_8B, GPT_OSS_120B):
        code, out, err = said(values, "--json", "--block", "16", "--chunk", "64", logs=json.dumps(rows))
        assert code in (0, 2), err
        if code == 0:
            fit = json.loads(out)["readings"]
            assert fit.get("growth_per_token", 0) >= 0
            assert fit.get("fixed_per_request", 0) >= 0
