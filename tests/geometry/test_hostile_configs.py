"""Input that means harm: one sentence that names file and key, exit code 2, in no time; never a traceback, never another number."""

import json
import os
import time

import pytest

from kvassay.cli import run_command
from kvassay.errors import BadInput
from kvassay.geometry.config import read_geometry
from kvassay.geometry.configuration.keys import MOST_LAYERS
from kvassay.store import parse_json
from support.families import config
from support.gguf_files import encoded, header

DENSE = config("llama", 4, 1024, 8, 4)
STRANGER = config("a_model_of_next_year", 4, 1024, 8, 4)
SPARSE = config("glm_moe_dsa", 4, 1024, 8, 8, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, index_topk=64, index_head_dim=128)  # fmt: skip
NEMOTRON = config(
    "nemotron_h", 4, 1024, 8, 4, head_dim=128, mamba_num_heads=16, mamba_head_dim=64, ssm_state_size=64, n_groups=8, conv_kernel=4
)
BAMBA = config("bamba", 4, 1024, 8, 4, attn_layer_indices=[1], mamba_n_heads=16, mamba_n_groups=1, mamba_d_state=64, mamba_d_conv=4, mamba_expand=2)  # fmt: skip
NEO = config("gpt_neo", 4, 1024, 8)
VISION = {"vision_config": {"image_size": 2**40, "patch_size": 1}, "model_type": "mllama"}
CROSS = config("mllama_text_model", 4, 1024, 8, 4, cross_attention_layers=[1])
MANY = config("llama", MOST_LAYERS, 1024, 8)


def block(**attention):
    return config("nemotron-nas", 4, 1024, 8, block_configs=[{"attention": attention}] * 4)


REFUSED = [
    ("a mapping among the indexers", SPARSE | {"index_topk_pattern": [{}, "F", "F", "F"]}, "indexer_types: layer 0"),
    ("indexers that are a number", SPARSE | {"index_topk_pattern": 7}, "index_topk_pattern: must be a list"),
    ("a pooled indexer that is a text", SPARSE | {"index_kpool": "4"}, "index_kpool: must be a whole number"),
    ("a pattern of lists", NEMOTRON | {"hybrid_override_pattern": [["M"] * 99] * 4}, "hybrid_override_pattern: must be a text"),
    ("a pattern that is a number", NEMOTRON | {"hybrid_override_pattern": 10**200}, "hybrid_override_pattern: must be a text"),
    ("kinds times kinds", NEO | {"attention_types": [[["global"] * 4096, 4]]}, "attention_types: must hold pairs"),
    ("a count that is true", NEO | {"attention_types": [[["global"] * 4, True]]}, "attention_types: must hold pairs"),
    ("a head type that is a list", config("gpt2", 4, 1024, 8, attention_head_type=["multiquery"]), "attention_head_type: must be a short text"),
    ("a switch that is a text", block(no_op="false"), "attention.no_op must be true or false"),
    ("a width of Mamba heads that is a text", BAMBA | {"mamba_d_head": "64"}, "mamba_d_head: must be a whole number"),
    ("more heads than channels", config("zamba", 4, 8, 64, attn_layer_period=2, attn_layer_offset=1), "head_dim: missing, and 2 × hidden_size 8"),
    ("heads that do not divide", config("minimax", 4, 100, 3, layer_types=["linear_attention"] * 4), "head_dim: missing, and hidden_size 100"),
    ("a recurrent layer of an encoder-decoder", {"model_type": "bart", "d_model": 1024, "decoder_layers": 12, "layer_types": ["mamba"] * 12}, "layer_types: a layer of kind recurrent"),
    ("an encoder-decoder by a text", DENSE | {"is_encoder_decoder": "yes"}, "is_encoder_decoder: must be true or false"),
    ("compression in a dense family", DENSE | {"layer_types": ["compressed_sparse_attention"] * 4}, "layer_types: compressed layers"),
    ("full layers in a compressed family", config("deepseek_v4", 4, 512, 8, 1, head_dim=512, sliding_window=128, layer_types=["full_attention"] * 4), "layer_types: full layers"),
    ("a sharer of an owner without heads", config("gemma3n_text", 4, 1024, 8, [4, 0, 4, 4], head_dim=128, layer_types=["full_attention"] * 4, num_kv_shared_layers=2), "layer 2 reads the cache of layer 1"),
    ("one layer's heads that do not divide", DENSE | {"num_key_value_heads": [4, 3, 4, 4]}, "num_key_value_heads: 3 does not divide"),
    ("a size that is not needed and no number", DENSE | {"head_dim": 128, "hidden_size": "1024"}, "hidden_size: must be a whole number"),
    ("heads that are true", DENSE | {"head_dim": 128, "num_attention_heads": True}, "num_attention_heads: must be a whole number"),
    ("more image rows than tokens", VISION | {"text_config": CROSS}, "vision_config.image_size: with patch_size"),
    ("a layer that is not there", DENSE | {"per_layer_config": {"4": {}}}, "per_layer_config: layer 4 is named"),
    ("a layer twice", DENSE | {"per_layer_config": {"1": {}, "01": {}}}, "per_layer_config: layer 1 stands twice"),
    ("keys without end", DENSE | {f"k{number}": 1 for number in range(5000)}, " keys, more than 4,096"),
    ("a key that steers the terminal", STRANGER | {"sliding\x1b[31m\nwindow": 5}, "sliding\\x1b[31m\\nwindow: 5"),
]  # fmt: skip


