"""Do two passages share a run of tokens? Shared text would let a map be judged on what it was chosen by."""

from __future__ import annotations

from collections.abc import Sequence

TokenRun = tuple[int, ...]


def runs(ids: Sequence[int], length: int) -> set[TokenRun]:
    """All runs of `length` consecutive tokens; a shorter passage is one run of its own, so that a copy of it is still seen."""
    if len(ids) < length:
        return {tuple(ids)}
    return {tuple(ids[i : i + length]) for i in range(len(ids) - length + 1)}


def shared_run(a: Sequence[int], b: Sequence[int], length: int) -> list[int] | None:
    """The longest stretch of b, at least `length` tokens, that begins with the first run also in a; None when there is none."""
    known = runs(a, length)
    length = min(length, len(b))
    for start in range(len(b) - length + 1):
        if tuple(b[start : start + length]) in known:
            end = start + length
            while end < len(b) and tuple(b[end - length + 1 : end + 1]) in known:
                end += 1
            return list(b[start:end])
    return None
