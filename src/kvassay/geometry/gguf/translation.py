"""A GGUF header halfway to transformers' names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kvassay.geometry.configuration.keys import Keys

ARCHITECTURE = "general.architecture"
HEADS, KV_HEADS, K_WIDTH, V_WIDTH = "attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length"


@dataclass
class Translation:
    """raw: the architecture's keys without its prefix. layers: without prediction layers. values, spelled: what `Keys` will hold.

    used: the raw keys whose fact has been carried over, or needs no carrying.
    """

    raw: Keys
    architecture: str
    layers: int
    used: set[str]
    values: dict[str, Any] = field(default_factory=dict)
    spelled: dict[str, str] = field(default_factory=dict)

    def put(self, key: str, value: Any, name: str) -> None:
        """Set transformers' `key` from the raw key `name`."""
        self.values[key] = value
        self.spelled[key] = self.raw.name(name)
        self.used.add(name)
