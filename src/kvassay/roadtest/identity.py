"""What must be the same after a restart, as the engine itself reports it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvassay.errors import EngineError
from kvassay.records.kv_map import KVMap
from kvassay.serving.compare_state import compare_state

# What a right restart leaves unchanged; what is held at the moment is no part of it.
IDENTITY_KEYS = (
    "model_sha256",
    "map_digest",
    "layers",
    "scales",
    "scales_sha256",
    "bytes_per_token",
    "capacity_tokens",
    "kv_memory_bytes",
)


def number(state: Mapping[str, Any], key: str) -> float:
    """A figure of /kv_state. Raises EngineError when the engine does not give it."""
    value = state.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise EngineError(f"/kv_state: {key} is {value!r}, not a figure; the engine's state cannot be judged")
    return value


def identity(state: Mapping[str, Any]) -> dict[str, Any]:
    """The part of /kv_state that a restart must keep. Raises EngineError when a key is missing."""
    if missing := [key for key in IDENTITY_KEYS if key not in state]:
        raise EngineError(f"/kv_state: {', '.join(missing)} missing; the engine's state cannot be judged")
    return {key: state[key] for key in IDENTITY_KEYS}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Sentences saying what differs between two states, layer by layer; empty when nothing does."""
    a, b = identity(before), identity(after)
    found = [f"{key}: {a[key]!r} before, {b[key]!r} after" for key in IDENTITY_KEYS if key != "layers" and a[key] != b[key]]
    return found + layer_differences(a["layers"], b["layers"])


def state_problems(exported: KVMap, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """All that is wrong with a restarted engine: against its state before, and against the exported map."""
    unlike = [f"{each.what}: exported {each.expected}, running {each.observed}" for each in compare_state(exported, after)]
    return differences(before, after) + unlike


def layer_differences(before: Any, after: Any) -> list[str]:
    """The same for the `layers` lists: formats and stored dtypes of each layer."""
    if not isinstance(before, list | tuple) or not isinstance(after, list | tuple) or not before:
        return ["layers: no list of layers"]
    if len(before) != len(after):
        return [f"layers: {len(before)} before, {len(after)} after"]
    return [f"layer {at}: {a!r} before, {b!r} after" for at, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
