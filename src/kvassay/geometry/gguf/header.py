"""A bounded reader of GGUF metadata: never the tensors, never more than the header.

Layout: GGUF specification, versions 2 and 3, little-endian. Every count and length in the file is checked before it is believed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from kvassay.errors import BadInput

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_HEADER_BYTES = 64 * 2**20
MOST_KEYS = 16_384
MOST_KEY_BYTES = 256
MOST_KEPT_BYTES = 4096
MOST_KEPT_ITEMS = 4096
MOST_ARRAY_ITEMS = 2**24
# In the whole file. A byte of UTF-8 takes up to four in memory, a number in a list about 36.
MOST_KEY_BYTES_IN_ALL = MOST_KEPT_BYTES_IN_ALL = 4 * 2**20
MOST_KEPT_ITEMS_IN_ALL = 2**18
# Each text of a list is one step; the largest vocabularies have half a million tokens and as many merges.
MOST_LISTED_TEXTS_IN_ALL = 2**21
READ_BYTES = 4 * 2**20

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


def read_header(path: Path) -> Header:
    """The metadata of a GGUF file. Raises BadInput for a torn, oversized, big-endian or malformed header."""
    try:
        with path.open("rb") as handle:
            return _Parser(handle, str(path)).header()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from error


class _Parser:
    """Walks over `data`, which grows from the file as it is needed; `at` is the next byte."""

    def __init__(self, handle: BinaryIO, where: str) -> None:
        self.handle, self.where = handle, where
        self.data, self.at = bytearray(), 0
        self.key_bytes = self.kept_bytes = self.kept_items = self.listed_texts = 0

    def header(self) -> Header:
        if self._take(4) != MAGIC:
            raise BadInput(f"{self.where}: does not begin with GGUF")
        version = self._number("<I")
        if version not in VERSIONS:
            raise BadInput(f"{self.where}: {_why_not(version)}")
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
        if count > MOST_KEPT_ITEMS or self.kept_items + count > MOST_KEPT_ITEMS_IN_ALL:
            self._skip(count * struct.calcsize(code))
            return Unkept(count)
        self.kept_items += count
        return [each[0] for each in struct.iter_unpack(code, self._take(count * struct.calcsize(code)))]

    def _skip_texts(self, count: int, key: str) -> None:
        self.listed_texts += count
        if self.listed_texts > MOST_LISTED_TEXTS_IN_ALL:
            raise BadInput(f"{self.where}: GGUF key {key}: {count:,} texts, more in all than {MOST_LISTED_TEXTS_IN_ALL:,}")
        at, data, length_of = self.at, self.data, struct.Struct("<Q").unpack_from
        for _ in range(count):
            if at + 8 > len(data):
                self._read_to(at + 8)
            (length,) = length_of(data, at)
            if length > MOST_HEADER_BYTES:
                self._sane(length, key)
            at += 8 + length
        self._skip(at - self.at)

    def _key(self) -> str:
        length = self._number("<Q")
        if length > MOST_KEY_BYTES:
            raise BadInput(f"{self.where}: GGUF key of {length:,} bytes, more than {MOST_KEY_BYTES:,}")
        self.key_bytes += length
        if self.key_bytes > MOST_KEY_BYTES_IN_ALL:
            raise BadInput(f"{self.where}: GGUF keys of more than {MOST_KEY_BYTES_IN_ALL:,} bytes in all")
        key = self._decoded(self._take(length), "a key")
        if not key.isprintable():
            raise BadInput(f"{self.where}: GGUF key {key[:40]!r}: not a name, so the header is damaged; fetch it again")
        return key

    def _text(self, key: str) -> str | Unkept:
        length = self._sane(self._number("<Q"), key)
        if length > MOST_KEPT_BYTES or self.kept_bytes + length > MOST_KEPT_BYTES_IN_ALL:
            self._skip(length)
            return Unkept(length)
        self.kept_bytes += length
        return self._decoded(self._take(length), key)

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
        start = self.at
        self._skip(count)
        return bytes(self.data[start : self.at])

    def _skip(self, count: int) -> None:
        self._read_to(self.at + count)
        self.at += count

    def _read_to(self, end: int) -> None:
        """Have `end` bytes at hand. Raises BadInput when the file has fewer, or a header may not have so many."""
        if end > MOST_HEADER_BYTES:
            raise BadInput(f"{self.where}: GGUF header larger than {MOST_HEADER_BYTES:,} bytes")
        while len(self.data) < end:
            more = self.handle.read(READ_BYTES)
            if not more:
                raise BadInput(f"{self.where}: torn GGUF header, the file ends inside it ({len(self.data):,} bytes); fetch it again")
            self.data += more


def _why_not(version: int) -> str:
    """Why a file of this version number is not read."""
    if int.from_bytes(version.to_bytes(4, "little"), "big") in (1, *VERSIONS):
        return "big-endian GGUF, this build reads little-endian files; convert it with gguf_convert_endian"
    if version == 1:
        return "GGUF version 1, whose lengths have half the width; convert the model again, this build reads versions 2 and 3"
    return f"GGUF version {version}, this build reads {VERSIONS[0]} and {VERSIONS[1]}, little-endian"
