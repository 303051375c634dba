"""A commented first plan for a model, as `kvassay init` writes it."""

from __future__ import annotations

import json
from pathlib import Path

from kvassay.capabilities.layouts import why_layout_unserved
from kvassay.errors import BadInput
from kvassay.geometry.locate import PACKAGE
from kvassay.geometry.price import bytes_per_token, native_pairs
from kvassay.plan.check import geometry_of
from kvassay.plan.schema import COMMIT, HUB_NAME, ModelChoice
from kvassay.plan.template import TEMPLATE
from kvassay.records.geometry import Geometry

STARTER_TRACE = "trace.jsonl"
KV_MEMORY_TOKENS = 11_650
LEAST_KV_MEMORY_BYTES = 64 * 2**20
GROUPS = (64, 32)


def starter_plan(model: str, trace: str = STARTER_TRACE) -> str:
    """The text of a first plan for `model`: folder, file.gguf, package:NAME/FILE, or a hub id as owner/name@COMMIT.

    Formats are chosen to fit the model's head size. Raises BadInput when the model is not there, or its cache cannot be read or served.
    """
    choice = model_choice(model)
    geometry = geometry_of(choice)
    if geometry and (why := why_layout_unserved(geometry)):
        raise BadInput(f"{model}: {why}; kvassay inspect tells what its cache costs")
    k_formats, budget_bits = _menu(geometry)
    return TEMPLATE.format(
        model_lines=_model_lines(choice),
        formats=", ".join(k_formats),
        budget_bits=budget_bits,
        facts=_facts(geometry),
        trace=json.dumps(trace, ensure_ascii=False),
        kv_memory_bytes=_kv_memory_bytes(geometry),
    )


def starter_trace() -> str:
    """A small made-up trace, so that a first run needs nothing else: 24 requests, one of them long."""
    rows = []
    for number in range(24):
        input_tokens = 1100 if number == 12 else 90 + 37 * number % 230
        rows.append(json.dumps({"arrival_s": round(0.6 * number, 1), "input_tokens": input_tokens, "output_tokens": 8 + number % 3 * 4}))
    return "\n".join(rows) + "\n"


def model_choice(model: str) -> ModelChoice:
    """What `model` names. Raises BadInput when it is nothing that a plan can name."""
    if model.startswith(PACKAGE):
        choice = ModelChoice(package=model.removeprefix(PACKAGE))
    elif Path(model).is_dir():
        choice = ModelChoice(folder=Path(model).resolve())
    elif Path(model).name == "config.json" and Path(model).is_file():
        choice = ModelChoice(folder=Path(model).resolve().parent)
    elif Path(model).is_file():
        choice = ModelChoice(gguf=Path(model).resolve())
    else:
        name, _, revision = model.partition("@")
        if not HUB_NAME.fullmatch(name) or not COMMIT.fullmatch(revision):
            raise BadInput(
                f"{model}: no folder, no file, not {PACKAGE}NAME/FILE.gguf, and not a hub id with its 40-digit commit (owner/name@COMMIT)"
            )
        return ModelChoice(hub=name, revision=revision)
    return choice


def _menu(geometry: Geometry | None) -> tuple[tuple[str, ...], str]:
    dims = {dim for layer in geometry.owners for dim in (layer.k_dim, layer.v_dim)} if geometry else {64}
    for group in GROUPS:
        if all(dim % group == 0 for dim in dims):
            return ("native", "fp8_e4m3", f"int6_g{group}", f"int4_g{group}"), "6.0"
    return ("native", "fp8_e4m3", "fp8_e5m2", "int8_token_head"), "12.0"


def _model_lines(choice: ModelChoice) -> str:
    named = choice.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return "\n".join(f"  {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in named.items())


def _facts(geometry: Geometry | None) -> str:
    if geometry is None:
        return "the model is not on this machine yet; kvassay inspect tells its bytes once it is"
    owners = geometry.owners
    native = bytes_per_token(geometry, native_pairs(geometry))
    return f"{len(owners)} layers own a cache, head size {owners[0].k_dim}, {native:,} bytes per token natively ({geometry.native_dtype})"


def _kv_memory_bytes(geometry: Geometry | None) -> int:
    if geometry is None:
        return 256 * 2**20
    per_token = bytes_per_token(geometry, native_pairs(geometry))
    return max(LEAST_KV_MEMORY_BYTES, -(-KV_MEMORY_TOKENS * per_token // 2**20) * 2**20)
