"""The one thread that touches the backend. Requests wait in a bounded line; the event loop stays free for /health and /metrics."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from kvassay.serving.api_errors import overloaded, stopping

T = TypeVar("T")
Work = Callable[[threading.Event], Iterator[T]]


@dataclass(frozen=True)
class _End:
    error: BaseException | None


class _Job:
    def __init__(self, work: Work[Any]) -> None:
        self.work = work
        self.cancel = threading.Event()
        self.loop = asyncio.get_running_loop()
        self.events: asyncio.Queue[Any] = asyncio.Queue()

    def put(self, event: Any) -> None:
        try:
            self.loop.call_soon_threadsafe(self.events.put_nowait, event)
        except RuntimeError:
            # The loop closed under a request whose client is gone anyway: nobody is left to tell.
            self.cancel.set()


class EngineThread:
    """Runs one job at a time, in the order of arrival. A job is a function of a cancel event that yields what it has to tell."""

    def __init__(self, max_waiting: int) -> None:
        self.max_waiting = max_waiting
        self.stopping = False
        self._waiting: deque[_Job] = deque()
        self._current: _Job | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="kvassay-engine", daemon=True)
        self._thread.start()

    @property
    def running(self) -> int:
        return int(self._current is not None)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def events(self, work: Work[T]) -> AsyncGenerator[T]:
        """What `work` yields in the engine thread, as it comes. Leaving the iteration early cancels the job.

        Raises what `work` raised; ApiError 503 when the line is full or the server stops.
        """
        job = _Job(work)
        with self._changed:
            if self.stopping:
                raise stopping()
            # One more than may wait, because the first in the line of an idle engine is about to run.
            if len(self._waiting) + self.running > self.max_waiting:
                raise overloaded(self.max_waiting)
            self._waiting.append(job)
            self._changed.notify()
        try:
            while not isinstance(event := await job.events.get(), _End):
                yield event
            if event.error is not None:
                raise event.error
            if job.cancel.is_set():
                raise stopping()
        finally:
            self._drop(job)

    def drain(self) -> None:
        """Refuse new work and empty the line; what runs goes on."""
        with self._changed:
            self.stopping = True
            waiting = list(self._waiting)
            self._waiting.clear()
            self._changed.notify()
        for job in waiting:
            job.cancel.set()
            job.put(_End(stopping()))

    def abort(self) -> None:
        """Drain, and cancel what runs; its client is told at once."""
        self.drain()
        job = self._current
        if job is not None:
            job.cancel.set()
            job.put(_End(stopping()))

    def join(self, timeout_s: float) -> bool:
        """True when the thread has ended; call drain or abort first."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _drop(self, job: _Job) -> None:
        job.cancel.set()
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)

    def _next(self) -> _Job | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.stopping)
            self._current = self._waiting.popleft() if self._waiting else None
            return self._current

    def _run(self) -> None:
        while (job := self._next()) is not None:
            error: BaseException | None = None
            try:
                self._work(job)
            except BaseException as raised:
                error = raised
            self._current = None
            job.put(_End(error))

    def _work(self, job: _Job) -> None:
        items = job.work(job.cancel)
        try:
            for item in items:
                if job.cancel.is_set():
                    return
                job.put(item)
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()
