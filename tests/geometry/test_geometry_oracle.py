"""The price beside what transformers really holds: some structurally different types here, every type in the slow run."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvassay.geometry.configuration import class_defaults
from oracle.geometry import compare

pytestmark = pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")

# One for each way to keep a cache: all tokens, windows, chunks, per-kind shapes, sharing, latents, indexers, compression, states, cross caches.
DIFFERENT = (
    "gpt2", "llama", "qwen2", "gemma3_text", "gemma4_text", "gemma3n_text", "gpt_oss", "llama4_text", "mimo_v2_flash", "deepseek_v3",
    "deepseek_v32", "deepseek_v4", "kimi_linear", "qwen3_next", "jamba", "falcon_h1", "nemotron_h", "zamba2", "lfm2", "minimax", "rwkv",
    "mamba2", "t5", "whisper", "mllama",
)  # fmt: skip


def held_by(*model_types):
    """What `python -m oracle.held` says, by model type; a process of its own, since it forks."""
    root = Path(__file__).parents[2]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    said = subprocess.run([sys.executable, "-m", "oracle.held", *model_types], cwd=root, env=environment, capture_output=True, check=True)
    return {run["model_type"]: run for run in map(json.loads, said.stdout.splitlines())}


@pytest.fixture(scope="module")
def held():
    return held_by(*DIFFERENT)


@pytest.mark.parametrize("model_type", DIFFERENT)
def test_price_is_what_transformers_holds(held, model_type):
    row = compare(held[model_type])
    assert row.verdict in ("equal", "explained"), row
    assert row.held_bytes[0] > 0
    assert row.modules_missing == 0


def test_a_wrong_price_is_found(held):
    """Twice the heads in the file that the model was built with: nothing explains it."""
    run = held["llama"]
    assert compare(run).verdict == "equal"
    assert compare(run | {"config": run["config"] | {"num_key_value_heads": 4}}).verdict == "unexplained"


@pytest.mark.slow
def test_no_type_is_unexplained():
    rows = [compare(run) for run in held_by().values()]
    assert [row for row in rows if row.verdict in ("unexplained", "refused")] == []
    assert sum(row.verdict in ("equal", "explained") for row in rows) >= 220


@pytest.mark.slow
def test_class_defaults_are_those_of_the_installed_library():
    import transformers

    from oracle.class_defaults import TABLE, table

    if transformers.__version__ != class_defaults.library_version():
        pytest.skip(f"the table is of transformers {class_defaults.library_version()}")
    assert json.loads(TABLE.read_text()) == json.loads(json.dumps(table()))
