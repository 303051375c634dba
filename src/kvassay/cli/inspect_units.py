"""Bytes and tables for people."""

from __future__ import annotations

from collections.abc import Sequence

UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def sized(count: int) -> str:
    """Bytes in the largest unit that leaves at least 1, two decimals."""
    for unit, name in UNITS:
        if count >= unit:
            return f"{count / unit:,.2f} {name}"
    return f"{count:,} bytes"


def columns(head: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    """Lines of a table, each column as wide as its widest cell."""
    cells = [head, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return [indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
