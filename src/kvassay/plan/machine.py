"""How fast this machine multiplies matrices: the one measured figure behind the estimates of --dry-run."""

from __future__ import annotations

import time

SIZE = 256
LEAST_S = 0.15


def measured_flops_per_s() -> float:
    """Single-precision floating-point operations per second of a matrix product, the best of about 0.15 s of tries."""
    import numpy as np

    a = np.ones((SIZE, SIZE), dtype=np.float32)
    a @ a
    best_s, started = float("inf"), time.perf_counter()
    while time.perf_counter() - started < LEAST_S:
        begun = time.perf_counter()
        a @ a
        best_s = min(best_s, time.perf_counter() - begun)
    return 2 * SIZE**3 / best_s
