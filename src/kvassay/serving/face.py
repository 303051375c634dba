"""The OpenAI-compatible HTTP face over a Backend: one sequence at a time, and it says so."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import asdict
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response

from kvassay.serving.answering import Accepted, Delta, answer
from kvassay.serving.api_errors import ApiError, bad_request, from_exception
from kvassay.serving.bodies import DONE, Bodies, event
from kvassay.serving.disconnect import ClientGone, EventStream, read_body, while_connected
from kvassay.serving.engine_thread import EngineThread
from kvassay.serving.metrics import Metrics
from kvassay.serving.protocol import OWNER, Backend, KVState
from kvassay.serving.requests import ChatRequest, CompletionRequest, Limits, read_request

CLIENT_CLOSED_REQUEST = 499
log = logging.getLogger("kvassay.serving")


class Face:
    """The state behind the routes: the engine thread, the counters, the limits."""

    def __init__(self, backend: Backend, limits: Limits) -> None:
        self.backend, self.limits = backend, limits
        self.engine = EngineThread(limits.max_waiting)
        self.metrics = Metrics()
        self.started_at = int(time.time())

    async def completions(self, request: Request) -> Response:
        return await self._answer(request, CompletionRequest)

    async def chat(self, request: Request) -> Response:
        return await self._answer(request, ChatRequest)

    async def models(self) -> Response:
        card = {"id": self.backend.model_name, "object": "model", "created": self.started_at, "owned_by": OWNER}
        return JSONResponse({"object": "list", "data": [card]})

    async def health(self) -> Response:
        state = "stopping" if self.engine.stopping else "ok"
        return JSONResponse({"status": state} | self._line(), 503 if self.engine.stopping else 200)

    async def kv_state(self) -> Response:
        return JSONResponse(asdict(await self._state()) | self._line())

    async def metrics_text(self) -> Response:
        text = self.metrics.text(await self._state(), self.engine.running, self.engine.waiting)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    def _line(self) -> dict[str, int]:
        return {"max_concurrent_sequences": 1, "requests_running": self.engine.running, "requests_waiting": self.engine.waiting}

    async def _state(self) -> KVState:
        try:
            return await asyncio.to_thread(self.backend.kv_state)
        except Exception as error:
            log.exception("kv_state failed")
            raise from_exception(error) from error

    async def _answer(self, http: Request, kind: type[CompletionRequest] | type[ChatRequest]) -> Response:
        arrived_s = time.monotonic()
        try:
            request = read_request(kind, await read_body(http, self.limits), self.backend.model_name)
            if isinstance(request, CompletionRequest):
                _refuse_combinations(request)
            events = self.engine.events(partial(answer, self.backend, request, self.metrics, arrived_s))
            if request.stream:
                return await self._streamed(http, request, events)
            return await while_connected(http.receive, self._whole(request, events))
        except ClientGone:
            self.metrics.outcomes["cancelled"] += 1
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        except Exception as error:
            return self._failed(error)

    async def _whole(self, request: CompletionRequest | ChatRequest, events: AsyncIterator[Accepted | Delta]) -> Response:
        accepted, *deltas = [one async for one in events]
        body = Bodies(request, self.backend.model_name, accepted).whole(deltas)  # type: ignore[arg-type]
        content = await asyncio.to_thread(_dump, body)
        self.metrics.outcomes["ok"] += 1
        return Response(content, media_type="application/json")

    async def _streamed(self, http: Request, request: CompletionRequest | ChatRequest, events: AsyncGenerator[Any]) -> Response:
        """A stream starts with the first token, so that a request that cannot be served gets a status of its own."""

        async def first() -> tuple[Accepted, Delta]:
            return await anext(events), await anext(events)

        accepted, delta = await while_connected(http.receive, first())
        return EventStream(self._stream(Bodies(request, self.backend.model_name, accepted), delta, events))

    async def _stream(self, bodies: Bodies, delta: Delta, events: AsyncGenerator[Any]) -> AsyncIterator[bytes]:
        outcome = "cancelled"
        try:
            if bodies.chat:
                yield bodies.role_chunk()
            number = 1
            yield bodies.chunk(delta, number)
            async for delta in events:
                number += 1
                yield bodies.chunk(delta, number)
            if bodies.request.stream_options.include_usage:
                yield bodies.usage_chunk(number)
            outcome = "ok"
            yield DONE
        except Exception as error:
            failure = from_exception(error)
            outcome = failure.outcome
            log.error("a stream broke off", exc_info=error)
            yield event(failure.body())
        finally:
            self.metrics.outcomes[outcome] += 1
            await events.aclose()

    def _failed(self, error: Exception) -> Response:
        failure = from_exception(error)
        self.metrics.outcomes[failure.outcome] += 1
        if failure.status == 500:
            log.error("the engine failed; the server goes on", exc_info=error)
        return JSONResponse(failure.body(), failure.status)


def create_app(backend: Backend, limits: Limits | None = None) -> FastAPI:
    """The app; its Face is at `app.state.face`."""
    face = Face(backend, limits or Limits())
    # The generated documentation pages would load scripts from other hosts.
    app = FastAPI(title="kvassay", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.face = face
    app.add_api_route("/v1/completions", face.completions, methods=["POST"], response_model=None)
    app.add_api_route("/v1/chat/completions", face.chat, methods=["POST"], response_model=None)
    app.add_api_route("/v1/models", face.models, methods=["GET"], response_model=None)
    app.add_api_route("/health", face.health, methods=["GET"], response_model=None)
    app.add_api_route("/metrics", face.metrics_text, methods=["GET"], response_model=None)
    app.add_api_route("/kv_state", face.kv_state, methods=["GET"], response_model=None)
    app.add_exception_handler(Exception, _on_exception)
    app.add_exception_handler(ApiError, _on_exception)
    app.add_exception_handler(HTTPException, _on_http_exception)
    return app


def _refuse_combinations(request: CompletionRequest) -> None:
    if request.prompt_logprobs is not None and request.stream:
        raise bad_request("prompt_logprobs are not available with stream")
    if request.max_tokens == 0 and request.prompt_logprobs is None:
        raise bad_request("max_tokens: at least 1, or 0 together with prompt_logprobs")


def _dump(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()


async def _on_exception(request: Request, error: Exception) -> Response:
    failure = from_exception(error)
    return JSONResponse(failure.body(), failure.status)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return JSONResponse(bad_request(f"{request.method} {request.url.path}: {getattr(error, 'detail', error)}", status).body(), status)
