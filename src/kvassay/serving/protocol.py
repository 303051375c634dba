"""What an engine behind the HTTP face must offer. Nothing here needs torch: other library engines sit behind it too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

# `owned_by` of /v1/models: by it a client knows this face from other OpenAI-compatible servers.
OWNER = "kvassay"


class DoesNotFit(Exception):
    """A request that the KV memory, or the model's context, can never hold."""

    def __init__(self, needed_tokens: int, available_tokens: int) -> None:
        super().__init__(f"this request needs {needed_tokens} cache tokens, {available_tokens} are available")
        self.needed_tokens = needed_tokens
        self.available_tokens = available_tokens


@dataclass(frozen=True)
class GenerateParams:
    """temperature 0 is greedy. ignore_eos: go on to max_tokens whatever the model says. top_logprobs: alternatives per token.

    The face cuts the text at `stop` strings by itself; a backend may ignore them.
    """

    max_tokens: int
    temperature: float = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    top_logprobs: int = 0


@dataclass(frozen=True)
class GeneratedToken:
    """One generated token. `text` is the text it adds (may be empty in the middle of a character). logprobs in nats."""

    token_id: int
    text: str
    logprob: float
    top: tuple[tuple[int, float], ...] = ()
    finish_reason: str | None = None


@dataclass(frozen=True)
class PromptLogprob:
    """Log-probability (nats) of one prompt token given those before it, and the `top` most likely (id, logprob), best first.

    The first prompt token has none. rank: place of the token in the whole vocabulary, 1 the most likely; None where not known.
    """

    token_id: int
    logprob: float | None
    top: tuple[tuple[int, float], ...] = ()
    rank: int | None = None


@dataclass(frozen=True)
class KVState:
    """What the engine's cache really is, read from the running process.

    layers: per owner layer {"index", "k", "v", "k_dtype", "v_dtype"}. bytes_held: bytes of cache storage now.
    bytes_peak: largest so far. tokens_held: tokens in it. bytes_per_token: measured from real storage, 0.0 before the first request.
    """

    model: str
    model_sha256: str | None
    map_digest: str
    layers: tuple[dict[str, Any], ...]
    scales: str
    scales_sha256: str | None
    bytes_held: int
    bytes_peak: int
    tokens_held: int
    bytes_per_token: float
    capacity_tokens: int
    kv_memory_bytes: int
    weights_bytes: int
    engine: str
    engine_version: str
    build: str
    extra: dict[str, Any] = field(default_factory=dict)


class Backend(Protocol):
    """A library engine that serves one sequence at a time.

    Every call comes from one and the same thread, so calls never overlap, except `kv_state`: it comes from other threads at any
    moment, also in the middle of a generation, and must return at once without touching the model. `vocab_size` lets the face
    refuse a token id that no embedding row exists for.
    """

    model_name: str
    vocab_size: int

    def encode(self, text: str) -> list[int]: ...

    def decode(self, token_ids: Sequence[int]) -> str: ...

    def render_chat(self, messages: Sequence[dict[str, Any]]) -> list[int]:
        """Token ids of a chat, each message with a role and a content, both text. Raises BadInput when it cannot be rendered."""

    def check_fits(self, prompt_tokens: int, max_tokens: int) -> None:
        """Raise DoesNotFit when the request can never be held."""

    def generate(self, prompt: Sequence[int], params: GenerateParams, cancel: Event) -> Iterator[GeneratedToken]:
        """Yield tokens as they come; the last has a finish_reason ("stop" or "length"). Ends early when `cancel` is set."""

    def prompt_logprobs(self, prompt: Sequence[int], top_k: int) -> list[PromptLogprob]:
        """One entry per prompt token, computed through the same cache that serves."""

    def kv_state(self) -> KVState: ...
