"""An asynchronous client for OpenAI-compatible servers: kvassay's own face, vLLM, llama.cpp, or anything that claims to be one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aiohttp

from kvassay.errors import EngineError
from kvassay.serving.completion import BadAnswer, Completion, Gathering, parse_answer, plain
from kvassay.serving.protocol import OWNER
from kvassay.serving.sse import EventReader, OversizedEventError

HEADERS = {"Accept-Encoding": "identity"}
FAILURES = (aiohttp.ClientError, TimeoutError, OSError, EngineError, BadAnswer, OversizedEventError, ValueError)


@dataclass(frozen=True)
class Bounds:
    """Times and sizes after which an answer counts as failed. stall_s: the longest silence, waiting in the server's line included."""

    connect_s: float = 10.0
    stall_s: float = 300.0
    total_s: float = 1800.0
    small_s: float = 30.0
    max_event_bytes: int = 2**20
    max_answer_bytes: int = 256 * 2**20


class Client:
    """An async context manager. base_url has no /v1. model: the first of /v1/models when not given."""

    def __init__(self, base_url: str, model: str | None = None, bounds: Bounds | None = None) -> None:
        self.base_url = base_url.rstrip("/")
        self.bounds = bounds or Bounds()
        self._model = model
        self._owner: str | None = None
        self._open: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=self.bounds.total_s, sock_connect=self.bounds.connect_s, sock_read=self.bounds.stall_s)
        # Shorter than servers keep idle connections, so that none is reused in the moment it closes.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=3)
        self._open = aiohttp.ClientSession(timeout=timeout, connector=connector, trust_env=False, auto_decompress=False, headers=HEADERS)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._open is not None:
            await self._open.close()
            self._open = None

    async def complete(
        self,
        prompt: str | Sequence[int],
        max_tokens: int,
        *,
        ignore_eos: bool = False,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        stream: bool = True,
        seed: int | None = None,
    ) -> Completion:
        """One text completion. Never raises for a failure of the server: `error` names it."""
        body = {"prompt": prompt if isinstance(prompt, str) else list(prompt), "max_tokens": max_tokens}
        return await self._generate("/v1/completions", body, ignore_eos, temperature, stop, stream, seed)

    async def chat(
        self,
        messages: Sequence[Mapping[str, str]],
        max_tokens: int,
        *,
        ignore_eos: bool = False,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        stream: bool = True,
        seed: int | None = None,
    ) -> Completion:
        """One chat completion; as `complete` otherwise."""
        body = {"messages": [dict(message) for message in messages], "max_tokens": max_tokens}
        return await self._generate("/v1/chat/completions", body, ignore_eos, temperature, stop, stream, seed)

    async def prompt_logprobs(self, prompt: Sequence[int], top_k: int) -> list[dict[int, float] | None]:
        """Per prompt position {token id: log-probability in nats}: the top_k and the actual token; the first is None.

        Raises EngineError when the server does not give them.
        """
        body: dict[str, Any] = {"prompt": list(prompt), "prompt_logprobs": top_k, "temperature": 0.0}
        try:
            # kvassay's face can leave the generation out; other servers refuse fewer than one token.
            body |= {"model": await self._model_name(), "max_tokens": 0 if await self._is_kvassay() else 1}
            answer = await self._json("POST", "/v1/completions", body, self.bounds.total_s)
            return _positions(answer, len(prompt))
        except FAILURES as error:
            raise EngineError(f"{self.base_url}: no prompt log-probabilities: {describe(error)}") from error

    async def kv_state(self) -> dict[str, Any]:
        """What the engine's cache really is (KVState). Raises EngineError."""
        state = await self._asked("/kv_state")
        if not isinstance(state, dict):
            raise EngineError(f"{self.base_url}/kv_state: no JSON object")
        return state

    async def models(self) -> list[str]:
        """Ids of the served models. Raises EngineError."""
        return [model["id"] for model in await self._models()]

    async def metrics(self) -> dict[str, float]:
        """Samples of /metrics by name with labels, as written there. Raises EngineError."""
        try:
            text = (await self._body("GET", "/metrics", None, self.bounds.small_s)).decode()
            samples = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
            return {name: float(value) for name, _, value in samples}
        except FAILURES as error:
            raise EngineError(f"{self.base_url}/metrics: {describe(error)}") from error

    async def health(self) -> bool:
        """Whether /health answers 200."""
        try:
            await self._body("GET", "/health", None, self.bounds.small_s)
        except FAILURES:
            return False
        return True

    async def _generate(
        self, path: str, body: dict[str, Any], ignore_eos: bool, temperature: float, stop: Sequence[str], stream: bool, seed: int | None
    ) -> Completion:
        gathering = Gathering()
        try:
            body |= {"model": await self._model_name(), "temperature": temperature, "stream": stream, "return_token_ids": True}
            body |= {"stream_options": {"include_usage": True}} if stream else {}
            body |= {"ignore_eos": True} if ignore_eos else {}
            body |= {"stop": list(stop)} if stop else {}
            body |= {"seed": seed} if seed is not None else {}
            gathering.sent_s = time.monotonic()
            async with self._session.post(self.base_url + path, json=body, allow_redirects=False) as response:
                gathering.status = response.status
                if response.status != 200:
                    gathering.refused(await self._error_body(response))
                if response.content_type == "text/event-stream":
                    await self._read_events(response, gathering)
                else:
                    answer = parse_answer(await self._read(response))
                    gathering.take(answer, time.monotonic())
            missing = None if gathering.finish_reason else "the server's answer has no finish_reason; it is incomplete"
            return gathering.done(missing)
        except FAILURES as error:
            return gathering.done(describe(error))

    async def _read_events(self, response: aiohttp.ClientResponse, gathering: Gathering) -> None:
        _refuse_compression(response)
        reader = EventReader(self.bounds.max_event_bytes)
        size = 0
        async for piece in response.content.iter_any():
            arrived_s = time.monotonic()
            size += len(piece)
            for data in reader.feed(piece):
                if data == b"[DONE]":
                    return
                gathering.take(parse_answer(data), arrived_s)
            self._bound(size)
        for data in reader.rest():
            if data != b"[DONE]":
                gathering.take(parse_answer(data), time.monotonic())

    async def _error_body(self, response: aiohttp.ClientResponse) -> object:
        body = await self._read(response)
        try:
            return parse_answer(body)
        except BadAnswer:
            return body[:500].decode(errors="replace") or response.reason or "no body"

    async def _model_name(self) -> str:
        if self._model is None:
            self._model = str((await self._models())[0]["id"])
        return self._model

    async def _is_kvassay(self) -> bool:
        if self._owner is None:
            self._owner = str((await self._models())[0].get("owned_by"))
        return self._owner == OWNER

    async def _models(self) -> list[dict[str, Any]]:
        answer = await self._asked("/v1/models")
        models = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(models, list) or not models or not all(isinstance(m, dict) and isinstance(m.get("id"), str) for m in models):
            raise EngineError(f"{self.base_url}/v1/models: names no model")
        return models

    async def _asked(self, path: str) -> Any:
        try:
            return await self._json("GET", path, None, self.bounds.small_s)
        except FAILURES as error:
            raise EngineError(f"{self.base_url}{path}: {describe(error)}") from error

    async def _json(self, method: str, path: str, body: dict[str, Any] | None, total_s: float) -> Any:
        return parse_answer(await self._body(method, path, body, total_s))

    async def _body(self, method: str, path: str, body: dict[str, Any] | None, total_s: float) -> bytes:
        timeout = aiohttp.ClientTimeout(total=total_s, sock_connect=self.bounds.connect_s, sock_read=self.bounds.stall_s)
        async with self._session.request(method, self.base_url + path, json=body, timeout=timeout, allow_redirects=False) as response:
            if response.status != 200:
                Gathering(status=response.status).refused(await self._error_body(response))
            return await self._read(response)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        _refuse_compression(response)
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            self._bound(len(body))
        return bytes(body)

    def _bound(self, size_bytes: int) -> None:
        if size_bytes > self.bounds.max_answer_bytes:
            raise BadAnswer(f"the answer is larger than {self.bounds.max_answer_bytes} bytes")

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._open is None:
            raise RuntimeError("use `async with Client(...)`")
        return self._open


def describe(error: BaseException) -> str:
    """One line for a failure; a timeout has no text of its own."""
    if isinstance(error, BadAnswer | EngineError):
        return str(error)
    if isinstance(error, TimeoutError):
        return f"no answer in time ({type(error).__name__})"
    return plain(f"{type(error).__name__}: {error}")


def _refuse_compression(response: aiohttp.ClientResponse) -> None:
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise BadAnswer("the server compresses although asked not to")


def _positions(answer: Any, prompt_tokens: int) -> list[dict[int, float] | None]:
    try:
        entries = answer["choices"][0]["prompt_logprobs"]
        positions = [None if e is None else {int(i): float(one["logprob"]) for i, one in e.items()} for e in entries]
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise BadAnswer(f"the answer has no usable prompt_logprobs ({type(error).__name__})") from error
    if len(positions) != prompt_tokens:
        raise BadAnswer(f"{len(positions)} positions for {prompt_tokens} prompt tokens")
    return positions
