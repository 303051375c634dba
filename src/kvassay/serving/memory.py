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


class MemorySampler:
    """A context manager that samples a process and all its descendants `hz` times a second in a thread of its own.

    peak_bytes, start_bytes: sums over the tree; samples: how many were taken; high_water_bytes: sum of each process's own largest
    RSS (VmHWM; shared pages counted once per process, so above the peak of PSS; 0 where the system does not tell).
    measure: "pss" (shared pages divided among those who map them), or "rss" as soon as one process's PSS may not be read.
    """

    def __init__(self, pid: int, hz: float = 10) -> None:
        self.pid, self.period_s = pid, 1 / hz
        self.peak_bytes = 0
        self.start_bytes = 0
        self.samples = 0
        self.high_water_bytes = 0
        self.sampling_s = 0.0
        self.measure: Measure = "pss"
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
        try:
            root = psutil.Process(self.pid)
            tree = [root, *root.children(recursive=True)]
        except psutil.Error:
            return
        total, high_water = 0, 0
        for process in tree:
            with contextlib.suppress(psutil.Error):
                total += self._one(process)
                high_water += high_water_bytes(process.pid)
        if total == 0:
            return
        self.samples += 1
        self.peak_bytes = max(self.peak_bytes, total)
        self.high_water_bytes = max(self.high_water_bytes, high_water)
        self.sampling_s += time.monotonic() - started_s

    def _one(self, process: psutil.Process) -> int:
        if self.measure == "pss":
            known = pss_bytes(process.pid)
            if known is not None:
                return known
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                self.measure = "rss"
        return int(process.memory_info().rss)
