"""What an engine's own figures say about its cache, held against the price of this model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kvassay.errors import BadInput
from kvassay.geometry.engine.alike import bytes_of_tokens
from kvassay.geometry.engine.fit import AGREEMENT, Fit, by_length, divided, solve
from kvassay.geometry.engine.reading import Reading
from kvassay.geometry.engine.reservation import reserve
from kvassay.geometry.price import allocated_growth_per_token, with_price
from kvassay.geometry.storage import PLAIN_STORAGE, Storage
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry

# Nearly all of a difference, as a share of its logarithm.
NEARLY_ALL = 0.9
MOST_LENGTHS = 256
# Engines print how many requests run at once with two decimals.
CONCURRENCY_ROUNDING = 0.005
# Max lengths closer than this tell nothing about fixed parts of a cache that should have none.
APART = 1.5

Regime = Literal["plain", "all_tokens", "windows", "states", "reservation", "neither"]
Cause = Literal["memory", "bytes_per_token", "both"]


@dataclass(frozen=True)
class Priced:
    """The price of this model under one regime, held against the readings.

    plain: every layer grows by every token. windows: windowed layers drop what they no longer read. all_tokens: they do not.
    states: growth beside recurrent states or cross caches. reservation: what a paged engine sets aside.
    distance: the largest of a reading's bytes per token from the price, as a share; None where no reading says a max length.
    """

    regime: Regime
    growth_per_token: int
    fixed_per_request: int
    distance: float | None
    agrees: bool


@dataclass(frozen=True)
class Difference:
    """Two readings at one max length whose tokens differ, and why. tokens_ratio = memory_ratio ÷ bytes_per_token_ratio."""

    more: Reading
    less: Reading
    tokens_ratio: float
    memory_ratio: float
    bytes_per_token_ratio: float
    cause: Cause


@dataclass(frozen=True)
class Comparison:
    """Everything the readings say of one model. fit: None where only a reservation explains readings of one max length.

    spread, memory_spread: how far bytes per token and memory differ at one max length, as a share of the least.
    """

    readings: tuple[Reading, ...]
    fit: Fit | None
    spread: float
    memory_spread: float
    prices: tuple[Priced, ...]
    difference: Difference | None
    notes: tuple[str, ...]

    @property
    def apparent(self) -> tuple[float, ...]:
        """Memory ÷ tokens of every reading."""
        return tuple(reading.bytes_per_token for reading in self.readings)

    @property
    def regimes(self) -> tuple[Regime, ...]:
        """The regimes that the readings agree with, the nearest first."""
        return tuple(each.regime for each in sorted(self.prices, key=lambda each: each.distance or 0.0) if each.agrees)

    @property
    def regime(self) -> Regime:
        """The nearest of them, or "neither"."""
        return self.regimes[0] if self.regimes else "neither"

    @property
    def nearest(self) -> Priced:
        """The price that the ratios are of: of the regime that agrees, or else the model's own."""
        return next((each for each in self.prices if each.regime == self.regime), self.prices[0])

    @property
    def ratio_growth(self) -> float | None:
        """Growth of the readings ÷ of the nearest price."""
        return self.fit.growth_per_token / self.nearest.growth_per_token if self.fit and self.nearest.growth_per_token else None

    @property
    def ratio_fixed(self) -> float | None:
        """Fixed part of the readings ÷ of the nearest price."""
        return self.fit.fixed_per_request / self.nearest.fixed_per_request if self.fit and self.nearest.fixed_per_request else None


def compare(
    readings: Sequence[Reading],
    geometry: Geometry,
    pairs: Sequence[Pair],
    storage: Storage = PLAIN_STORAGE,
    chunk_tokens: int | None = None,
) -> Comparison:
    """The readings of one model, solved and held against its price; `pairs` in the order of the owners.

    For tensor parallelism give the geometry of one rank. With chunk_tokens what an engine reserves in blocks of `storage` is compared too.
    Raises BadInput when the readings cannot be divided, or contradict each other.
    """
    if not readings:
        raise BadInput("no reading of memory and tokens")
    lengths = {reading.max_length for reading in readings if reading.max_length is not None}
    if len(lengths) > MOST_LENGTHS:
        raise BadInput(f"{readings[0].where}: {len(lengths):,} different max lengths from here on, more than {MOST_LENGTHS}")
    geometry = with_price(geometry, pairs, geometry.context_tokens, storage)
    windows = [layer.window for layer in geometry.owners if layer.window is not None and storage.windows == "window"]
    never_full = bool(lengths) and all(reading.max_length is not None for reading in readings) and max(lengths) <= min(windows, default=0)
    plain = not geometry.bytes.fixed_per_request and (never_full or not windows)
    own: Regime = "windows" if windows else "plain" if plain else "states"
    prices = [_priced(own, readings, geometry, pairs, storage)]
    if windows:
        prices.append(_priced("all_tokens", readings, geometry, pairs, replace(storage, windows="full")))
    if chunk_tokens is not None and (windows or not plain):
        prices.append(_reserved(readings, geometry, pairs, storage, chunk_tokens))

    fit: Fit | None = None
    if len(lengths) >= 2 and not (plain and max(lengths) < APART * min(lengths)):
        fit = solve(readings)
    elif plain or any(each.regime == "all_tokens" and not each.fixed_per_request and each.agrees for each in prices):
        fit = divided(readings)
    elif not any(each.regime == "reservation" and each.agrees for each in prices):
        raise BadInput(_why_not(readings, geometry))
    grouped = [list(readings)] if plain else list(by_length(readings).values())
    return Comparison(
        readings=tuple(readings),
        fit=fit,
        spread=max(_spread([reading.bytes_per_token for reading in group]) for group in grouped),
        memory_spread=max(_spread([reading.memory_bytes for reading in group]) for group in grouped),
        prices=tuple(prices),
        difference=_difference(grouped),
        notes=_notes(readings),
    )


