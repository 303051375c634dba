"""How short the cache is made, and which requests then still fit. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvassay.workload import Request

SHORT_FRACTION = 7 / 8


@dataclass(frozen=True)
class Shortage:
    """`kv_memory_bytes` that hold only `capacity_tokens` tokens of the map arm, fewer than request `largest` needs.

    `fitting`: numbers of the requests that still fit, smallest first.
    """

    kv_memory_bytes: int
    capacity_tokens: int
    largest: int
    needed_tokens: int
    fitting: tuple[int, ...]


def shortage(requests: Sequence[Request], bytes_per_token: int) -> Shortage:
    """Memory for seven eighths of what the largest request needs."""
    largest = max(range(len(requests)), key=lambda index: requests[index].total_tokens)
    needed_tokens = requests[largest].total_tokens
    capacity_tokens = int(SHORT_FRACTION * needed_tokens)
    fitting = [index for index, request in enumerate(requests) if request.total_tokens <= capacity_tokens]
    return Shortage(
        kv_memory_bytes=capacity_tokens * bytes_per_token,
        capacity_tokens=capacity_tokens,
        largest=largest,
        needed_tokens=needed_tokens,
        fitting=tuple(sorted(fitting, key=lambda index: requests[index].total_tokens)),
    )
