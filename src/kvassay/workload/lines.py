"""Lines of an untrusted text file, with bounds on their length, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kvassay.errors import BadInput

MAX_LINE_BYTES = 1 << 20


def numbered_lines(path: Path, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes | None]]:
    """(line number from 1, line without its end). A line longer than `max_line_bytes` is skipped over and given as None.

    Raises BadInput when the file is missing, no regular file, or cannot be read.
    """
    if not path.is_file():
        raise BadInput(f"{path}: no such file; name a trace file in workload.trace")
    try:
        with path.open("rb") as handle:
            number = 0
            while line := handle.readline(max_line_bytes + 1):
                number += 1
                if len(line) <= max_line_bytes or line.endswith(b"\n"):
                    yield number, line.rstrip(b"\r\n")
                    continue
                while (rest := handle.readline(max_line_bytes)) and not rest.endswith(b"\n"):
                    pass
                yield number, None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from error
