"""Server-sent events out of raw bytes that need not be friendly."""

from __future__ import annotations

from collections.abc import Iterator


class OversizedEventError(ValueError):
    """One line, or one event, is larger than the limit."""


class EventReader:
    """Feed bytes as they arrive; get the data of each complete event. CR LF, comments and several data lines are understood."""

    def __init__(self, max_event_bytes: int) -> None:
        self._max = max_event_bytes
        self._line = bytearray()
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Raises OversizedEventError."""
        *complete, rest = piece.split(b"\n")
        for part in complete:
            self._line += part
            yield from self._end_line()
        self._line += rest
        self._check(len(self._line))

    def rest(self) -> Iterator[bytes]:
        """An event that the end of the stream completes."""
        yield from self._end_line()
        yield from self._end_event()

    def _end_line(self) -> Iterator[bytes]:
        line = bytes(self._line).removesuffix(b"\r")
        self._line.clear()
        if not line:
            yield from self._end_event()
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
            self._data_bytes += len(line)
            self._check(self._data_bytes)

    def _end_event(self) -> Iterator[bytes]:
        data, self._data, self._data_bytes = self._data, [], 0
        if data:
            yield b"\n".join(data)

    def _check(self, size: int) -> None:
        if size > self._max:
            raise OversizedEventError(f"an event is larger than {self._max} bytes")
