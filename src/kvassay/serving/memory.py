"""Memory of a process tree, sampled from outside."""

from __future__ import annotations

import contextlib
import threading
import time
from types import TracebackType
from typing import Literal, Self

import psutil

from kvassay.serving.proc_memory import high_water_bytes, pss_bytes

Measure = Literal["pss", "rss"]
PSS_EVERY_S = 1.0


class MemorySampler:
    """A context manager that samples a process and all its descendants `hz` times a second in a thread of its own.

    peak_bytes, start_bytes: sums over the tree; samples: how many were taken; high_water_bytes: sum of each process's own largest
    RSS (VmHWM; shared pages counted once per process, so above the peak of PSS; 0 where the system does not tell).
    measure: "pss" (shared pages divided among those who map them), or "rss" as soon as one process's PSS may not be read.

    The kernel walks every page to tell PSS (about 8 ms of CPU per GiB), which at 10 Hz would slow the engine under test on a small
    machine. So a sample reads PSS only where RSS, which costs nothing, stands above every RSS whose PSS is known, and at least once a
    second; any other sample cannot be a new peak unless pages became unshared within that second.
    """

    def __init__(self, pid: int, hz: float = 10) -> None:
        self.pid, self.period_s = pid, 1 / hz
        self._root = psutil.Process(pid) if psutil.pid_exists(pid) else None
        self.peak_bytes = 0
        self.start_bytes = 0
        self.samples = 0
        self.high_water_bytes = 0
        self.sampling_s = 0.0
        self.measure: Measure = "pss"
        self._known_rss_bytes = 0
        self._pss_read_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kvassay-memory", daemon=True)

    def __enter__(self) -> Self:
        self._sample()
        self.start_bytes = self.peak_bytes
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()

    def _run(self) -> None:
        next_s = time.monotonic() + self.period_s
        while not self._stop.wait(max(0.0, next_s - time.monotonic())):
            self._sample()
            next_s = max(next_s + self.period_s, time.monotonic())

    def _sample(self) -> None:
        started_s = time.monotonic()
        # is_running tells a later process of the same pid from this one.
        if self._root is None or not self._root.is_running():
            return
        try:
            tree = [self._root, *self._root.children(recursive=True)]
        except psutil.Error:
            return
        rss = sum(_rss_bytes(process) for process in tree)
        if rss == 0:
            return
        self.samples += 1
        if self.measure == "rss":
            self.peak_bytes = max(self.peak_bytes, rss)
        elif rss > self._known_rss_bytes or started_s - self._pss_read_s >= PSS_EVERY_S:
            self.peak_bytes = max(self.peak_bytes, self._pss_or_rss(tree))
            self._known_rss_bytes, self._pss_read_s = max(self._known_rss_bytes, rss), started_s
        self.high_water_bytes = max(self.high_water_bytes, sum(high_water_bytes(process.pid) for process in tree))
        self.sampling_s += time.monotonic() - started_s

    def _pss_or_rss(self, tree: list[psutil.Process]) -> int:
        total = 0
        for process in tree:
            known = pss_bytes(process.pid)
            rss = _rss_bytes(process) if known is None else 0
            if rss > 0:
                self.measure = "rss"
            total += rss if known is None else known
        return total


def _rss_bytes(process: psutil.Process) -> int:
    """0 when the process has ended."""
    with contextlib.suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0
