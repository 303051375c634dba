"""What transformers fills in where a config.json is silent, as data: the file is written by `python -m oracle.class_defaults`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

# What the classes fill in from code rather than from a field (transformers 5.19, `__post_init__` of each).
COMPUTED: dict[str, dict[str, Any]] = {
    "gemma3_text": {"sliding_window_pattern": 6},
    "gemma4_text": {"global_head_dim": 512},
    "gemma4_unified_text": {"global_head_dim": 512},
    "diffusion_gemma_text": {"global_head_dim": 512},
    "cohere2": {"sliding_window_pattern": 4},
    "qwen3_next": {"full_attention_interval": 4},
    "qwen3_5_text": {"full_attention_interval": 4},
    "qwen3_5_moe_text": {"full_attention_interval": 4},
}


@dataclass(frozen=True)
class ClassDefaults:
    """Of one model_type. names: attribute -> key of the config.json. text: key and model_type of the nested language model.

    own: the class's keys that speak of a layout, None for a type that transformers does not register.
    """

    own: frozenset[str] | None
    names: dict[str, str]
    values: dict[str, Any]
    text: tuple[str, str] | None


UNKNOWN = ClassDefaults(own=None, names={}, values={}, text=None)


def class_defaults(model_type: str) -> ClassDefaults:
    """The row of `model_type`; UNKNOWN when transformers registers no such type."""
    row = _table()["types"].get(model_type)
    if row is None:
        return UNKNOWN
    text = row.get("text")
    return ClassDefaults(
        own=frozenset(row.get("own", ())),
        names=row.get("names", {}),
        values=row.get("defaults", {}) | COMPUTED.get(model_type, {}),
        text=(text[0], text[1]) if text else None,
    )


def library_version() -> str:
    """The version of transformers that the table was taken from."""
    return str(_table()["transformers"])


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(Path(__file__).with_name("class_defaults.json").read_bytes())
    return loaded
