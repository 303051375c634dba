"""Why an engine ended, from the tail of its log and its exit code."""

from __future__ import annotations

import re
import signal
from pathlib import Path

TAIL_BYTES = 64 * 2**10
MAX_REASON_CHARS = 300
PORT_IN_USE = "port in use"

# "(EngineCore_0 pid=12) ERROR 11-30 12:00:00 [core.py:700] " and "2026-11-30 12:00:00,123 ERROR ": who and when, in front of what.
_PREFIX = re.compile(r"^(\([^)]{0,80}\)\s*)?([\d\-:,. T]{0,40}(ERROR|CRITICAL)[\d\-:,. T]{1,40}(\[[^\]]{0,80}\]:?\s*)?)?")
_EXCEPTION = re.compile(r"^(error|fatal):\s|^([A-Za-z_][\w.]{0,120}(Error|Exception|Interrupt|Exit|Input|Artifact|Fit))(:\s|$)")
_IN_USE = re.compile(r"address already in use|\[Errno 98\]|port \d+ .{0,40}in use", re.IGNORECASE)
# vLLM's outer process ends with a line that only points to the real one above it.
_POINTER = re.compile(r"see root cause above", re.IGNORECASE)


def tail(log: Path, start: int = 0) -> str:
    """The end of the log, from byte `start` on at the earliest; empty when there is none."""
    try:
        with log.open("rb") as handle:
            size = handle.seek(0, 2)
            handle.seek(max(start, size - TAIL_BYTES))
            return handle.read(TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""


def reason(text: str, exit_code: int | None) -> str:
    """One line: port in use, else the last exception, else the last line, and the signal or code it ended with.

    An exception in the log of an engine that a signal ended may be an old one that was survived, so there the last line speaks.
    """
    ended = _ended(exit_code)
    lines = [line for line in (_bare(line) for line in text.splitlines()) if line]
    if any(_IN_USE.search(line) for line in lines):
        said = PORT_IN_USE
    else:
        killed = exit_code is not None and exit_code < 0
        exceptions = [] if killed else [line for line in lines if _EXCEPTION.match(line) and not _POINTER.search(line)]
        said = (exceptions or lines or ["the log is empty"])[-1]
    return f"{said[:MAX_REASON_CHARS]}{ended}"


def _ended(exit_code: int | None) -> str:
    if exit_code is None:
        return ""
    if exit_code >= 0:
        return f" (exit code {exit_code})"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    hint = ", perhaps out of memory" if name == "SIGKILL" else ""
    return f" (killed by {name}{hint})"


def _bare(line: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in line[:2000])
    return _PREFIX.sub("", printable).strip()
