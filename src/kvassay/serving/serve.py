"""Running the face on the loopback interface until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from kvassay.errors import BadInput, EngineError
from kvassay.serving.engine_thread import EngineThread
from kvassay.serving.face import create_app
from kvassay.serving.protocol import Backend
from kvassay.serving.requests import Limits

KEEP_ALIVE_S = 60


class _Uvicorn(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own handler raises the signal again after a graceful end, which makes the exit code a failure.
        yield


def serve(backend: Backend, port: int, host: str = "127.0.0.1", limits: Limits | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then give the running request `limits.finish_within_s`, abort it and return.

    Ends the process with code 0 by itself only where the backend does not let go of its thread.
    Raises EngineError when the port is in use, BadInput when it cannot be bound for another reason.
    """
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    limits = limits or Limits()
    listener = _bind(host, port)
    app = create_app(backend, limits)
    engine: EngineThread = app.state.face.engine
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", timeout_keep_alive=KEEP_ALIVE_S)
    config.timeout_graceful_shutdown = math.ceil(limits.finish_within_s + limits.abort_within_s)
    logging.getLogger("kvassay.serving").info("serving %s on http://%s:%d, one sequence at a time", backend.model_name, host, port)
    asyncio.run(_run(_Uvicorn(config), listener, engine, limits.finish_within_s))
    if not engine.join(limits.abort_within_s):
        logging.shutdown()
        os._exit(0)


async def _run(server: _Uvicorn, listener: socket.socket, engine: EngineThread, finish_within_s: float) -> None:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if server.should_exit:
            server.force_exit = True
        server.should_exit = True
        engine.drain()
        loop.call_later(finish_within_s, engine.abort)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        await server.serve(sockets=[listener])
    finally:
        engine.abort()


def _bind(host: str, port: int) -> socket.socket:
    # The protocol is named because asyncio turns Nagle's delay (40 ms on a token) off only for sockets that name it.
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        # bind alone does not notice a second listener while neither has begun to listen.
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise EngineError(f"port {port} of {host} is in use (address already in use); choose another port") from error
        raise BadInput(f"{host} port {port}: cannot listen ({error.strerror})") from error
    listener.setblocking(False)
    return listener
