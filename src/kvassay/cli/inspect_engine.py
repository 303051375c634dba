"""What `kvassay inspect` finds out of an engine: what it reserves, how it groups layers, how much fits, and what its own log says."""

from __future__ import annotations

from dataclasses import dataclass

from kvassay.cli.inspect_look import Look, of_unequal_widths
from kvassay.formats import FORMATS, law
from kvassay.geometry.engine.comparison import Comparison, compare
from kvassay.geometry.engine.grouping import Grouping, grouping_trade_off, kind_counts, smallest_grouping
from kvassay.geometry.engine.memory import Capacity, capacity
from kvassay.geometry.engine.reading_files import read_readings
from kvassay.geometry.engine.reservation import HybridFloor, Reservation, hybrid_floor, reserve
from kvassay.geometry.engine.sizes import parse_bytes
from kvassay.geometry.price import native_pairs
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry


@dataclass(frozen=True)
class EngineSeen:
    """reservation: with --block and --chunk. floor: with --block, of a hybrid. groupings: with --block, of several kinds of cache.

    capacity, chosen_requests (in the chosen formats, None where these are native), floor and readings are of one rank where there are
    ranks, `of_one_rank`.
    """

    of_one_rank: bool
    reservation: Reservation | None
    rank_reservation: Reservation | None
    floor: HybridFloor | None
    groupings: tuple[Grouping, ...]
    capacity: Capacity | None
    chosen_requests: int | None
    readings: Comparison | None


def look_at_engine(asked: Look, geometry: Geometry, pairs: tuple[Pair, ...], rank: Geometry | None) -> EngineSeen:
    """What was asked of the engine that holds `geometry`, `rank` of it on each rank. Raises BadInput."""
    held = rank or geometry
    counts = kind_counts(geometry) if asked.block_tokens is not None else {}
    room = _capacity(asked, held)
    return EngineSeen(
        of_one_rank=rank is not None,
        reservation=_reservation(asked, geometry, pairs),
        rank_reservation=_reservation(asked, rank, pairs) if rank else None,
        floor=hybrid_floor(held, pairs, asked.storage.block_tokens, smallest_grouping(counts)) if counts else None,
        groupings=grouping_trade_off(counts) if len(counts) > 1 else (),
        capacity=room,
        chosen_requests=room.free_bytes // held.total_bytes if room and pairs != native_pairs(held) else None,
        readings=_readings(asked, held, pairs),
    )


def _reservation(asked: Look, geometry: Geometry, pairs: tuple[Pair, ...]) -> Reservation | None:
    if asked.chunk_tokens is None:
        return None
    return reserve(geometry, pairs, geometry.context_tokens, asked.chunk_tokens, asked.storage)


def _capacity(asked: Look, geometry: Geometry) -> Capacity | None:
    if asked.memory is None:
        return None
    memory = parse_bytes(asked.memory, "--memory")
    weights = 0 if asked.weights is None else parse_bytes(asked.weights, "--weights")
    unequal = any(of_unequal_widths(layer) for layer in geometry.owners)
    names = [name for name in FORMATS if not unequal or law(name, geometry.native_dtype).element_bits >= 16]
    return capacity(geometry, geometry.context_tokens, memory, weights, asked.storage, names)


def _readings(asked: Look, geometry: Geometry, pairs: tuple[Pair, ...]) -> Comparison | None:
    if asked.from_logs is None:
        return None
    return compare(read_readings(asked.from_logs), geometry, pairs, asked.storage, asked.chunk_tokens)