def _priced(regime: Regime, readings: Sequence[Reading], geometry: Geometry, pairs: Sequence[Pair], storage: Storage) -> Priced:
    growth, fixed = _parts(geometry, pairs, storage)
    # Without anything fixed the price of a token is the same at any max length, even at one that the engine did not say.
    distance = _distance(readings, bytes_of_tokens(geometry, pairs, storage), None if fixed else growth)
    return Priced(regime, growth, fixed, distance, _agrees(distance, readings))


def _reserved(readings: Sequence[Reading], geometry: Geometry, pairs: Sequence[Pair], storage: Storage, chunk_tokens: int) -> Priced:
    def total(tokens: int) -> int:
        return reserve(geometry, pairs, tokens, chunk_tokens, storage).bytes_per_request

    growth, _ = _parts(geometry, pairs, storage)
    here = total(geometry.context_tokens)
    # An engine that was given no max length takes the model's own, which is what the geometry is priced at unless asked otherwise.
    distance = _distance(readings, total, here / geometry.context_tokens)
    return Priced("reservation", growth, max(here - growth * geometry.context_tokens, 0), distance, _agrees(distance, readings))


def _parts(geometry: Geometry, pairs: Sequence[Pair], storage: Storage) -> tuple[int, int]:
    """Growth per token, indexers and padded heads included, and what is fixed once windows are full."""
    counted = with_price(geometry, pairs, geometry.context_tokens, storage).bytes
    growth = allocated_growth_per_token(geometry, pairs, storage) + counted.indexer_per_token
    return growth, counted.window_bytes + counted.fixed_per_request


def _agrees(distance: float | None, readings: Sequence[Reading]) -> bool:
    return distance is not None and distance <= AGREEMENT + max(reading.rounding for reading in readings)


def _distance(readings: Sequence[Reading], total: Callable[[int], int], anywhere: float | None) -> float | None:
    """The largest distance of bytes per token from the price, over readings that can be held against it."""
    per_token = {length: total(length) / length for length in {reading.max_length for reading in readings} if length is not None}
    distances = [
        abs(reading.bytes_per_token / its - 1)
        for reading in readings
        if (its := anywhere if reading.max_length is None else per_token[reading.max_length])
    ]
    return max(distances, default=None)


def _difference(groups: Sequence[list[Reading]]) -> Difference | None:
    """The largest difference in tokens at one max length, split into what memory and what bytes per token make of it."""
    extremes = [(max(group, key=lambda it: it.tokens), min(group, key=lambda it: it.tokens)) for group in groups]
    more, less = max(extremes, key=lambda pair: pair[0].tokens / pair[1].tokens)
    tokens_ratio, memory_ratio = more.tokens / less.tokens, more.memory_bytes / less.memory_bytes
    if tokens_ratio <= 1 + AGREEMENT:
        return None
    share = math.log(memory_ratio) / math.log(tokens_ratio)
    cause: Cause = "memory" if share >= NEARLY_ALL else "bytes_per_token" if share <= 1 - NEARLY_ALL else "both"
    return Difference(more, less, tokens_ratio, memory_ratio, memory_ratio / tokens_ratio, cause)


def _notes(readings: Sequence[Reading]) -> tuple[str, ...]:
    """What in the readings speaks against their own arithmetic, once."""
    for reading in readings:
        if reading.concurrency and reading.max_length:
            served = reading.concurrency * reading.max_length
            if abs(served / reading.tokens - 1) > AGREEMENT + CONCURRENCY_ROUNDING / reading.concurrency:
                return (
                    f"{reading.where}: {reading.concurrency:g} requests of {reading.max_length:,} tokens are not the {reading.tokens:,} "
                    "tokens of the same log: this engine counts its tokens otherwise, by blocks",
                )
    return ()


def _why_not(readings: Sequence[Reading], geometry: Geometry) -> str:
    held = [name for name, there in (("windows", geometry.bytes.window_bytes), ("fixed parts", geometry.bytes.fixed_per_request)) if there]
    many = "one reading" if len(readings) == 1 else f"{len(readings):,} readings without two max lengths"
    return (
        f"{readings[0].where}: {many} of a hybrid cannot be divided: {geometry.model_type} has {' and '.join(held)} beside what grows, and "
        f"{readings[0].bytes_per_token:,.0f} bytes per token mix them; add a reading of the same engine at another max length, and say both"
    )


def _spread(values: Sequence[float]) -> float:
    return max(values) / min(values) - 1