def written(tmp_path, values):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values))
    return path


@pytest.mark.parametrize(("values", "says"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED])
def test_one_sentence_names_file_and_key(tmp_path, capsys, values, says):
    path = written(tmp_path, values)
    began = time.perf_counter()
    assert run_command(["inspect", str(path)]) == 2
    assert time.perf_counter() - began < 3
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"error: {path}: ")
    assert says in said.err
    assert said.err.count("\n") == 1
    assert said.err.rstrip("\n").isprintable()


BOMBS = [
    ("a list of heads", MANY | {"num_key_value_heads": [8] * MOST_LAYERS}),
    ("keys of its own for each layer", MANY | {"per_layer_config": {str(at): {"num_key_value_heads": 8} for at in range(MOST_LAYERS)}}),
    ("as many keys as a configuration may have", config("cohere2", MOST_LAYERS, 1024, 8, 8, sliding_window=4096, sliding_window_pattern=1) | {f"k{at}": 1 for at in range(4000)}),
]  # fmt: skip


@pytest.mark.parametrize("values", [each[1] for each in BOMBS], ids=[each[0] for each in BOMBS])
def test_time_grows_with_the_layers_and_not_with_their_square(tmp_path, values):
    began = time.perf_counter()
    # 4096 layers × 8 heads × (128 + 128) elements × 2 bytes.
    assert read_geometry(written(tmp_path, values), 1).bytes.growth_per_token == 4096 * 8 * 256 * 2
    assert time.perf_counter() - began < 3


@pytest.mark.parametrize("width", [64, "auto", None])
def test_mamba_heads_may_leave_their_width_to_the_expansion(tmp_path, width):
    # 3 Mamba layers: 2 × 1024 channels × 64 FP32, and (2 × 1024 + 2 × 64) channels × 3 columns in bfloat16; with 64 written, 16 × 64 channels.
    channels = 16 * 64 if width == 64 else 2 * 1024
    read = read_geometry(written(tmp_path, BAMBA | {"mamba_d_head": width, "dtype": "bfloat16"}))
    assert read.bytes.fixed_per_request == 3 * (channels * 64 * 4 + (channels + 2 * 64) * 3 * 2)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "model.gguf")
    with pytest.raises(BadInput, match=r"holds no config\.json and no GGUF file"):
        read_geometry(tmp_path)


