"""`kvassay inspect` for people: a table by layer kind, the four numbers, and one line that says the price."""

from __future__ import annotations

from kvassay.cli.inspect_document import cross_part, savings
from kvassay.cli.inspect_look import Seen
from kvassay.cli.inspect_units import columns, sized
from kvassay.geometry.price import allocated_growth_per_token, layer_bytes_per_token
from kvassay.records.geometry import Layer


def as_text(seen: Seen) -> str:
    """Everything seen, in lines."""
    asked, geometry, counted = seen.asked, seen.geometry, seen.geometry.bytes
    lines = [f"{geometry.model_type}, native {geometry.native_dtype}"]
    lines += [f"assumed: {note}" for note in geometry.assumptions]
    lines += ["", *_table(seen), ""]
    lines += [
        _number("growth", counted.growth_per_token, "per further token"),
        _number("all tokens", counted.all_tokens_per_token, "per token if no layer dropped any"),
        _number("window", counted.window_bytes, "once the windows are full"),
        _number("fixed", counted.fixed_per_request, "per request, whatever its length"),
    ]
    if counted.indexer_per_token:
        lines.append(_number("indexer", counted.indexer_per_token, "per further token beside the growth (FP8 keys, FP32 scales)"))
    if cross := cross_part(seen):
        lines.append(
            _number("cross", cross["bytes_per_encoder_token"], f"per encoder token, {cross['encoder_tokens']:,} of them, within fixed")
        )
    lines += ["", f"at {geometry.context_tokens:,} tokens one request holds {sized(geometry.total_bytes)}"]
    longest = geometry.max_position_embeddings
    if longest is not None and geometry.context_tokens > longest:
        lines.append(f"  longer than the {longest:,} tokens that the model was made for")
    if saving := savings(seen):
        bits, saved = saving["bits_per_element"], saving["saved_fraction"]
        lines.append(f"  {bits:.6f} bits per element, {saved:.1%} less than native ({sized(seen.native_bytes)})")
    if geometry.parts.padding:
        held = geometry.parts.payload + geometry.parts.scales
        grown = allocated_growth_per_token(geometry, seen.pairs, asked.storage)
        lines.append(
            f"  of which {sized(geometry.parts.padding)} is padding: {sized(held)} payload; growth {grown:,} bytes per token as allocated"
        )
    if asked.requests > 1:
        lines.append(f"{asked.requests:,} such requests hold {sized(asked.requests * geometry.total_bytes)}")
    if seen.rank is not None:
        whole, grown = sized(seen.rank.total_bytes), seen.rank.bytes.growth_per_token
        lines.append(f"each of {asked.ranks:,} ranks holds {whole}, growth {grown:,} bytes per token")
    if geometry.draft is not None:
        draft, layers = geometry.draft, len(geometry.draft.layers)
        lines.append(
            f"with speculation on, {draft.source} ({layers} layer{'' if layers == 1 else 's'}) holds {sized(draft.total_bytes)} more, "
            f"growth {draft.bytes.growth_per_token:,} bytes per token"
        )
    if seen.engine is not None:
        from kvassay.cli.inspect_engine_text import engine_lines

        lines += engine_lines(seen.engine)
    return "\n".join(lines)


def _number(name: str, count: int, what: str) -> str:
    return f"{name:<12} {count:>15,} bytes {what}"


def _table(seen: Seen) -> list[str]:
    """One row per kind, shape and pair of formats; what holds no K and V comes last."""
    geometry = seen.geometry
    rows: dict[tuple[str, ...], int] = {}
    for layer, pair in zip(geometry.owners, seen.pairs, strict=True):
        per_row = layer_bytes_per_token(layer, pair, geometry.native_dtype)
        key = (
            layer.kind,
            f"{layer.kv_heads}",
            f"{layer.k_dim}/{layer.v_dim}",
            _keeps(layer),
            f"{pair.k}/{pair.v}" if layer.v_dim else pair.k,
            f"{per_row:,}",
        )
        rows[key] = rows.get(key, 0) + 1
    for layer in geometry.layers:
        if not layer.owner:
            idle = _without_cache(layer)
            rows[idle] = rows.get(idle, 0) + 1
    head = ("layers", "kind", "KV heads", "K/V dim", "keeps", "format K/V", "bytes per row and layer")
    return columns(head, [(str(count), *key) for key, count in rows.items()], indent="")


def _without_cache(layer: Layer) -> tuple[str, ...]:
    if layer.reads_from is not None:
        return (layer.kind, "-", "-", f"reads layer {layer.reads_from}", "-", "0")
    if layer.states:
        held = sum(state.bytes for state in layer.states)
        return (layer.kind, "-", "-", f"a state of {held:,} bytes", "-", "0")
    return (layer.kind, "-", "-", "nothing", "-", "0")


def _keeps(layer: Layer) -> str:
    if layer.encoder_tokens is not None:
        return f"{layer.encoder_tokens:,} encoder tokens"
    if layer.window is not None:
        return f"{layer.window:,} tokens"
    return "all tokens" if layer.tokens_per_entry == 1 else f"a row per {layer.tokens_per_entry} tokens"
