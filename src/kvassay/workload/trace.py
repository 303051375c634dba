"""Read a trace file: the declared format decides the time unit and the block size, nothing is guessed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kvassay.errors import BadInput
from kvassay.store import file_digest
from kvassay.workload.kvassay_trace import parse_line
from kvassay.workload.lines import numbered_lines
from kvassay.workload.request import Request

READERS: dict[str, Callable[[bytes], Request]] = {"kvassay": parse_line}

MAX_BAD_FRACTION = 0.01
NAMED_BAD_LINES = 5


@dataclass(frozen=True)
class BadLine:
    """A line that was left out, and why."""

    number: int
    why: str


@dataclass(frozen=True)
class Trace:
    """`sha256` covers the whole file; `lines` were read to get `requests`, and `bad` of them were left out."""

    requests: tuple[Request, ...]
    sha256: str
    format: str
    lines: int
    bad: tuple[BadLine, ...]

    @property
    def longest(self) -> Request:
        """The request that needs the most cache tokens (the first of them)."""
        return max(self.requests, key=lambda request: request.total_tokens)


def read_trace(path: Path, format: str = "kvassay", limit: int | None = None) -> Trace:  # noqa: A002 - the plan's own word
    """The first `limit` requests of `path` (all when None), in their order.

    Raises BadInput for an unknown format, an unreadable file, more than 1 % bad lines among those read, arrivals that go
    backwards, or no request at all; bad lines are named by number.
    """
    if format not in READERS:
        raise BadInput(f"trace format {format!r}: unknown; known: {', '.join(READERS)}")
    parse = READERS[format]
    requests: list[Request] = []
    bad: list[BadLine] = []
    read = 0
    for number, line in numbered_lines(path):
        if limit is not None and len(requests) >= limit:
            break
        read = number
        try:
            request = parse(line) if line is not None else _too_long()
        except BadInput as error:
            bad.append(BadLine(number, str(error)))
            continue
        if requests and request.arrival_s < requests[-1].arrival_s:
            raise BadInput(
                f"{path}, line {number}: arrives at {request.arrival_s} s, before the request above it "
                f"({requests[-1].arrival_s} s); sort the trace by arrival"
            )
        requests.append(request)
    if len(bad) > MAX_BAD_FRACTION * read:
        raise BadInput(f"{path}: {len(bad)} of {read} lines cannot be used, more than 1 %: {named(bad)}")
    if not requests:
        raise BadInput(f"{path}: holds no request; give a trace with at least one line")
    return Trace(requests=tuple(requests), sha256=file_digest(path), format=format, lines=read, bad=tuple(bad))


def named(bad: list[BadLine]) -> str:
    """The first few bad lines by number, with why."""
    shown = "; ".join(f"line {each.number}: {each.why}" for each in bad[:NAMED_BAD_LINES])
    return shown + (f"; and {len(bad) - NAMED_BAD_LINES} more" if len(bad) > NAMED_BAD_LINES else "")


def _too_long() -> Request:
    raise BadInput("longer than 1 MiB")
