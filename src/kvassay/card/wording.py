"""Figures as short text, the same everywhere a reader meets them: card, terminal and report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import floor, log10

from kvassay.records.base import Interval
from kvassay.records.frontier import Pair

NONE = "–"


def significant(value: float, digits: int = 3) -> str:
    """`digits` significant digits without an exponent down to 0.0001, with one below."""
    if value == 0:
        return "0"
    if abs(value) < 1e-4:
        return f"{value:.{digits - 1}e}".replace("e-0", "e-")
    decimals = max(0, digits - 1 - floor(log10(abs(value))))
    return f"{value:,.{decimals}f}"


def nats(value: float | None) -> str:
    return NONE if value is None else f"{significant(value, 2)} nats"


def interval(value: Interval, scale: float = 1.0, digits: int = 2) -> str:
    return f"[{significant(value.low * scale, digits)}, {significant(value.high * scale, digits)}]"


def milliseconds(value: float | None) -> str:
    return NONE if value is None else f"{significant(value, 3)} ms"


def byte_count(value: float | None) -> str:
    """Bytes in the largest binary unit that leaves at least 1; exact below 10 KiB."""
    if value is None:
        return NONE
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= (10 * size if unit == "KiB" else size):
            return f"{value / size:,.{2 if unit == 'GiB' else 1}f} {unit}"
    return f"{value:,.0f} B"


def whole_bytes(value: float) -> str:
    return f"{value:,.0f} B"


def percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def points(fraction: float) -> str:
    """A fraction of items as percentage points: "2 points"."""
    value = f"{100 * fraction:.3g}"
    return f"{value} point" if value == "1" else f"{value} points"


def signed_points(fraction: float) -> str:
    return f"{100 * fraction:+.1f}".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")


def ratio(value: float) -> str:
    return f"{value:.2f}x"


def count(number: int, noun: str) -> str:
    """ "1 layer", "30 layers"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def ranges(numbers: Iterable[int]) -> str:
    """ "0–3, 7, 9–10"."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in runs)


def format_counts(names: Sequence[str]) -> str:
    """ "fp8_e4m3 ×18, nvfp4 ×12", most used first; the name alone when all are the same."""
    distinct = sorted(set(names), key=lambda name: (-names.count(name), name))
    if len(distinct) == 1:
        return distinct[0]
    return ", ".join(f"{name} ×{names.count(name)}" for name in distinct)


def map_in_words(pairs: Sequence[Pair]) -> str:
    """ "fp8_e4m3/nvfp4 in all layers" or "K fp8_e4m3 ×18, nvfp4 ×12; V nvfp4"."""
    if len(set(pairs)) == 1:
        k, v = pairs[0].k, pairs[0].v
        return f"{k} in all layers" if k == v else f"{k}/{v} in all layers"
    return f"K {format_counts([pair.k for pair in pairs])}; V {format_counts([pair.v for pair in pairs])}"


ABSOLUTE_PATH = re.compile(r"(?<![\w.:/\\-])(?:/[^\s/'\"]+)+/([^\s/'\"]+)|(?<!\w)[A-Za-z]:\\(?:[^\s\\'\"]+\\)*([^\s\\'\"]+)")


def without_paths(text: str) -> str:
    """`text` with every absolute path cut to its last part, because a card leaves the machine it was made on."""
    return ABSOLUTE_PATH.sub(lambda found: found.group(1) or found.group(2), text)
