"""The price beside what transformers really holds: some structurally different types here, every type and shape in the slow run."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvassay.geometry.config import read_geometry
from kvassay.geometry.configuration import class_defaults
from oracle.geometry import compare

pytestmark = pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")

# One for each way to keep a cache: all tokens, windows, chunks, per-kind shapes, sharing, latents, indexers, compression, states, cross caches.
DIFFERENT = (
    "gpt2", "llama", "qwen2", "gemma3_text", "gemma4_text", "gemma3n_text", "gpt_oss", "llama4_text", "mimo_v2_flash", "deepseek_v3",
    "deepseek_v32", "deepseek_v4", "kimi_linear", "qwen3_next", "jamba", "falcon_h1", "nemotron_h", "zamba2", "lfm2", "minimax", "rwkv",
    "mamba2", "t5/uneven", "whisper", "mllama", "glm_moe_dsa/shared_indexers",
)  # fmt: skip
# Keep no cache between calls, none of K and V, or none of their own; and one that the library cannot run.
WITHOUT = {"openai-gpt", "xlm", "xlnet", "reformer", "gemma4_assistant", "gemma4_unified_assistant", "blt"}
# Refused by the key of a layout that is not known, rather than priced.
REFUSED = {"xlstm", "idefics", "qwen4_exp_text"}


def held_by(*names):
    """What `python -m oracle.held` says, by name; a process of its own, since it forks."""
    root = Path(__file__).parents[2]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    said = subprocess.run([sys.executable, "-m", "oracle.held", *names], cwd=root, env=environment, capture_output=True, check=True)
    return {run["name"]: run for run in map(json.loads, said.stdout.splitlines())}


@pytest.fixture(scope="module")
def held():
    return held_by(*DIFFERENT)


@pytest.mark.parametrize("name", DIFFERENT)
def test_price_is_what_transformers_holds(held, name):
    row = compare(held[name])
    assert row.is_right, row
    assert row.held[0] > 0
    assert [each for each in row.strangers if "recurrent" not in each] == []


def test_a_wrong_price_is_found(held):
    """Twice the heads in the file that the model was built with: nothing explains it."""
    run = held["llama"]
    assert compare(run).verdict == "equal"
    wrong = {key: run[key] | {"num_key_value_heads": 4} for key in ("config", "whole")}
    assert compare(run | wrong).verdict == "unexplained"


def test_errors_that_cancel_out_are_found(held):
    """The first and the last layer's bytes exchanged: the sum is right, two layers are not."""
    run = held["gpt_oss"]
    exchanged = {0: 12, 12: 0}
    run = run | {
        "held": [
            each | {"tensors": [tensor | {"layer": exchanged.get(tensor["layer"], tensor["layer"])} for tensor in each["tensors"]]}
            for each in run["held"]
        ]
    }
    kinds = run["whole"]["layer_types"]
    assert (kinds[0], kinds[12]) == ("sliding_attention", "sliding_attention")  # alike: an exchange changes nothing
    assert compare(run).is_right
    for each in run["held"]:
        for tensor in each["tensors"]:
            tensor["layer"] = {0: 1, 1: 0}.get(tensor["layer"], tensor["layer"])
    assert kinds[1] == "full_attention"
    assert compare(run).verdict == "unexplained"


def test_a_default_that_the_reader_does_not_know_is_found(held):
    """The saved file leaves out what the class fills in; another number there is another price."""
    run = held["qwen2"]
    assert compare(run | {"whole": run["whole"] | {"head_dim": 40}}).verdict == "unexplained"


@pytest.mark.slow
def test_every_type_and_shape_is_explained():
    rows = [compare(run) for run in held_by().values()]
    assert [row for row in rows if row.verdict == "unexplained"] == []
    assert {row.name.partition("/")[0] for row in rows if row.verdict == "refused"} <= REFUSED
    assert {row.name for row in rows if row.verdict == "skipped" and not row.is_no_shape} <= WITHOUT
    assert sum(row.is_right for row in rows) >= 530


@pytest.mark.slow
def test_what_a_class_fills_in_is_known_for_every_type(tmp_path):
    """A default configuration, saved with and without its defaults, has one price."""
    from transformers import CONFIG_MAPPING

    from kvassay.errors import BadInput
    from oracle.run import all_model_types

    def said(config, **how):
        (tmp_path / "config.json").write_text(config.to_json_string(**how))
        try:
            return read_geometry(tmp_path / "config.json", 4096).layers
        except BadInput as error:
            return str(error)

    needs_parts = {"musicgen", "musicgen_melody", "encoder-decoder", "vision-encoder-decoder", "speech-encoder-decoder"}
    for name in all_model_types():
        if name not in needs_parts:
            config = CONFIG_MAPPING[name]()
            assert said(config) == said(config, use_diff=False), name


@pytest.mark.slow
def test_class_defaults_are_those_of_the_installed_library():
    import transformers

    from oracle.class_defaults import TABLE, table

    if transformers.__version__ != class_defaults.library_version():
        pytest.skip(f"the table is of transformers {class_defaults.library_version()}")
    assert json.loads(TABLE.read_text()) == json.loads(json.dumps(table()))
