"""What `kvassay inspect --json` says of an engine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kvassay.cli.inspect_engine import EngineSeen
from kvassay.geometry.engine.comparison import Comparison
from kvassay.geometry.engine.grouping import Grouping


def engine_parts(seen: EngineSeen) -> dict[str, Any]:
    """Keys `reservation`, `grouping`, `capacity` and `readings`, those that were asked for."""
    parts = {
        "reservation": _reservation(seen),
        "grouping": [_grouping(each) for each in seen.groupings],
        "capacity": _capacity(seen),
        "readings": _readings(seen.readings) if seen.readings else None,
    }
    return {key: value for key, value in parts.items() if value}


def _reservation(seen: EngineSeen) -> dict[str, Any]:
    document: dict[str, Any] = {}
    if (its := seen.reservation) is not None:
        document = {
            "block_tokens": its.block_tokens,
            "chunk_tokens": its.chunk_tokens,
            "bytes_per_request": its.bytes_per_request,
            "bytes_per_token_at_this_context": its.bytes_per_token_at_this_context,
            "blocks": its.blocks,
        }
        if seen.rank_reservation is not None:
            document["bytes_per_request_and_rank"] = seen.rank_reservation.bytes_per_request
    if (floor := seen.floor) is not None:
        document["floor"] = {
            "block_tokens": floor.block_tokens,
            "groups": floor.groups,
            "group_size": floor.group_size,
            "tokens_per_request": floor.tokens_per_request,
        }
    return document


def _grouping(its: Grouping) -> dict[str, Any]:
    return {
        "size": its.size,
        "groups": its.groups,
        "padding_layers": its.padding_layers,
        "padding_per_layer": its.padding_per_layer,
        "padding_layers_by_kind": {kind.kind: kind.padding_layers for kind in its.kinds},
    }


def _capacity(seen: EngineSeen) -> dict[str, Any]:
    if (its := seen.capacity) is None:
        return {}
    chosen = {} if seen.chosen_requests is None else {"chosen": seen.chosen_requests}
    return {
        "memory_bytes": its.memory_bytes,
        "weights_bytes": its.weights_bytes,
        "free_bytes": its.free_bytes,
        "longest_context_tokens": its.longest_context_tokens,
        "requests": its.requests | chosen,
    }


def _readings(its: Comparison) -> dict[str, Any]:
    """What could not be solved for, or has no price to divide by, is left out."""
    document: dict[str, Any] = {
        "apparent": list(its.apparent),
        "spread": its.spread,
        "memory_spread": its.memory_spread,
        "regime": its.regime,
    }
    if its.fit is not None:
        document["growth_per_token"] = its.fit.growth_per_token
        document["fixed_per_request"] = its.fit.fixed_per_request
        document["residual"] = its.fit.residual
    ratios = {"ratio_growth": its.ratio_growth, "ratio_fixed": its.ratio_fixed}
    document |= {key: ratio for key, ratio in ratios.items() if ratio is not None}
    document["prices"] = [{key: value for key, value in asdict(price).items() if value is not None} for price in its.prices]
    if (difference := its.difference) is not None:
        document["difference"] = {
            "tokens": [difference.more.tokens, difference.less.tokens],
            "tokens_ratio": difference.tokens_ratio,
            "memory_ratio": difference.memory_ratio,
            "bytes_per_token_ratio": difference.bytes_per_token_ratio,
            "cause": difference.cause,
        }
    return document | ({"notes": list(its.notes)} if its.notes else {})
