"""One reading of an engine: what it said of its cache when it started."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kvassay.errors import BadInput
from kvassay.geometry.configuration.keys import MOST_TOKENS, shown

WHOLE = re.compile(r"[0-9]{1,15}|[0-9]{1,3}(?:,[0-9]{3}){1,5}")


@dataclass(frozen=True)
class Reading:
    """What one start of an engine said: memory for the cache, the tokens that it counts in there, and its longest context.

    where: file and line. memory_rounding_bytes: how far the exact memory may be from what was printed. concurrency: requests of
    `max_length` tokens that the engine says it serves at once, None where it says none.
    """

    memory_bytes: int
    tokens: int
    max_length: int | None
    where: str
    memory_rounding_bytes: float = 0.5
    concurrency: float | None = None

    @property
    def bytes_per_token(self) -> float:
        """Memory ÷ tokens: for a hybrid a mix of growing and fixed parts, and no constant of the model."""
        return self.memory_bytes / self.tokens

    @property
    def rounding(self) -> float:
        """How far `bytes_per_token` may be from the exact figure, as a share of it."""
        return self.memory_rounding_bytes / self.memory_bytes + 1 / self.tokens


def token_count(value: Any, where: str) -> int:
    """A count of tokens, a number or digits with or without commas. Raises BadInput naming `where`."""
    if isinstance(value, str) and WHOLE.fullmatch(value):
        value = int(value.replace(",", ""))
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_TOKENS:
        raise BadInput(f"{where}: must be a whole number from 1 to {MOST_TOKENS:,}, not {shown(value)}")
    return value
