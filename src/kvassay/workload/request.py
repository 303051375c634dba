"""One request shape, whatever trace it came from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedBlock:
    """`tokens` tokens that every request naming `id` at this place begins with."""

    id: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Request:
    """arrival_s: seconds since the first moment of the trace. input_tokens: prompt length, shared blocks included.

    output_tokens: answer length. shared: blocks that the prompt begins with, in order; empty where the trace knows of no sharing.
    """

    arrival_s: float
    input_tokens: int
    output_tokens: int
    shared: tuple[SharedBlock, ...] = ()

    @property
    def total_tokens(self) -> int:
        """Cache tokens that the whole request needs, as engines admit it."""
        return self.input_tokens + self.output_tokens
