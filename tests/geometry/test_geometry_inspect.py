"""`kvassay inspect`: text, JSON, maps, refusals."""

import json
import subprocess
import sys

import pytest

from kvassay.cli import run_command
from kvassay.geometry.price import native_pairs
from kvassay.records.frontier import Pair
from kvassay.solving.kv_map import build_kv_map
from support.small_geometry import small_geometry

QWEN3_8B = {"model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "dtype": "bfloat16"}  # fmt: skip


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(QWEN3_8B))
    return str(path)


def inspect(capsys, *arguments):
    code = run_command(["inspect", *arguments])
    return code, capsys.readouterr()


def test_text(config, capsys):
    code, said = inspect(capsys, config, "--context", "32768", "--requests", "2")
    assert code == 0
    assert "at 32,768 tokens one request holds 4.50 GiB" in said.out
    assert "2 such requests hold 9.00 GiB" in said.out
    assert "growth               147,456 bytes per further token" in said.out
    assert said.err == ""


def test_json(config, capsys):
    code, said = inspect(capsys, config, "--context", "32768", "--k", "fp8_e4m3", "--v", "nvfp4", "--json")
    document = json.loads(said.out)
    assert code == 0
    assert (document["model_type"], document["native_dtype"], len(document["layers"])) == ("qwen3", "bfloat16", 36)
    assert document["layers"][3].items() >= {"index": 3, "kind": "full", "owner": True, "reads_from": None, "kv_heads": 8, "k_dim": 128, "v_dim": 128, "window": None, "module": "model.layers.3.self_attn"}.items()  # fmt: skip
    per_token = 36 * 8 * (128 + 64 + 8)
    assert document["bytes"] == {
        "growth_per_token": per_token,
        "all_tokens_per_token": per_token,
        "window_bytes": 0,
        "fixed_per_request": 0,
        "indexer_per_token": 0,
    }
    assert document["parts"] == {"payload": 32_768 * 36 * 8 * 192, "scales": 32_768 * 36 * 8 * 8, "padding": 0}
    assert document["total_bytes"] == sum(document["parts"].values())
    assert any("max_position_embeddings" in note for note in document["assumptions"]) is False or "--context" in said.out


def test_map(tmp_path, capsys):
    geometry = small_geometry()
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps({"model_type": "llama", "num_hidden_layers": 4, "num_key_value_heads": 2, "head_dim": 64, "dtype": "bfloat16"})
    )
    pairs = [Pair(k="int4_g64", v="native"), *native_pairs(geometry)[1:]]
    path = tmp_path / "map.json"
    path.write_text(build_kv_map(geometry, "a" * 64, "b" * 64, "transformers", pairs).model_dump_json())
    code, said = inspect(capsys, str(config), "--map", str(path), "--json")
    assert code == 0
    assert json.loads(said.out)["bytes"]["growth_per_token"] == 2048 - 2 * (128 - 36)
    config.write_text(
        json.dumps({"model_type": "llama", "num_hidden_layers": 5, "num_key_value_heads": 2, "head_dim": 64, "dtype": "bfloat16"})
    )
    code, said = inspect(capsys, str(config), "--map", str(path))
    assert code == 2
    assert "belongs to another model" in said.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--k", "int3"], "unknown"),
        (["--k", "int4_g256"], "unknown"),
        (["--context", "0"], "--context 0"),
        (["--context", str(10**15)], "context"),
        (["--requests", "0"], "requests"),
        (["--map", "none.json"], "none.json"),
        (["--map", "none.json", "--k", "bf16"], "leave out"),
    ],
)
def test_refusals(config, capsys, arguments, words):
    code, said = inspect(capsys, config, *arguments)
    assert code == 2
    assert words in said.err
    assert "Traceback" not in said.err


def test_starts_without_heavy_imports(config):
    code = "import sys; from kvassay.cli import run_command; run_command(['inspect', sys.argv[1]]); print([m for m in ('torch', 'transformers', 'numpy', 'scipy', 'rich', 'yaml') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code, config], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_context_beyond_the_model_is_said(tmp_path, capsys):
    config = tmp_path / "config.json"
    config.write_text(json.dumps(QWEN3_8B | {"max_position_embeddings": 40_960}))
    assert "longer than the 40,960 tokens that the model was made for" in inspect(capsys, str(config), "--context", "40961")[1].out
    assert "longer than" not in inspect(capsys, str(config), "--context", "40960")[1].out
