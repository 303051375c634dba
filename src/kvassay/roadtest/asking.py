"""Ask one request of the running engine, within a time limit, and judge what came back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kvassay.store import json_digest

if TYPE_CHECKING:
    from kvassay.serving.client import Client
    from kvassay.serving.completion import Completion
    from kvassay.serving.process import Server

Outcome = Literal["ok", "failed", "empty"]

REQUEST_LIMIT_S = 120.0
DEATH_NOTICED_WITHIN_S = 1.0


@dataclass(frozen=True)
class Answer:
    """What one request got. Times are monotonic seconds; `sha256` covers the generated tokens (the text, where ids are not given).

    `hung`: no end within the limit. first_s and last_s: first and last chunk that carried text, None without text.
    """

    outcome: Outcome
    error: str | None
    status: int | None
    sha256: str | None
    output_tokens: int
    sent_s: float
    first_s: float | None
    last_s: float | None
    done_s: float
    token_times_s: tuple[float, ...] = ()
    hung: bool = False

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"

    @property
    def lost(self) -> bool:
        """The connection was refused or broke off, as when a server dies."""
        return not self.ok and not self.hung and self.status in (None, 200)


async def ask(client: Client, prompt: Sequence[int], output_tokens: int, limit_s: float = REQUEST_LIMIT_S) -> Answer:
    """Greedy, fixed length, streamed. Never raises for what the server does; a request without an end is given up after `limit_s`."""
    sent_s = time.monotonic()
    try:
        completion = await asyncio.wait_for(client.complete(list(prompt), output_tokens, ignore_eos=True), limit_s)
    except TimeoutError:
        now = time.monotonic()
        return Answer("failed", f"no end within {limit_s:g} s", None, None, 0, sent_s, None, None, now, hung=True)
    return judge(completion, len(prompt), output_tokens, time.monotonic())


async def died(server: Server) -> bool:
    """Whether the server's process has ended; a death is noticed a moment after the connection breaks, so this waits for it."""
    deadline_s = time.monotonic() + DEATH_NOTICED_WITHIN_S
    while server.is_alive():
        if time.monotonic() > deadline_s:
            return False
        await asyncio.sleep(0.05)
    return True


def judge(completion: Completion, prompt_tokens: int, asked_tokens: int, done_s: float) -> Answer:
    """An answer is ok only with the asked number of tokens, some text, and the prompt length that was sent."""
    outcome: Outcome = "ok"
    error = completion.error
    if error is not None or (completion.status is not None and completion.status != 200):
        outcome, error = "failed", error or f"HTTP status {completion.status}"
    elif not completion.output_tokens or completion.first_text_s is None or completion.last_text_s is None:
        outcome, error = "empty", "the answer has no text"
    elif completion.output_tokens != asked_tokens:
        outcome, error = "failed", f"{completion.output_tokens} of {asked_tokens} tokens came"
    elif completion.prompt_tokens != prompt_tokens:
        outcome, error = "failed", f"the server counted {completion.prompt_tokens} prompt tokens, {prompt_tokens} were sent"
    return Answer(
        outcome=outcome,
        error=error,
        status=completion.status,
        sha256=answer_digest(completion.token_ids, completion.text) if outcome == "ok" else None,
        output_tokens=completion.output_tokens,
        sent_s=completion.sent_s,
        first_s=completion.first_text_s,
        last_s=completion.last_text_s,
        done_s=done_s,
        token_times_s=tuple(completion.token_times_s),
    )


def answer_digest(token_ids: Sequence[int] | None, text: str) -> str:
    """SHA-256 (hex) of an answer: of its token ids where the engine gives them, else of its text."""
    return json_digest({"token_ids": list(token_ids)} if token_ids is not None else {"text": text})
