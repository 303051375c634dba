"""One request, worked off in the engine thread: encode, check that it fits, prompt log-probabilities, generate, cut at stop strings."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

from kvassay.errors import BadInput
from kvassay.serving.api_errors import bad_request
from kvassay.serving.metrics import Metrics
from kvassay.serving.protocol import Backend, DoesNotFit, GeneratedToken, PromptLogprob
from kvassay.serving.requests import DEFAULT_COMPLETION_TOKENS, ChatRequest, CompletionRequest, parameters, wants_logprobs
from kvassay.serving.stop_strings import StopStrings

LOWEST_LOGPROB = -9999.0


@dataclass(frozen=True)
class TokenLogprob:
    """Log-probability in nats of a token, as text for OpenAI's forms; `top`: alternatives, best first."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Accepted:
    """The request fits; first event of every answer. prompt_logprobs is in vLLM's shape."""

    prompt: tuple[int, ...]
    prompt_logprobs: list[dict[str, Any] | None] | None


@dataclass(frozen=True)
class Delta:
    """One generated token and the text that may be shown with it."""

    token_id: int
    text: str
    logprob: TokenLogprob | None
    finish_reason: str | None


def answer(
    backend: Backend, request: CompletionRequest | ChatRequest, metrics: Metrics, arrived_s: float, cancel: Event
) -> Iterator[Accepted | Delta]:
    """Accepted, then one Delta per token; the last has a finish_reason.

    Raises DoesNotFit, ApiError for a prompt that cannot be used, RuntimeError for a backend that breaks its promises.
    """
    prompt = _prompt_ids(backend, request)
    max_tokens = _max_tokens(backend, request, len(prompt))
    backend.check_fits(len(prompt), max_tokens)
    metrics.prompt_tokens += len(prompt)
    top_k = request.prompt_logprobs if isinstance(request, CompletionRequest) else None
    yield Accepted(prompt, None if top_k is None else _prompt_logprobs(backend.prompt_logprobs(prompt, top_k)))
    if max_tokens == 0:
        return
    stops = StopStrings(request.stop)
    last_s = 0.0
    for token in backend.generate(prompt, parameters(request, max_tokens), cancel):
        now_s = time.monotonic()
        if last_s:
            metrics.inter_token_s.observe(now_s - last_s)
        else:
            metrics.ttft_s.observe(now_s - arrived_s)
        last_s = now_s
        metrics.generation_tokens += 1
        text, stopped = stops.feed(token.text)
        finish = "stop" if stopped else token.finish_reason
        if finish and not stopped:
            text += stops.rest()
        yield Delta(token.token_id, text, _token_logprob(backend, request, token), finish)
        if finish:
            return
    if not cancel.is_set():
        raise RuntimeError("the backend ended a generation without a finish_reason")


def _prompt_ids(backend: Backend, request: CompletionRequest | ChatRequest) -> tuple[int, ...]:
    try:
        prompt = _tokens(backend, request)
    except BadInput as error:
        raise bad_request(str(error)) from error
    if not prompt:
        raise bad_request("prompt: no tokens in it")
    return tuple(prompt)


def _tokens(backend: Backend, request: CompletionRequest | ChatRequest) -> Sequence[int]:
    if isinstance(request, ChatRequest):
        return backend.render_chat(request.messages)
    if isinstance(request.prompt, str):
        return backend.encode(request.prompt)
    if max(request.prompt) >= backend.vocab_size:
        raise bad_request(f"prompt: token id {max(request.prompt)} is outside the vocabulary of {backend.vocab_size}")
    return request.prompt


def _max_tokens(backend: Backend, request: CompletionRequest | ChatRequest, prompt_tokens: int) -> int:
    if isinstance(request, CompletionRequest):
        return DEFAULT_COMPLETION_TOKENS if request.max_tokens is None else request.max_tokens
    asked = request.max_completion_tokens or request.max_tokens
    if asked is not None:
        return asked
    try:
        backend.check_fits(prompt_tokens, 2**31)
    except DoesNotFit as limit:
        return max(1, limit.available_tokens - prompt_tokens)
    return DEFAULT_COMPLETION_TOKENS


def _token_logprob(backend: Backend, request: CompletionRequest | ChatRequest, token: GeneratedToken) -> TokenLogprob | None:
    if not wants_logprobs(request):
        return None

    def name(token_id: int) -> str:
        return f"token_id:{token_id}" if request.return_tokens_as_token_ids else backend.decode([token_id])

    top = tuple((name(token_id), _finite(logprob)) for token_id, logprob in token.top)
    return TokenLogprob(name(token.token_id), _finite(token.logprob), top)


def _prompt_logprobs(entries: Sequence[PromptLogprob]) -> list[dict[str, Any] | None]:
    return [None if entry.logprob is None else _entry(entry, entry.logprob) for entry in entries]


def _entry(entry: PromptLogprob, logprob: float) -> dict[str, Any]:
    known = {str(token_id): {"logprob": _finite(value), "rank": rank} for rank, (token_id, value) in enumerate(entry.top, start=1)}
    return known if str(entry.token_id) in known else known | {str(entry.token_id): {"logprob": _finite(logprob), "rank": entry.rank}}


def _finite(logprob: float) -> float:
    """JSON has no infinity; seven decimals keep FP32. Raises ValueError on NaN."""
    if math.isnan(logprob):
        raise ValueError("NaN among the log-probabilities; the model or its cache is broken")
    return round(max(logprob, LOWEST_LOGPROB), 7)
