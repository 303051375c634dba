"""Several arms running side by side: started together, always stopped together. Not for measuring memory or speed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass

from kvassay.errors import EngineError
from kvassay.progress import Progress
from kvassay.records.export import ArmExport
from kvassay.serving.process import Server
from kvassay.store import Run
from kvassay.targets.start import start_arm

SMALLEST_KV_BYTES = 16 * 2**20
# Threads of several engines that wait for each other on the same cores take far more time than they save.
ONE_THREAD_EACH = {"OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Fleet:
    """servers: running arms by name. refused: arms that did not start, with the reason."""

    servers: dict[str, Server]
    refused: dict[str, str]


@contextmanager
def start_fleet(run: Run, arms: Mapping[str, ArmExport], log_prefix: str, kv_memory_bytes: int, progress: Progress) -> Iterator[Fleet]:
    """Start every arm at once and stop them all at the end; an arm that does not start is told in `refused`."""
    running: list[Future[Server]] = []
    try:
        with progress.step("starting servers", len(arms)) as step, ThreadPoolExecutor(max_workers=max(1, len(arms))) as pool:
            starting = {
                name: pool.submit(
                    start_arm, run, arm, log_name=f"{log_prefix}-{name}", kv_memory_bytes=kv_memory_bytes, extra_env=ONE_THREAD_EACH
                )
                for name, arm in arms.items()
            }
            running = list(starting.values())
            for _ in as_completed(running):
                step.advance()
        fleet = Fleet({}, {})
        for name, future in starting.items():
            try:
                fleet.servers[name] = future.result()
            except EngineError as error:
                fleet.refused[name] = str(error)
        yield fleet
    finally:
        for future in running:
            if future.done() and not future.cancelled() and future.exception() is None:
                future.result().stop()


def kv_memory_for(arms: Iterable[ArmExport], tokens: int) -> int:
    """Bytes with which every one of `arms` can hold a request of `tokens` tokens."""
    return max(SMALLEST_KV_BYTES, tokens * max(arm.bytes_per_token for arm in arms))
