"""A server's own account of its cache, held against the map that it was started with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvassay.records.kv_map import KVMap

NAMED_AT_MOST = 3


def facts_of(state: Mapping[str, Any], kv_map: KVMap) -> tuple[str, ...]:
    """What differs between the /kv_state answer and `kv_map`, as sentences; empty when every layer has its formats."""
    layers = state.get("layers")
    if not isinstance(layers, list | tuple) or not all(isinstance(layer, Mapping) for layer in layers):
        return ("the engine does not tell the formats of its layers",)
    told = {layer.get("index"): (layer.get("k"), layer.get("v")) for layer in layers}
    asked = {layer.index: (layer.k, layer.v) for layer in kv_map.layers}
    wrong = [index for index in sorted(asked) if told.get(index) != asked[index]]
    sentences = [f"layer {index} runs {_pair(told.get(index))}, the map says {_pair(asked[index])}" for index in wrong[:NAMED_AT_MOST]]
    if len(wrong) > NAMED_AT_MOST:
        sentences.append(f"{len(wrong) - NAMED_AT_MOST} more layers differ from the map")
    if extra := told.keys() - asked.keys():
        sentences.append(f"the engine tells {len(extra)} layers that the map does not name")
    if state.get("map_digest") not in (None, kv_map.digest):
        sentences.append(f"the engine runs map {str(state['map_digest'])[:12]}, exported was {kv_map.digest[:12]}")
    return tuple(sentences)


def number(state: Mapping[str, Any], key: str) -> float | None:
    """A figure of the state that is a positive finite number, else None."""
    value = state.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        return None
    return float(value)


def _pair(pair: tuple[Any, Any] | None) -> str:
    return "nothing" if pair is None else f"{pair[0]}/{pair[1]}"
