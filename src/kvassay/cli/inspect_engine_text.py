"""What `kvassay inspect` says of an engine, for people."""

from __future__ import annotations

from collections.abc import Iterator

from kvassay.cli.inspect_engine import EngineSeen
from kvassay.cli.inspect_readings_text import comparison_text
from kvassay.cli.inspect_units import columns, sized


def engine_lines(seen: EngineSeen) -> list[str]:
    """One part after another, each behind an empty line; nothing for what was not asked."""
    return [line for part in (_reservation, _floor, _grouping, _capacity, _readings) for line in part(seen)]


def _reservation(seen: EngineSeen) -> Iterator[str]:
    if (its := seen.reservation) is None:
        return
    yield ""
    yield f"an engine of {its.block_tokens:,} tokens a block and {its.chunk_tokens:,} a step reserves {sized(its.bytes_per_request)} for it"
    yield from columns(
        ("layers", "kind", "blocks per layer", "bytes"),
        [(f"{kind.layers:,}", kind.kind, f"{kind.blocks_per_layer:,}", f"{kind.bytes:,}") for kind in its.kinds],
    )
    yield f"  {its.bytes_per_token_at_this_context:,.0f} bytes per token at {its.context_tokens:,} tokens only: no rate of the model"
    if seen.rank_reservation is not None:
        yield f"  {sized(seen.rank_reservation.bytes_per_request)} on each rank"


def _floor(seen: EngineSeen) -> Iterator[str]:
    if (floor := seen.floor) is None:
        return
    yield ""
    yield f"a block must hold a recurrent state, so it has {floor.block_tokens:,} tokens, and a request takes one in each group:"
    least = f"{floor.tokens_per_request:,} tokens at the least"
    yield f"  {floor.groups:,} groups (of {floor.group_size:,} layers) × {floor.block_tokens:,} = {least}"
    yield "  so this floor, not the payload, sets how many short requests run at once"


def _grouping(seen: EngineSeen) -> Iterator[str]:
    if not seen.groupings:
        return
    yield ""
    yield "equal groups of layers, fewer groups against more padding; no size is best at both"
    yield from columns(
        ("group size", "groups", "padding layers", "of the padded kinds"),
        [(f"{each.size:,}", f"{each.groups:,}", f"{each.padding_layers:,}", f"{each.padding_per_layer:.1%}") for each in seen.groupings],
    )


def _capacity(seen: EngineSeen) -> Iterator[str]:
    if (its := seen.capacity) is None:
        return
    yield ""
    where = " of each rank" if seen.of_one_rank else ""
    yield f"{sized(its.free_bytes)} of {sized(its.memory_bytes)}{where} are left for caches"
    rows = [(each.format, f"{each.requests:,}", f"{each.longest_context_tokens:,}") for each in its.formats]
    if seen.chosen_requests is not None:
        rows.append(("as chosen", f"{seen.chosen_requests:,}", ""))
    yield from columns(("format", f"requests of {its.context_tokens:,} tokens", "tokens of the longest request"), rows)


def _readings(seen: EngineSeen) -> Iterator[str]:
    if seen.readings is None:
        return
    apparent = [f"{each:,.0f}" for each in seen.readings.apparent[:6]]
    more = ", …" if len(seen.readings.apparent) > 6 else ""
    yield ""
    yield f"readings{' of one rank' if seen.of_one_rank else ''}: memory ÷ tokens = {', '.join(apparent)}{more} bytes"
    yield from (f"  {line}" for line in comparison_text(seen.readings))
