"""What `kvassay inspect` was asked, and everything it found out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kvassay.errors import BadInput, one_line
from kvassay.formats import NATIVE, law
from kvassay.geometry.config import read_geometry
from kvassay.geometry.layouts.draft import draft_of
from kvassay.geometry.layouts.layout import Choice
from kvassay.geometry.price import native_pairs, with_price, zip_owners
from kvassay.geometry.storage import Storage
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Draft, Geometry, Layer

if TYPE_CHECKING:
    from kvassay.cli.inspect_engine import EngineSeen


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

    native_bytes: `geometry.total_bytes` had every format been native. engine: None where nothing was asked of one.
    """

    asked: Look
    geometry: Geometry
    pairs: tuple[Pair, ...]
    rank: Geometry | None
    native_bytes: int
    engine: EngineSeen | None


def look(asked: Look) -> Seen:
    """Read, price, and answer what was asked. Raises BadInput."""
    read = read_geometry(asked.model, asked.context_tokens, asked.choice)
    if asked.draft is not None:
        read = read.model_copy(update={"draft": _draft(asked.draft, read)})
    pairs = _chosen_pairs(asked, read)
    _refuse_expanded_v(read, pairs)
    geometry = with_price(read, pairs, read.context_tokens, asked.storage)
    native = native_pairs(read)
    rank = engine = None
    # Imported where they are asked for: a plain look starts some 10 ms sooner.
    if asked.ranks is not None:
        from kvassay.geometry.engine.ranks import per_rank

        rank = per_rank(geometry, pairs, asked.ranks, asked.storage)
    if asked.block_tokens is not None or asked.memory is not None or asked.from_logs is not None:
        from kvassay.cli.inspect_engine import look_at_engine

        engine = look_at_engine(asked, geometry, pairs, rank)
    return Seen(
        asked=asked,
        geometry=geometry,
        pairs=pairs,
        rank=rank,
        native_bytes=geometry.total_bytes if pairs == native else with_price(read, native, read.context_tokens, asked.storage).total_bytes,
        engine=engine,
    )


def _chosen_pairs(asked: Look, geometry: Geometry) -> tuple[Pair, ...]:
    """A pair per owner, from --k and --v or from a map of this very layout."""
    if asked.kv_map is None:
        pairs = (Pair(k=asked.k, v=asked.v),) * len(geometry.owners)
        try:
            law(asked.k, geometry.native_dtype), law(asked.v, geometry.native_dtype)
            zip_owners(geometry, pairs)
        except BadInput as error:
            raise BadInput(f"--k and --v: {error}") from None
        return pairs
    if (asked.k, asked.v) != (NATIVE, NATIVE):
        raise BadInput("--map already names the formats: leave out --k and --v")
    from kvassay.solving.kv_map import check_map_layers, map_pairs, read_kv_map

    kv_map = read_kv_map(asked.kv_map)
    try:
        check_map_layers(kv_map, geometry)
    except BadInput as error:
        raise BadInput(f"--map {asked.kv_map}: {error}") from None
    return map_pairs(kv_map)


def _refuse_expanded_v(geometry: Geometry, pairs: tuple[Pair, ...]) -> None:
    """Engines that expand a latent keep K and V of different width, have no flash attention for that, and quantized V needs it."""
    for layer, pair in zip(geometry.owners, pairs, strict=True):
        if of_unequal_widths(layer) and law(pair.v, geometry.native_dtype).element_bits < 16:
            raise BadInput(
                f"--v {pair.v}: layer {layer.index} expands its latent to K of {layer.k_dim} and V of {layer.v_dim} elements; quantized V "
                "needs flash attention, and that needs one width. Leave V native, or serve the latent (--mla latent)"
            )


def of_unequal_widths(layer: Layer) -> bool:
    """Whether `layer` is an expanded latent whose K and V differ in width."""
    return layer.kind == "mla" and layer.v_dim not in (0, layer.k_dim)


def _draft(source: str, geometry: Geometry) -> Draft:
    drafted = read_geometry(source, geometry.context_tokens)
    return draft_of(drafted, one_line(source), drafted.layers, geometry.context_tokens)
