"""How many servers may live at one time without one disturbing the memory of another."""

from __future__ import annotations

import os
from pathlib import Path

from kvassay.roadtest.bench import Bench

MAX_SERVERS = 4
MEMORY_SHARE = 0.7
GPU_DRIVER = Path("/proc/driver/nvidia/version")


def servers_at_once(bench: Bench) -> int:
    """From 1 to MAX_SERVERS: no more than cores, and than free memory holds by the largest process peak measured so far.

    1 before anything was measured, and where a GPU is, whose memory one server may fill.
    """
    import psutil

    peak_bytes = max((row.memory.peak_bytes for name in bench.arms for row in bench.ledger.requests(name).values()), default=0)
    if not peak_bytes or GPU_DRIVER.exists():
        return 1
    free_bytes = int(MEMORY_SHARE * psutil.virtual_memory().available)
    return max(1, min(MAX_SERVERS, os.cpu_count() or 1, free_bytes // peak_bytes))