@pytest.mark.parametrize("key", ["num_hidden_layers", "model_type", "head_dim", "n_layer"])
def test_a_gguf_does_not_speak_in_the_names_of_config_json(tmp_path, key):
    pairs = [
        ("general.architecture", "llama"),
        ("llama.block_count", 4),
        ("llama.embedding_length", 512),
        ("llama.attention.head_count", 8),
    ]
    path = tmp_path / "model.gguf"
    path.write_bytes(header([encoded(*pair) for pair in (*pairs, (f"llama.{key}", 1))]))
    with pytest.raises(BadInput, match=rf"llama\.{key}: 1: a key of config\.json"):
        read_geometry(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "b": 2, "a": 3}', "a key stands twice: 'a'"),
        ("[" * 100_000, "nested too deep"),
        ("9" * 5000, "a number of too many digits"),
    ],
)
def test_json_that_is_refused_says_why(text, says):
    with pytest.raises(BadInput, match=f"here: not valid JSON \\({says}\\)"):
        parse_json(text.encode(), "here")


def test_a_path_of_two_lines_is_one_line_of_the_message(tmp_path, capsys):
    assert run_command(["inspect", str(tmp_path / "two\nlines\x1b[31m")]) == 2
    said = capsys.readouterr().err
    assert "two\\nlines\\x1b[31m: no such file or folder" in said
    assert said.count("\n") == 1


def test_the_name_of_a_draft_does_not_steer_the_terminal(tmp_path, capsys):
    path, odd = written(tmp_path, DENSE), tmp_path / "odd\x1b[31m\udcff.json"
    odd.write_text(json.dumps(DENSE))
    assert run_command(["inspect", str(path), "--draft", str(odd)]) == 0
    assert "odd\\x1b[31m\\udcff.json (4 layers)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--k", "fp8_ds_mla"), "--k and --v: layer 0: fp8_ds_mla: a record of 512 latent"),
        (("--v", "\x1b[31m"), "--k and --v: format '\\x1b[31m': unknown"),
        (("--memory", "0GiB"), "--memory: must be more than 0 bytes"),
    ],
)
def test_an_option_is_named(tmp_path, capsys, options, says):
    assert run_command(["inspect", str(written(tmp_path, DENSE)), *options]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "layers",
    [[[]] * 200_000, [{f"k{at}": 1 for at in range(100_000)}], [{}] * 8193, {}],
    ids=["no objects", "keys without end", "too many", "no list"],
)
def test_a_map_made_of_faults_is_refused_at_the_first(tmp_path, capsys, layers):
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"layers": layers}))
    began = time.perf_counter()
    assert run_command(["inspect", str(written(tmp_path, DENSE)), "--map", str(path)]) == 2
    assert time.perf_counter() - began < 3
    assert f"error: {path}: not a map: layers: must be a list of at most 8,192 objects" in capsys.readouterr().err


@pytest.mark.parametrize(
    "values",
    [
        config("mamba", 4, 1024, 8, intermediate_size=2048, state_size=16, conv_kernel=4),
        config("gemma2", 4, 1024, 8, 4, head_dim=128, sliding_window=512),
    ],
    ids=["recurrent", "windows"],
)
def test_no_plan_is_begun_for_a_layout_that_is_not_served(tmp_path, capsys, values):
    written(tmp_path, values)
    assert run_command(["init", str(tmp_path), "--out", str(tmp_path / "plan.yaml")]) == 2
    said = capsys.readouterr().err
    assert f"error: {tmp_path}: layer 0 keeps a cache of kind" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "plan.yaml").exists()


@pytest.mark.parametrize("model_type", ["a_model_of_next_year", "gemma4_text"])
def test_an_indexer_of_no_size_is_refused(tmp_path, model_type):
    """Layers that are called indexed and no key that says how wide an indexer's key is: not priced as if there were none."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config(model_type, 2, 1024, 8, 4) | {"layer_types": ["indexed_attention"] * 2}))
    with pytest.raises(BadInput, match="index_head_dim: missing"):
        read_geometry(path)
