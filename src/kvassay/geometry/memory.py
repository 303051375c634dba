"""How many requests fit beside the weights, natively and in each uniform format, and how long one may be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from kvassay.errors import BadInput
from kvassay.formats import FORMATS, NATIVE, law
from kvassay.geometry.keys import MOST_TOKENS, shown
from kvassay.geometry.price import allocated_row_bytes, request_parts, zip_owners
from kvassay.geometry.storage import PLAIN_STORAGE, Storage, indexer_scale_bytes
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry, Layer

MOST_BYTES = 2**60
UNITS = {"B": 1} | {f"{big}B": 1000**power for power, big in enumerate("KMGT", 1)} | {f"{big}iB": 1024**power for power, big in enumerate("KMGT", 1)}  # fmt: skip
BY_LOWER_CASE = {name.lower(): size for name, size in UNITS.items()}
SIZE = re.compile(r"([0-9]{1,20})(?:\.([0-9]{1,20}))? ?([A-Za-z]{1,3})")
# Two decimals are what engines print, and what "80GiB" is as good as.
LEAST_DECIMALS = 2


@dataclass(frozen=True)
class Size:
    """Bytes as written. rounding_bytes: how far the exact figure may be from it."""

    bytes: int
    rounding_bytes: float


@dataclass(frozen=True)
class Capacity:
    """One uniform format. requests: whole requests of the asked context that fit, None when one holds no bytes at all.

    longest_context_tokens: tokens of the longest single request that fits, at most the model's own longest; None when nothing bounds it.
    """

    format: str
    bytes_per_request: int
    requests: int | None
    longest_context_tokens: int | None


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
    return Size(int(exact), max(0.5, unit / 10 ** max(LEAST_DECIMALS, len(decimals)) / 2) if unit > 1 else 0.5)


def parse_bytes(text: str, option: str) -> int:
    """`text` as `parse_size` reads it, in whole bytes. Raises BadInput naming `option`."""
    return parse_size(text, option).bytes


def capacity(
    geometry: Geometry,
    context_tokens: int,
    memory_bytes: int,
    weights_bytes: int,
    storage: Storage = PLAIN_STORAGE,
    formats: Sequence[str] = tuple(FORMATS),
) -> tuple[Capacity, ...]:
    """What fits into `memory_bytes` − `weights_bytes`: native first, then each of `formats` that is legal for K and V of every owner.

    For tensor parallelism give the geometry and the bytes of one rank. Raises BadInput when the weights leave nothing.
    """
    free = memory_bytes - weights_bytes
    if free <= 0:
        raise BadInput(f"--weights: {weights_bytes:,} bytes of weights leave nothing of {memory_bytes:,} bytes (--memory) for a cache")
    names = [NATIVE, *(name for name in formats if geometry.owners and name != NATIVE and _is_legal(geometry, name))]
    return tuple(_capacity(geometry, name, context_tokens, free, storage) for name in names)


def bytes_of_tokens(geometry: Geometry, pairs: Sequence[Pair], storage: Storage = PLAIN_STORAGE) -> Callable[[int], int]:
    """`total_bytes` as a function of the context, for asking it many times: equal layers are priced once. It never falls."""
    alike = Counter((layer.model_copy(update={"index": 0, "module": ""}), pair) for layer, pair in zip_owners(geometry, pairs))
    per_row: Counter[Layer] = Counter()
    for (layer, pair), many in alike.items():
        row = allocated_row_bytes(layer, pair, geometry.native_dtype, storage) + layer.indexer_dim + indexer_scale_bytes(layer)
        # What decides how many rows a layer has, and nothing else.
        per_row[layer.model_copy(update={"kind": "full", "kv_heads": 0, "k_dim": 0, "v_dim": 0, "indexer_dim": 0})] += many * row
    fixed = sum(state.bytes for layer in geometry.layers for state in layer.states)
    return lambda tokens: fixed + sum(storage.allocated_rows(layer, tokens) * row for layer, row in per_row.items())


def longest_context(geometry: Geometry, pairs: Sequence[Pair], free_bytes: int, storage: Storage = PLAIN_STORAGE) -> int | None:
    """Tokens of the longest request of at most `free_bytes`, 0 when none fits, at most the model's own longest context.

    None when the model names no longest context and none is too long for the memory.
    """
    total = bytes_of_tokens(geometry, pairs, storage)
    most = geometry.max_position_embeddings or MOST_TOKENS
    if total(most) <= free_bytes:
        return geometry.max_position_embeddings or None
    fits, too_long = 0, most
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        fits, too_long = (middle, too_long) if total(middle) <= free_bytes else (fits, middle)
    return fits


def _capacity(geometry: Geometry, name: str, context_tokens: int, free_bytes: int, storage: Storage) -> Capacity:
    pairs = (Pair(k=name, v=name),) * len(geometry.owners)
    parts = request_parts(geometry, pairs, context_tokens, storage)
    held = parts.payload + parts.scales + parts.padding
    return Capacity(name, held, free_bytes // held if held else None, longest_context(geometry, pairs, free_bytes, storage))


def _is_legal(geometry: Geometry, name: str) -> bool:
    its = law(name, geometry.native_dtype)
    return all(not its.why_illegal(dim) for layer in geometry.owners for dim in (layer.k_dim, layer.v_dim) if dim)
