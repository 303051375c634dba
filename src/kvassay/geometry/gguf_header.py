"""A bounded reader of GGUF metadata: never the tensors, never more than the header.

Layout: GGUF specification, versions 2 and 3, little-endian. Every count and length in the file is checked before it is believed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvassay.errors import BadInput

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_HEADER_BYTES = 64 * 2**20
MOST_KEYS = 65_536
MOST_KEY_BYTES = 1024
MOST_KEPT_BYTES = 4096
MOST_KEPT_ITEMS = 4096
MOST_KEPT_ITEMS_IN_ALL = 2**18
MOST_ARRAY_ITEMS = 2**24
FIRST_READ_BYTES = 4 * 2**20

# Type number to struct code. 8 is text, 9 is an array.
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
TEXT, ARRAY = 8, 9


@dataclass(frozen=True)
class Unkept:
    """A value that is longer than anything geometry reads; `items` is the length of an array, or of a text in bytes."""

    items: int


@dataclass(frozen=True)
class Header:
    """Metadata of a GGUF file by key. Long texts and arrays are `Unkept`."""

    version: int
    tensor_count: int
    values: dict[str, Any]


class _ShortError(Exception):
    """The bytes at hand end before the header does."""


def read_header(path: Path) -> Header:
    """The metadata of a GGUF file. Raises BadInput for a torn, oversized, big-endian or malformed header."""
    try:
        size = path.stat().st_size
        with path.open("rb") as handle:
            data = b""
            # Most headers fit the first read; a longer one is parsed again from a doubled piece.
            want = FIRST_READ_BYTES
            while True:
                data += handle.read(want - len(data))
                try:
                    return _Parser(data, str(path)).header()
                except _ShortError:
                    if len(data) >= size or len(data) < want:
                        raise BadInput(f"{path}: torn GGUF header, the file ends inside it ({len(data):,} bytes); fetch it again") from None
                if want >= MOST_HEADER_BYTES:
                    raise BadInput(f"{path}: GGUF header larger than {MOST_HEADER_BYTES:,} bytes")
                want *= 2
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from error


class _Parser:
    """Walks over `data`; `at` is the next byte."""

    def __init__(self, data: bytes, where: str) -> None:
        self.data, self.where, self.at = data, where, 0
        self.kept_items = 0

    def header(self) -> Header:
        if self._take(4) != MAGIC:
            raise BadInput(f"{self.where}: does not begin with GGUF")
        version = self._number("<I")
        if version not in VERSIONS:
            raise BadInput(f"{self.where}: GGUF version {version}, this build reads {VERSIONS[0]} and {VERSIONS[1]}, little-endian")
        tensor_count, key_count = self._number("<Q"), self._number("<Q")
        if key_count > MOST_KEYS:
            raise BadInput(f"{self.where}: GGUF header claims {key_count:,} keys, more than {MOST_KEYS:,}")
        values: dict[str, Any] = {}
        for _ in range(key_count):
            key = self._key()
            if key in values:
                raise BadInput(f"{self.where}: GGUF key {key} stands twice")
            values[key] = self._value(self._number("<I"), key)
        return Header(version, tensor_count, values)

    def _value(self, kind: int, key: str) -> Any:
        if kind == TEXT:
            return self._text(key)
        if kind == ARRAY:
            return self._array(key)
        if kind not in SCALARS:
            raise BadInput(f"{self.where}: GGUF key {key}: unknown value type {kind}")
        return self._number(SCALARS[kind])

    def _array(self, key: str) -> Any:
        kind, count = self._number("<I"), self._number("<Q")
        if count > MOST_ARRAY_ITEMS:
            raise BadInput(f"{self.where}: GGUF key {key}: array of {count:,} items, more than {MOST_ARRAY_ITEMS:,}")
        if kind == TEXT:
            self._skip_texts(count, key)
            return Unkept(count)
        if kind not in SCALARS:
            raise BadInput(f"{self.where}: GGUF key {key}: array of value type {kind}, which no model of today has")
        code = SCALARS[kind]
        raw = self._take(count * struct.calcsize(code))
        if count > MOST_KEPT_ITEMS or self.kept_items + count > MOST_KEPT_ITEMS_IN_ALL:
            return Unkept(count)
        self.kept_items += count
        return [each[0] for each in struct.iter_unpack(code, raw)]

    def _skip_texts(self, count: int, key: str) -> None:
        data, at, size, length_of = self.data, self.at, len(self.data), struct.Struct("<Q").unpack_from
        for _ in range(count):
            if at + 8 > size:
                raise _ShortError
            at += 8 + self._sane(length_of(data, at)[0], key)
        if at > size:
            raise _ShortError
        self.at = at

    def _key(self) -> str:
        length = self._number("<Q")
        if length > MOST_KEY_BYTES:
            raise BadInput(f"{self.where}: GGUF key of {length:,} bytes, more than {MOST_KEY_BYTES:,}")
        return self._decoded(self._take(length), "a key")

    def _text(self, key: str) -> str | Unkept:
        length = self._sane(self._number("<Q"), key)
        raw = self._take(length)
        return self._decoded(raw, key) if length <= MOST_KEPT_BYTES else Unkept(length)

    def _decoded(self, raw: bytes, key: str) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise BadInput(f"{self.where}: GGUF {key}: not UTF-8 text ({error.reason})") from error

    def _sane(self, length: int, key: str) -> int:
        if length > MOST_HEADER_BYTES:
            raise BadInput(f"{self.where}: GGUF key {key}: text of {length:,} bytes, more than a header may have")
        return length

    def _number(self, code: str) -> Any:
        return struct.unpack(code, self._take(struct.calcsize(code)))[0]

    def _take(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise _ShortError
        taken = self.data[self.at : self.at + count]
        self.at += count
        return taken
