"""One question of a task, as token ids: every arm gets exactly these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kvassay.corpora.tokens import ids_digest
from kvassay.tasks.checks import Check


@dataclass(frozen=True)
class Item:
    """`item` is unique within `task`. `cluster`: items that are not independent share it. `length` labels a length class.

    Greedy; an answer ends at one of `stop`, at the end-of-text token, or after `max_tokens`.
    """

    task: str
    item: str
    prompt: tuple[int, ...]
    max_tokens: int
    stop: tuple[str, ...]
    check: Check
    cluster: str
    length: str

    @cached_property
    def prompt_digest(self) -> str:
        """SHA-256 (hex) over the prompt's token ids as little-endian 32-bit integers."""
        return ids_digest(self.prompt)

    @property
    def needs_tokens(self) -> int:
        """Cache tokens that prompt and longest answer take together."""
        return len(self.prompt) + self.max_tokens
