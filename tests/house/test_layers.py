"""The pure layers stay pure: no torch, no transformers, no HTTP stack in a fresh interpreter."""

import json
import subprocess
import sys

import pytest

PURE = (
    "kvassay",
    "kvassay.store",
    "kvassay.records",
    "kvassay.formats",
    "kvassay.statistics",
    "kvassay.geometry.config",
    "kvassay.geometry.price",
    "kvassay.workload",
    "kvassay.capabilities",
    "kvassay.plan",
    "kvassay.solving.frontier",
    "kvassay.card.policy",
    "kvassay.pipeline",
    "kvassay.cli",
    "kvassay.serving.face",
    "kvassay.serving.client",
)


@pytest.mark.parametrize("module", PURE)
def test_pure_module_loads_no_torch(module: str) -> None:
    code = f"import {module}, json, sys; print(json.dumps(sorted({{n.split('.')[0] for n in sys.modules}})))"
    loaded = set(json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout))
    assert not loaded & {"torch", "transformers", "safetensors"}


@pytest.mark.parametrize("module", ["kvassay.cli", "kvassay.geometry.config", "kvassay.pipeline"])
def test_fast_start_modules_load_nothing_heavy(module: str) -> None:
    code = f"import {module}, json, sys; print(json.dumps(sorted({{n.split('.')[0] for n in sys.modules}})))"
    loaded = set(json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout))
    assert not loaded & {"torch", "transformers", "scipy", "numpy", "aiohttp", "fastapi", "uvicorn", "rich"}
