"""What the client learned about one request, gathered from whatever the server sent."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

MAX_ERROR_CHARS = 500
TokenCount = Literal["usage", "token_ids", "chunks"]


class BadAnswer(Exception):
    """The server's answer cannot be used; the text says why."""


@dataclass(frozen=True)
class Completion:
    """One request as the client saw it; times are monotonic seconds.

    error: None when the answer is complete. error_details: the server's error object, if it sent one (a request that does not fit
    has needed_tokens and available_tokens there). token_times_s: arrival of every chunk that bore text, so fewer entries than
    output_tokens where the server packs several tokens into a chunk. output_tokens_from: usage, else token ids, else chunks counted.
    """

    text: str
    token_ids: list[int] | None
    finish_reason: str | None
    prompt_tokens: int
    output_tokens: int
    output_tokens_from: TokenCount
    error: str | None
    error_details: Mapping[str, Any] | None
    status: int | None
    sent_s: float
    first_text_s: float | None
    last_text_s: float | None
    token_times_s: tuple[float, ...]


@dataclass
class Gathering:
    """A completion in the making."""

    sent_s: float = field(default_factory=time.monotonic)
    text: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    times_s: list[float] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    finish_reason: str | None = None
    status: int | None = None
    error_details: Mapping[str, Any] | None = None

    def take(self, answer: object, arrived_s: float) -> None:
        """One chunk or one whole answer. Raises BadAnswer for an error object or a shape that is no answer."""
        if not isinstance(answer, dict):
            raise BadAnswer("the server sent JSON that is no object")
        if answer.get("error") is not None:
            self.refused(answer)
        usage = answer.get("usage")
        if isinstance(usage, dict):
            self.usage |= {key: value for key, value in usage.items() if type(value) is int and value >= 0}
        choices = answer.get("choices")
        if choices is None or choices == []:
            return
        if not isinstance(choices, list) or not isinstance(choices[0], dict):
            raise BadAnswer("the server's choices are no list of objects")
        self._choice(choices[0], arrived_s)

    def refused(self, answer: object) -> None:
        """Raise BadAnswer with what the server's error body says."""
        error = answer.get("error", answer) if isinstance(answer, dict) else answer
        if isinstance(error, dict):
            self.error_details = error
        says = error.get("message", error) if isinstance(error, dict) else error
        did = "broke its answer off" if self.status == 200 else f"answered {self.status}"
        raise BadAnswer(f"the server {did}: {plain(says)}")

    def done(self, error: str | None) -> Completion:
        counted: TokenCount = "chunks"
        output_tokens = len(self.times_s)
        if self.token_ids:
            counted, output_tokens = "token_ids", len(self.token_ids)
        if "completion_tokens" in self.usage:
            counted, output_tokens = "usage", self.usage["completion_tokens"]
        return Completion(
            text="".join(self.text),
            token_ids=list(self.token_ids) or None,
            finish_reason=self.finish_reason,
            prompt_tokens=self.usage.get("prompt_tokens", 0),
            output_tokens=output_tokens,
            output_tokens_from=counted,
            error=error,
            error_details=self.error_details,
            status=self.status,
            sent_s=self.sent_s,
            first_text_s=self.times_s[0] if self.times_s else None,
            last_text_s=self.times_s[-1] if self.times_s else None,
            token_times_s=tuple(self.times_s),
        )

    def _choice(self, choice: dict[str, Any], arrived_s: float) -> None:
        part = choice.get("delta") or choice.get("message")
        text = part.get("content") if isinstance(part, dict) else choice.get("text")
        if isinstance(text, str) and text:
            self.text.append(text)
            self.times_s.append(arrived_s)
        token_ids = choice.get("token_ids")
        if isinstance(token_ids, list) and all(type(token_id) is int for token_id in token_ids):
            self.token_ids += token_ids
        finish = choice.get("finish_reason")
        if isinstance(finish, str):
            self.finish_reason = finish


def parse_answer(data: bytes) -> Any:
    """JSON that a server sent. Raises BadAnswer."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"the server sent no valid JSON ({type(error).__name__}): {plain(data[:80].decode(errors='replace'))}") from error


def plain(value: object) -> str:
    """Foreign text for a message: one line, bounded, no control characters."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return "".join(c if c.isprintable() else " " for c in text[:MAX_ERROR_CHARS]).strip()
