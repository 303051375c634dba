"""Time the solver: 128 layers × 64 pairs × 50 additive budgets. `python benchmarks/solving.py`"""

from __future__ import annotations

import random
import statistics
import time

from kvassay.solving.candidates import Choice, Group
from kvassay.solving.dynamic import solve_budgets_at_once

LAYERS, PAIRS, BUDGETS, RUNS = 128, 64, 50, 5


def main() -> None:
    """Median of several runs, in seconds."""
    pick = random.Random(0)  # noqa: S311
    groups = [
        Group(
            owner,
            tuple(
                Choice(k=f"k{at}", v=f"v{at}", bytes_per_token=16 * size, kl_nats=(loss := pick.random() / size), weight_nats=loss)
                for at, size in enumerate(pick.choices(range(40, 257), k=PAIRS))
            ),
        )
        for owner in range(LAYERS)
    ]
    low, high = 16 * 40 * LAYERS, 16 * 256 * LAYERS
    budgets = [low + (high - low) * step // BUDGETS for step in range(1, BUDGETS + 1)]
    times_s = []
    for _ in range(RUNS):
        start = time.perf_counter()
        found = solve_budgets_at_once(groups, budgets)
        times_s.append(time.perf_counter() - start)
    solved = sum(each is not None for each in found)
    print(f"{LAYERS} layers x {PAIRS} pairs x {BUDGETS} budgets: {statistics.median(times_s):.2f} s, {solved} solved")


if __name__ == "__main__":
    main()
