"""Checked access to the keys of a model configuration: every refusal names the file and the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvassay.errors import BadInput


@dataclass(frozen=True)
class Keys:
    """Configuration values under the names that transformers gives them.

    where: the file, for messages. spelled: the file's own name of a key where it differs (GGUF).
    """

    values: Mapping[str, Any]
    where: str
    spelled: Mapping[str, str] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        """Whether the key stands with a value; null counts as absent."""
        return self.values.get(key) is not None

    def refusal(self, key: str, problem: str) -> BadInput:
        """The error for `key`, to be raised by the caller."""
        return BadInput(f"{self.where}: {self.spelled.get(key, key)}: {problem}")

    def whole(self, key: str, most: int, least: int = 1) -> int:
        """The whole number at `key`, between `least` and `most`. Raises BadInput naming the key."""
        if key not in self.values:
            raise self.refusal(key, "missing, and nothing is assumed for it")
        value = self.values[key]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refusal(key, f"must be a whole number, not {shown(value)}")
        if not least <= value <= most:
            raise self.refusal(key, f"must be from {least:,} to {most:,}, not {shown(value)}")
        return value

    def text(self, key: str) -> str:
        """The text at `key`. Raises BadInput naming the key."""
        value = self.values.get(key)
        if not isinstance(value, str) or not value or len(value) > 200 or not value.isprintable():
            raise self.refusal(key, f"must be a short text, not {shown(value)}")
        return value


def shown(value: object) -> str:
    """A value in at most 40 characters, whatever its size."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, (dict, list, tuple)):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
