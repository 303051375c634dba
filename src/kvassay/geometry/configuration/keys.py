"""Checked access to the keys of a model configuration: every refusal names the file and the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kvassay.errors import BadInput, one_line

MOST_LAYERS, MOST_HEADS, MOST_WIDTH, MOST_TOKENS = 4096, 65_536, 2**24, 2**40


@dataclass(frozen=True)
class Keys:
    """Configuration values under the names that transformers gives them.

    where: the file, for messages. spelled: the file's own name of a key where it differs (older names, GGUF). nested_in: where the
    values stand inside the file, "" at its top.
    defaults: what transformers fills in for this model_type where the key is absent; its use is written into `notes`.
    own: the keys by which this model_type's class in transformers speaks of its layout, None for a type that it does not register.
    asked: the keys that were asked for.
    """

    values: Mapping[str, Any]
    where: str
    spelled: Mapping[str, str] = field(default_factory=dict)
    nested_in: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    own: frozenset[str] | None = None
    notes: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)

    @property
    def model_type(self) -> str:
        """The model_type, "unknown" where the file has none. Raises BadInput when it is no text."""
        return self.text("model_type") if self.has("model_type") else "unknown"

    def has(self, key: str) -> bool:
        """Whether the key stands in the file with a value; null counts as absent."""
        self.asked.add(key)
        return self.values.get(key) is not None

    def get(self, key: str) -> Any:
        """The value of the file, or what transformers fills in (and a note of it), or None. Null in the file stays None."""
        self.asked.add(key)
        if key in self.values:
            return self.values[key]
        filled = self.defaults.get(key)
        if filled not in (None, False, 0):
            self.note(f"{self.name(key)} is absent: {shown(filled)}, as transformers fills in for {self.values.get('model_type')}")
        return filled

    def owns(self, key: str) -> bool:
        """Whether `key` has a value here, or by default, and may have one: a class of transformers acts only on its own keys."""
        return (self.own is None or key in self.own) and self.get(key) is not None

    def note(self, text: str) -> None:
        """Write down what was assumed, once."""
        if text not in self.notes:
            self.notes.append(text)

    def name(self, key: str) -> str:
        """The file's own name of `key`, with the names of what it is nested in."""
        name = self.spelled.get(key, key)
        return printable(f"{self.nested_in}.{name}" if self.nested_in else name)

    def refusal(self, key: str, problem: str) -> BadInput:
        """The error for `key`, to be raised by the caller."""
        return BadInput(f"{self.where}: {self.name(key)}: {problem}")

    def whole(self, key: str, most: int = MOST_WIDTH, least: int = 1) -> int:
        """The whole number at `key`, between `least` and `most`. Raises BadInput naming the key."""
        value = self.get(key)
        if value is None and key not in self.values:
            raise self.refusal(key, "missing, and nothing is assumed for it")
        return self.checked(key, value, most, least)

    def maybe(self, key: str, most: int = MOST_WIDTH, least: int = 1) -> int | None:
        """The whole number at `key`, None where there is none. Raises BadInput naming the key."""
        value = self.get(key)
        return None if value is None else self.checked(key, value, most, least)

    def checked(self, key: str, value: object, most: int = MOST_WIDTH, least: int = 1) -> int:
        """`value` as a whole number between `least` and `most`. Raises BadInput naming `key`."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refusal(key, f"must be a whole number, not {shown(value)}")
        if not least <= value <= most:
            raise self.refusal(key, f"must be from {least:,} to {most:,}, not {shown(value)}")
        return value

    def flag(self, key: str) -> bool:
        """The switch at `key`, off where absent. Raises BadInput naming the key."""
        value = self.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.refusal(key, f"must be true or false, not {shown(value)}")

    def text(self, key: str) -> str:
        """The text at `key`. Raises BadInput naming the key."""
        value = self.get(key)
        if not isinstance(value, str) or not value or len(value) > 200 or not value.isprintable():
            raise self.refusal(key, f"must be a short text, not {shown(value)}")
        return value

    def listing(self, key: str, length: int | None = None) -> list[Any]:
        """The list at `key`, of `length` entries where that is given. Raises BadInput naming the key."""
        value = self.get(key)
        if not isinstance(value, (list, tuple)):
            raise self.refusal(key, f"must be a list, not {shown(value)}")
        if length is not None and len(value) != length:
            raise self.refusal(key, f"must have one entry for each of the {length} layers, it has {len(value):,}")
        if len(value) > MOST_LAYERS:
            raise self.refusal(key, f"has {len(value):,} entries, more than {MOST_LAYERS:,}")
        return list(value)

    def wholes(self, key: str, length: int | None = None, most: int = MOST_WIDTH, least: int = 0) -> list[int]:
        """The list of whole numbers at `key`. Raises BadInput naming the key."""
        return [self.checked(key, each, most, least) for each in self.listing(key, length)]

    def mapping(self, key: str) -> Mapping[str, Any]:
        """The mapping at `key`, empty where absent. Raises BadInput naming the key."""
        value = self.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.refusal(key, f"must be a mapping, not {shown(value)}")
        return value

    def inside(self, key: str) -> Keys:
        """The nested configuration at `key`, messages prefixed by it. Its notes are this one's, its questions its own. Raises BadInput."""
        return replace(self, values=self.mapping(key), spelled={}, nested_in=self.name(key), defaults={}, own=None, asked=set())

    def with_values(self, values: Mapping[str, Any]) -> Keys:
        """The same file with some values replaced."""
        return replace(self, values={**self.values, **values})


def printable(name: str) -> str:
    """A name from a file in at most 120 characters, none of which a terminal would obey."""
    plain = one_line(name)
    return plain if len(plain) <= 120 else plain[:117] + "..."


def shown(value: object) -> str:
    """A value in at most 40 characters, whatever its size."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, (dict, list, tuple)):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
