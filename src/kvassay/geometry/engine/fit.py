"""Growing and fixed parts of a cache, from an engine's readings alone.

An engine divides its memory by what one request of its longest context takes, and prints the tokens of so many requests. Memory ÷
tokens is therefore growth + fixed ÷ max length: two max lengths tell the parts apart, one does not.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kvassay.errors import BadInput
from kvassay.geometry.engine.reading import Reading

# Engines round memory to 0.01 GiB and tokens to blocks, and pad pages: figures within 2 % are the same.
AGREEMENT = 0.02


@dataclass(frozen=True)
class Fit:
    """Bytes per token and per request as the readings have them, with how far each may be off by the rounding of what is printed.

    residual: the largest distance of a reading from these parts, as a share of it. by_division: the fixed part was not asked about.
    """

    growth_per_token: float
    fixed_per_request: float
    growth_rounding: float
    fixed_rounding: float
    residual: float
    by_division: bool


def solve(readings: Sequence[Reading]) -> Fit:
    """Growth and fixed parts from readings of at least two max lengths: least squares of memory ÷ tokens = growth + fixed ÷ max length.

    Each length counts by the square of its share of error, for what is printed is rounded by shares; two lengths are met exactly.
    Raises BadInput when a part comes out negative by more than rounding explains, or the lengths are too close to tell.
    """
    points = [_point(length, group) for length, group in by_length(readings).items() if length is not None]
    if len(points) < 2:
        raise BadInput(f"{readings[0].where if readings else 'readings'}: growth and fixed parts need readings of two max lengths")
    weights = [1 / y**2 for _, y, _ in points]
    whole = math.fsum(weights)
    x_mean = math.fsum(w * x for w, (x, _, _) in zip(weights, points, strict=True)) / whole
    y_mean = math.fsum(w * y for w, (_, y, _) in zip(weights, points, strict=True)) / whole
    scatter = math.fsum(w * (x - x_mean) ** 2 for w, (x, _, _) in zip(weights, points, strict=True))
    slopes = [w * (x - x_mean) / scatter for w, (x, _, _) in zip(weights, points, strict=True)]
    fixed = math.fsum(slope * (y - y_mean) for slope, (_, y, _) in zip(slopes, points, strict=True))
    growth = y_mean - fixed * x_mean
    fixed_rounding = math.fsum(abs(slope) * off for slope, (_, _, off) in zip(slopes, points, strict=True))
    growth_rounding = math.fsum(
        abs(w / whole - slope * x_mean) * off for w, slope, (_, _, off) in zip(weights, slopes, points, strict=True)
    )
    least = min(y for _, y, _ in points)
    between = f"{readings[0].where} to {readings[-1].where.rpartition(': ')[2]}"
    if growth_rounding > least:
        raise BadInput(f"{between}: the max lengths are too close to tell growth and fixed parts apart; take lengths a factor apart")
    if growth < -(growth_rounding + AGREEMENT * least):
        raise BadInput(
            f"{between}: bytes per token fall faster than max length rises, which no cache does; are these one model and memory?"
        )
    if fixed < -(fixed_rounding + AGREEMENT * least / max(x for x, _, _ in points)):
        raise BadInput(f"{between}: bytes per token rise with max length, which no cache does; are these one model and one cache format?")
    if fixed < 0:
        growth, fixed = _total(readings), 0.0
    elif growth < 0:
        growth, fixed = 0.0, y_mean / x_mean
    residual = max(abs((growth + fixed * x) / y - 1) for x, y, _ in points)
    return Fit(growth, fixed, growth_rounding, fixed_rounding, residual, by_division=False)


def divided(readings: Sequence[Reading]) -> Fit:
    """Memory ÷ tokens over all readings, for a cache that grows by the same bytes with every token."""
    growth = _total(readings)
    residual = max(abs(growth / reading.bytes_per_token - 1) for reading in readings)
    rounding = growth * max(reading.rounding for reading in readings)
    return Fit(growth, 0.0, rounding, 0.0, residual, by_division=True)


def _point(length: int, group: Sequence[Reading]) -> tuple[float, float, float]:
    """1 ÷ max length, bytes per token there, and how far those may be off."""
    per_token = _total(group)
    return 1 / length, per_token, per_token * max(reading.rounding for reading in group)


def by_length(readings: Sequence[Reading]) -> dict[int | None, list[Reading]]:
    """Readings by their max length, None where they say none."""
    groups: dict[int | None, list[Reading]] = defaultdict(list)
    for reading in readings:
        groups[reading.max_length].append(reading)
    return groups


def _total(readings: Sequence[Reading]) -> float:
    return sum(reading.memory_bytes for reading in readings) / sum(reading.tokens for reading in readings)
