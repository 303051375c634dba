"""Exact bytes of dense models. Hand-computed: layers × KV heads × head_dim × 2 (K and V) × bytes per element."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvassay.errors import BadInput
from kvassay.formats import FORMATS
from kvassay.geometry.config import geometry_of as geometry_of_model
from kvassay.geometry.config import read_geometry
from kvassay.geometry.configuration.language_model import language_model
from kvassay.geometry.price import bytes_per_token, effective_bits, layer_bytes_per_token, native_pairs, with_price
from kvassay.records.frontier import Pair

LLAMA_3_8B = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "dtype": "bfloat16",
}
SMOLLM2 = {
    "model_type": "llama",
    "num_hidden_layers": 30,
    "hidden_size": 576,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
QWEN3_4B = {
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "hidden_size": 2560,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
}
QWEN3_8B = QWEN3_4B | {"hidden_size": 4096}


def geometry_of(config, context=None):
    return geometry_of_model(language_model(config, "config.json"), context)


@pytest.mark.parametrize(
    ("config", "per_token"),
    [
        pytest.param(SMOLLM2, 30 * 3 * 64 * 2 * 2, id="SmolLM2-135M"),
        pytest.param(QWEN3_4B, 147_456, id="G1-01 Qwen3-4B: head_dim wins over hidden / heads"),
        pytest.param(LLAMA_3_8B, 131_072, id="G1-34 Llama-3-8B"),
        pytest.param({k: v for k, v in LLAMA_3_8B.items() if k != "num_key_value_heads"}, 524_288, id="G1-34 KV heads absent: MHA"),
        pytest.param(LLAMA_3_8B | {"num_key_value_heads": 1}, 32 * 128 * 2 * 2, id="multi-query"),
        pytest.param(LLAMA_3_8B | {"dtype": "float32"}, 262_144, id="32-bit"),
        pytest.param({"model_type": "qwen2", "num_hidden_layers": 24, "hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2, "sliding_window": 32768, "use_sliding_window": False, "max_window_layers": 21}, 24 * 2 * 64 * 2 * 2, id="Qwen2.5-0.5B: window behind a switch that is off"),
        pytest.param({"model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "sliding_window": None}, 131_072, id="Mistral-7B v0.3"),
        pytest.param({"model_type": "smollm3", "num_hidden_layers": 36, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 4, "layer_types": ["full_attention"] * 36, "no_rope_layers": [1, 1, 1, 0] * 9, "sliding_window": None, "use_sliding_window": False}, 36 * 4 * 128 * 2 * 2, id="SmolLM3-3B"),
    ],
)  # fmt: skip
def test_bytes_per_token(config, per_token):
    geometry = geometry_of(config, 1000)
    assert geometry.bytes.growth_per_token == geometry.bytes.all_tokens_per_token == per_token
    assert geometry.bytes.window_bytes == geometry.bytes.fixed_per_request == 0
    assert geometry.total_bytes == geometry.parts.payload == 1000 * per_token


def test_smollm2_is_23040():
    assert geometry_of(SMOLLM2).bytes.growth_per_token == 23_040
    assert geometry_of(SMOLLM2).context_tokens == 8192
    assert geometry_of(SMOLLM2).layers[7].module == "model.layers.7.self_attn"


def test_qwen3_8b_of_the_study():
    """32,768 tokens: BF16 4.50 GiB, FP8 2.25, NVFP4 1.27; V NVFP4 everywhere with 17 FP8 key layers 1.50, 26 of them 1.62."""

    def gib(pairs):
        return with_price(geometry, pairs, 32_768).total_bytes / 2**30

    geometry = geometry_of(QWEN3_8B, 32_768)
    assert gib(native_pairs(geometry)) == 4.5
    assert gib([Pair(k="fp8_e4m3", v="fp8_e4m3")] * 36) == 2.25
    assert round(gib([Pair(k="nvfp4", v="nvfp4")] * 36), 2) == 1.27
    for layers, size, bits in ((17, 1.50, 5.326389), (26, 1.62, 5.763889)):
        pairs = [Pair(k="fp8_e4m3" if index < layers else "nvfp4", v="nvfp4") for index in range(36)]
        assert round(gib(pairs), 2) == size
        assert round(effective_bits(geometry, pairs), 6) == bits


def test_scales_are_told_apart():
    parts = with_price(geometry_of(SMOLLM2), [Pair(k="int4_g64", v="native")] * 30, 10).parts
    assert (parts.payload, parts.scales, parts.padding) == (10 * 30 * 3 * (32 + 128), 10 * 30 * 3 * 4, 0)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({k: v for k, v in LLAMA_3_8B.items() if k != "num_key_value_heads"}, "MHA assumed"),
        ({k: v for k, v in LLAMA_3_8B.items() if k != "dtype"}, "bfloat16 assumed"),
        (LLAMA_3_8B | {"model_type": "brandnew"}, "brandnew is not known here: standard layout assumed"),
        ({k: v for k, v in LLAMA_3_8B.items() if k != "model_type"}, "standard layout assumed"),
        (LLAMA_3_8B, "max_position_embeddings is absent"),
    ],
)
def test_assumptions_are_said(config, words):
    assert any(words in note for note in geometry_of(config).assumptions)


def test_a_complete_config_needs_no_assumption():
    assert geometry_of(SMOLLM2).assumptions == ()


@pytest.mark.parametrize("key", ["num_hidden_layers", "hidden_size", "num_attention_heads"])
@pytest.mark.parametrize("value", ["absent", None, True, -1, 0, 10**12, 10**400, 2.0, float("nan"), "32", [32], {}])
def test_impossible_values_are_refused_by_name(key, value):
    config = {k: v for k, v in LLAMA_3_8B.items() if k != key} if value == "absent" else LLAMA_3_8B | {key: value}
    with pytest.raises(BadInput, match=rf"config\.json: {key}: "):
        geometry_of(config)


@pytest.mark.parametrize("key", ["num_key_value_heads", "head_dim", "max_position_embeddings"])
@pytest.mark.parametrize("value", [True, -1, 0, 10**15, 1.5, "8", [8] * 31])
def test_optional_values_are_checked_too(key, value):
    with pytest.raises(BadInput, match=key):
        geometry_of(LLAMA_3_8B | {key: value})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_key_value_heads": 5}, "num_key_value_heads: 5 does not divide num_attention_heads 32"),
        ({"hidden_size": 4100}, "head_dim: missing, and hidden_size 4100"),
        ({"dtype": "float8"}, "dtype: 'float8' is no cache dtype"),
        ({"torch_dtype": "float16"}, "contradicts"),
        ({"model_type": 7}, "model_type"),
        ({"sliding_window": 4096}, "sliding_window: 4096"),
        ({"attention_chunk_size": 8192}, "attention_chunk_size"),
        ({"layer_types": ["full_attention"] * 31 + ["sliding_attention"]}, "sliding_window: missing, but layer 31"),
        ({"layer_types": ["full_attention"] * 31 + ["quantum"]}, "layer_types: layer 31 is 'quantum'"),
        ({"layer_types": ["full_attention"] * 31}, "layer_types: must have one entry for each of the 32 layers, it has 31"),
        ({"layer_types": "full_attention"}, "layer_types: must be a list"),
        ({"layer_types": ["full_attention"] * 31 + ["mamba"]}, "layer_types: names recurrent layers"),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, "kv_lora_rank"),
        ({"v_head_dim": 64}, "v_head_dim"),
        ({"index_topk": 2048}, "index_topk"),
        ({"num_kv_shared_layers": 20}, "num_kv_shared_layers"),
        ({"attention_k_eq_v": True}, "attention_k_eq_v"),
        ({"global_head_dim": 512}, "global_head_dim"),
        ({"swa_num_key_value_heads": 4}, "swa_num_key_value_heads"),
        ({"per_layer_config": {"a": {}}}, "per_layer_config: 'a' is no layer index"),
        ({"full_attention_interval": 4}, "full_attention_interval"),
        ({"hybrid_override_pattern": "M-*"}, "hybrid_override_pattern"),
        ({"linear_num_value_heads": 32}, "linear_num_value_heads"),
        ({"mamba_d_state": 16}, "mamba_d_state"),
        ({"num_kv_heads": [3, 4, 5]}, "num_key_value_heads"),
        ({"multi_query": True}, "multi_query"),
        ({"block_configs": [{}]}, "block_configs"),
        ({"cross_attention_layers": [3, 8]}, "cross_attention_layers"),
        ({"text_config": {"num_key_value_heads": 8}}, "text_config.num_hidden_layers: missing"),
    ],
)
def test_other_layouts_are_refused_by_key_never_guessed(change, words):
    with pytest.raises(BadInput) as caught:
        geometry_of(LLAMA_3_8B | change)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [{"sliding_window": None}, {"attention_chunk_size": 0}, {"layer_types": ["full_attention"] * 32}, {"cross_attention_hidden_size": None}, {"mamba_d_state": None}, {"is_encoder_decoder": False}, {"chunk_size_feed_forward": 0}],
)  # fmt: skip
def test_keys_that_switch_nothing_on_are_passed_over(change):
    assert geometry_of(LLAMA_3_8B | change).bytes.growth_per_token == 131_072


@pytest.mark.parametrize(
    ("model_type", "key", "filled"),
    [("qwen2", "num_key_value_heads", 32), ("mixtral", "num_key_value_heads", 8), ("qwen3", "head_dim", 128)],
)
def test_what_transformers_fills_in_is_said(model_type, key, filled):
    config = LLAMA_3_8B | {"model_type": model_type, "num_attention_heads": 64}
    geometry = geometry_of({k: v for k, v in config.items() if k != key})
    layer = geometry.layers[0]
    assert (layer.kv_heads if key == "num_key_value_heads" else layer.k_dim) == filled
    assert f"{key} is absent: {filled}, as transformers fills in for {model_type}" in geometry.assumptions


def test_the_size_of_a_model_is_never_filled_in():
    with pytest.raises(BadInput, match="num_hidden_layers: missing, and nothing is assumed for it"):
        geometry_of({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32})


names = st.sampled_from(["native", *FORMATS])


@given(
    st.integers(1, 6),
    st.integers(1, 8),
    st.sampled_from([128, 256]),
    st.lists(st.tuples(names, names), min_size=6, max_size=6),
    st.integers(1, 5000),
)
def test_price_is_monotone_and_additive(layers, kv_heads, head_dim, formats, tokens):
    geometry = geometry_of({"num_hidden_layers": layers, "num_key_value_heads": kv_heads, "head_dim": head_dim})
    pairs = [Pair(k=k, v=v) for k, v in formats[:layers]]
    shorter, longer = with_price(geometry, pairs, tokens), with_price(geometry, pairs, tokens + 1)
    per_token = bytes_per_token(geometry, pairs)
    assert longer.total_bytes - shorter.total_bytes == per_token == shorter.bytes.growth_per_token
    assert per_token == sum(layer_bytes_per_token(layer, pair, "bfloat16") for layer, pair in zip(geometry.owners, pairs, strict=True)) > 0
    assert shorter.parts.payload + shorter.parts.scales + shorter.parts.padding == shorter.total_bytes
    independent = sum(
        kv_heads * (head_dim * FORMATS.get(name, FORMATS["bf16"]).bits(head_dim) / 8) for pair in pairs for name in (pair.k, pair.v)
    )
    assert per_token == independent


keys = st.sampled_from(
    [*LLAMA_3_8B, "head_dim", "max_position_embeddings", "torch_dtype", "layer_types", "sliding_window", "use_sliding_window", "junk"]
)
junk = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=6)  # fmt: skip


@given(st.dictionaries(keys, junk, max_size=5))
def test_fuzzed_configs_give_a_price_or_bad_input(changes):
    try:
        geometry = geometry_of(LLAMA_3_8B | changes)
    except BadInput as error:
        assert str(error).startswith("config.json: ") and len(str(error)) < 600
    else:
        assert geometry.total_bytes == sum(geometry.parts.model_dump().values())
        assert geometry.total_bytes <= geometry.context_tokens * geometry.bytes.all_tokens_per_token


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"a":1,"a":2}', b'{"num_hidden_layers": NaN}', b"[" * 100_000, b'{"a":' * 50_000, json.dumps(LLAMA_3_8B).encode()[:-1], b'{"num_hidden_layers": ' + b"9" * 10_000 + b"}"],
)  # fmt: skip
def test_files_that_are_no_config(tmp_path, data):
    path = tmp_path / "config.json"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=r"config\.json"):
        read_geometry(path)


def test_oversized_file_is_not_read(tmp_path):
    path = tmp_path / "config.json"
    with path.open("wb") as handle:
        handle.truncate(3 * 2**30)
    with pytest.raises(BadInput, match="larger than"):
        read_geometry(path)


def test_places(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(BadInput, match="not a model folder"):
        read_geometry(folder)
    (folder / "config.json").write_text(json.dumps(SMOLLM2))
    assert read_geometry(folder) == read_geometry(folder / "config.json") == read_geometry(str(folder))
    for wrong in (
        "nowhere",
        "package:kvassay_is_not_installed/x.gguf",
        "package:../x",
        "package:kvassay/../x",
        "package:kvassay/none.gguf",
        "a\0b",
    ):
        with pytest.raises(BadInput):
            read_geometry(wrong)


def test_a_package_is_found_without_importing_it(tmp_path, monkeypatch):
    package = tmp_path / "kvassay_test_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "config.json").write_text(json.dumps(SMOLLM2))
    monkeypatch.syspath_prepend(tmp_path)
    assert read_geometry("package:kvassay_test_package/config.json").bytes.growth_per_token == 23_040
