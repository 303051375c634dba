"""Noticing that the client hung up, and reading a body within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kvassay.serving.api_errors import bad_request
from kvassay.serving.requests import Limits

T = TypeVar("T")


class ClientGone(Exception):
    """The client closed the connection before its answer was complete."""


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`; when the client hangs up first, `work` is cancelled and ClientGone raised."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task, watcher = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        for one in (task, watcher):
            one.cancel()
        await asyncio.gather(task, watcher, return_exceptions=True)


async def read_body(request: Request, limits: Limits) -> bytes:
    """The whole body. Raises ApiError 413 when over the limit, 408 when it does not arrive in time."""
    too_large = bad_request(f"request body: larger than {limits.max_body_bytes} bytes", status=413)
    if int(request.headers.get("content-length", 0)) > limits.max_body_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_timeout_s):
            async for piece in request.stream():
                body += piece
                if len(body) > limits.max_body_bytes:
                    raise too_large
    except TimeoutError:
        raise bad_request(f"request body: not complete after {limits.body_timeout_s:g} s", status=408) from None
    except ClientDisconnect:
        raise ClientGone from None
    return bytes(body)


class EventStream(Response):
    """Server-sent events, each sent the moment it exists; ends when the client hangs up."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes]) -> None:
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def stream() -> None:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for event in self._events:
                await send({"type": "http.response.body", "body": event, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        try:
            await while_connected(receive, stream())
        except ClientGone:
            return
        finally:
            close = getattr(self._events, "aclose", None)
            if close is not None:
                await close()
