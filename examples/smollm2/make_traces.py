"""Writes trace.jsonl (24 requests, the demo) and trace-1200.jsonl beside this file: python examples/smollm2/make_traces.py [FOLDER]

Shapes of a small assistant: Poisson arrivals, log-normal prompt lengths, a long document now and then, a quarter of the
requests behind one of two system prompts. Only lengths and times; kvassay makes the text.
"""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path


def lines(
    seed: int, requests: int, median_tokens: int, long_every: int, long_tokens: tuple[int, int], output_tokens: tuple[int, ...]
) -> list[str]:
    """One JSON line per request; the same on every machine for the same arguments."""
    source = random.Random(seed)  # noqa: S311 - shapes, not secrets
    arrival_s, rows = 0.0, []
    for number in range(requests):
        if number % long_every == long_every // 2:
            input_tokens = source.randint(*long_tokens)
        else:
            spread = math.exp(0.55 * sum(source.uniform(-1, 1) for _ in range(3)))
            input_tokens = min(600, max(60, round(median_tokens * spread)))
        row = {"arrival_s": round(arrival_s, 3), "input_tokens": input_tokens, "output_tokens": source.choice(output_tokens)}
        if source.random() < 0.25:
            row |= {"prefix": source.choice(("system-a", "system-b")), "prefix_tokens": min(48, input_tokens // 2)}
        rows.append(json.dumps(row))
        arrival_s += -math.log(1 - source.random()) * 0.6
    return rows


def main(folder: Path) -> None:
    demo = lines(seed=7, requests=24, median_tokens=120, long_every=24, long_tokens=(1020, 1080), output_tokens=(6, 6, 6, 6, 6, 6, 8, 12))
    variant = lines(seed=8, requests=1200, median_tokens=180, long_every=40, long_tokens=(700, 1500), output_tokens=(16,))
    for name, rows in (("trace.jsonl", demo), ("trace-1200.jsonl", variant)):
        (folder / name).write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
