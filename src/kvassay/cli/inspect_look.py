"""What `kvassay inspect` was asked, and everything it found out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kvassay.errors import BadInput
from kvassay.formats import FORMATS, NATIVE, law
from kvassay.geometry.config import read_geometry
from kvassay.geometry.engine.alike import bytes_of_tokens
from kvassay.geometry.engine.grouping import Grouping, grouping_trade_off, kind_counts, smallest_grouping
from kvassay.geometry.engine.memory import Capacity, capacity, parse_bytes
from kvassay.geometry.engine.ranks import per_rank
from kvassay.geometry.engine.reservation import HybridFloor, Reservation, hybrid_floor, reserve
from kvassay.geometry.layouts.draft import draft_of
from kvassay.geometry.layouts.layout import Choice
from kvassay.geometry.price import native_pairs, with_price
from kvassay.geometry.storage import Storage
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Draft, Geometry, Layer

if TYPE_CHECKING:
    from kvassay.geometry.engine.readings import Comparison


@dataclass(frozen=True)
class Look:
    """The question: a model, one kind of request, formats, and how the engine lays the cache out."""

    model: str
    context_tokens: int | None
    requests: int
    ranks: int | None
    k: str
    v: str
    kv_map: Path | None
    storage: Storage
    block_tokens: int | None
    chunk_tokens: int | None
    choice: Choice
    draft: str | None
    memory: str | None
    weights: str | None
    from_logs: Path | None


@dataclass(frozen=True)
class Seen:
    """The answer. geometry: priced with `pairs`, one per owner. rank: what each rank holds, priced alike.

    native_bytes: `geometry.total_bytes` had every format been native. reservation: with --block and --chunk; floor: with --block, of a
    hybrid; groupings: with --block, of a model with several kinds of cache. capacity, chosen_requests (in `pairs`, None where these are
    native) and readings are of one rank where there are ranks.
    """

    asked: Look
    geometry: Geometry
    pairs: tuple[Pair, ...]
    rank: Geometry | None
    native_bytes: int
    reservation: Reservation | None
    rank_reservation: Reservation | None
    floor: HybridFloor | None
    groupings: tuple[Grouping, ...]
    capacity: Capacity | None
    chosen_requests: int | None
    readings: Comparison | None


def look(asked: Look) -> Seen:
    """Read, price, and answer what was asked. Raises BadInput."""
    read = read_geometry(asked.model, asked.context_tokens, asked.choice)
    if asked.draft is not None:
        read = read.model_copy(update={"draft": _draft(asked, read)})
    pairs = _chosen_pairs(asked, read)
    _refuse_expanded_v(asked, read, pairs)
    geometry = with_price(read, pairs, read.context_tokens, asked.storage)
    rank = per_rank(geometry, pairs, asked.ranks, asked.storage) if asked.ranks else None
    held = rank or geometry
    counts = kind_counts(geometry) if asked.block_tokens else {}
    room = _capacity(asked, held)
    return Seen(
        asked=asked,
        geometry=geometry,
        pairs=pairs,
        rank=rank,
        native_bytes=bytes_of_tokens(geometry, native_pairs(geometry), asked.storage)(geometry.context_tokens),
        reservation=_reservation(asked, geometry, pairs),
        rank_reservation=_reservation(asked, rank, pairs) if rank else None,
        floor=hybrid_floor(held, pairs, asked.block_tokens, smallest_grouping(counts)) if asked.block_tokens and counts else None,
        groupings=grouping_trade_off(counts) if len(counts) > 1 else (),
        capacity=room,
        chosen_requests=room.free_bytes // held.total_bytes if room and pairs != native_pairs(held) else None,
        readings=_readings(asked, held, pairs),
    )


def _reservation(asked: Look, geometry: Geometry, pairs: tuple[Pair, ...]) -> Reservation | None:
    if asked.block_tokens is None or asked.chunk_tokens is None:
        return None
    return reserve(geometry, pairs, geometry.context_tokens, asked.block_tokens, asked.chunk_tokens, asked.storage)


def _capacity(asked: Look, geometry: Geometry) -> Capacity | None:
    if asked.memory is None:
        return None
    memory = parse_bytes(asked.memory, "--memory")
    weights = 0 if asked.weights is None else parse_bytes(asked.weights, "--weights")
    unequal = any(_of_unequal_widths(layer) for layer in geometry.owners)
    names = [name for name in FORMATS if not unequal or law(name, geometry.native_dtype).element_bits >= 16]
    return capacity(geometry, geometry.context_tokens, memory, weights, asked.storage, names)


def _readings(asked: Look, geometry: Geometry, pairs: tuple[Pair, ...]) -> Comparison | None:
    if asked.from_logs is None:
        return None
    # Here, because a start without a log should not wait for them.
    from kvassay.geometry.engine.reading_files import read_readings
    from kvassay.geometry.engine.readings import compare

    return compare(read_readings(asked.from_logs), geometry, pairs, asked.storage, asked.block_tokens, asked.chunk_tokens)


def _chosen_pairs(asked: Look, geometry: Geometry) -> tuple[Pair, ...]:
    """A pair per owner, from --k and --v or from a map of this very layout."""
    if asked.kv_map is None:
        law(asked.k, geometry.native_dtype), law(asked.v, geometry.native_dtype)
        return (Pair(k=asked.k, v=asked.v),) * len(geometry.owners)
    if (asked.k, asked.v) != (NATIVE, NATIVE):
        raise BadInput("--map already names the formats: leave out --k and --v")
    from kvassay.solving.kv_map import check_map_layers, map_pairs, read_kv_map

    kv_map = read_kv_map(asked.kv_map)
    check_map_layers(kv_map, geometry)
    return map_pairs(kv_map)


def _refuse_expanded_v(asked: Look, geometry: Geometry, pairs: tuple[Pair, ...]) -> None:
    """Engines that expand a latent keep K and V of different width, have no flash attention for that, and quantized V needs it."""
    for layer, pair in zip(geometry.owners, pairs, strict=True):
        if _of_unequal_widths(layer) and law(pair.v, geometry.native_dtype).element_bits < 16:
            raise BadInput(
                f"--v {pair.v}: layer {layer.index} expands its latent to K of {layer.k_dim} and V of {layer.v_dim} elements; quantized V "
                "needs flash attention, and that needs one width. Leave V native, or serve the latent (--mla latent)"
            )


def _of_unequal_widths(layer: Layer) -> bool:
    return layer.kind == "mla" and layer.v_dim not in (0, layer.k_dim)


def _draft(asked: Look, geometry: Geometry) -> Draft:
    drafted = read_geometry(str(asked.draft), geometry.context_tokens)
    return draft_of(drafted, str(asked.draft), drafted.layers, geometry.context_tokens)
