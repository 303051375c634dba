"""Sizes as people and engines write them: a number and its unit, decimal and binary units apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from kvassay.errors import BadInput
from kvassay.geometry.configuration.keys import shown

MOST_BYTES = 2**60
PREFIXES = tuple(enumerate("KMGT", 1))
UNITS = {"B": 1} | {f"{big}B": 1000**power for power, big in PREFIXES} | {f"{big}iB": 1024**power for power, big in PREFIXES}
BY_LOWER_CASE = {name.lower(): size for name, size in UNITS.items()}
NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")
SIZE = re.compile(r"([0-9]{1,20})(?:\.([0-9]{1,20}))? ?([A-Za-z]{1,3})")
# Two decimals are what engines print, and what "80GiB" is as good as.
LEAST_DECIMALS = 2


@dataclass(frozen=True)
class Size:
    """Bytes as written. rounding_bytes: how far the exact figure may be from it."""

    bytes: int
    rounding_bytes: float


def parse_size(text: str, where: str) -> Size:
    """`text` such as "80GiB", "1.5 TB" or "512MiB": decimal and binary units apart. Raises BadInput naming `where`."""
    written = SIZE.fullmatch(text.strip()) if len(text) <= 64 else None
    unit = BY_LOWER_CASE.get(written[3].lower()) if written else None
    if written is None or unit is None:
        raise BadInput(f"{where} {shown(text)}: not a size; say a number and one of {', '.join(UNITS)}, as 80GiB")
    decimals = written[2] or ""
    exact = Fraction(int(written[1] + decimals), 10 ** len(decimals)) * unit
    if exact > MOST_BYTES:
        raise BadInput(f"{where} {shown(text)}: more than any machine has ({MOST_BYTES // 2**40:,} TiB)")
    return Size(int(exact), max(0.5, unit / 10 ** max(LEAST_DECIMALS, len(decimals)) / 2))


def parse_bytes(text: str, option: str) -> int:
    """`text` as `parse_size` reads it, in whole bytes. Raises BadInput naming `option`."""
    return parse_size(text, option).bytes
