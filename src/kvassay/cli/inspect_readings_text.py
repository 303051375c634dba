"""A comparison with an engine's log in sentences."""

from __future__ import annotations

from kvassay.geometry.engine.comparison import Cause, Comparison, Priced, Regime
from kvassay.geometry.engine.fit import Fit

REGIMES: dict[Regime, str] = {
    "plain": "every layer growing by every token",
    "windows": "windows dropped as they fill",
    "all_tokens": "windowed layers keeping every token too",
    "states": "growth beside a fixed part",
    "reservation": "blocks reserved for windows and one step, at these max lengths only",
    "neither": "none of these prices",
}
CAUSES: dict[Cause, str] = {
    "memory": "the memory left for the cache makes it, not the payload",
    "bytes_per_token": "the bytes per token make it, not the memory",
    "both": "memory and bytes per token both make it",
}


def comparison_text(its: Comparison) -> tuple[str, ...]:
    """What the readings say, a sentence a line: what was solved, each price, the regime, and what differs between readings."""
    mixed = f"{its.apparent[0]:,.0f} bytes per token at this max length only: growing and fixed parts stay mixed"
    lines = [_fit(its.fit) if its.fit else mixed, *(_price(each) for each in its.prices)]
    lines.append(f"the log agrees with {' and '.join(REGIMES[each] for each in its.regimes or (its.regime,))}")
    ratios = [(name, ratio) for name, ratio in (("growth", its.ratio_growth), ("fixed part", its.ratio_fixed)) if ratio is not None]
    lines += [f"{name}: {ratio:.3f} of the price" for name, ratio in ratios]
    if its.spread:
        lines.append(f"bytes per token differ by {its.spread:.2%} at equal max length, memory by {its.memory_spread:.2%}")
    if (by := its.difference) is not None:
        lines.append(
            f"{by.more.tokens:,} tokens are {by.tokens_ratio:.2f} times {by.less.tokens:,}: memory {by.memory_ratio:.2f} times, "
            f"bytes per token {by.bytes_per_token_ratio:.3f} times: {CAUSES[by.cause]}"
        )
    return (*lines, *its.notes)


def _fit(fit: Fit) -> str:
    growth = f"growth {fit.growth_per_token:,.0f} ± {fit.growth_rounding:,.0f} bytes per token"
    if fit.by_division:
        return growth
    fixed = f"fixed {fit.fixed_per_request:,.0f} ± {fit.fixed_rounding:,.0f} bytes per request"
    return f"{growth}, {fixed}, within {fit.residual:.2%} of every reading"


def _price(each: Priced) -> str:
    held = f"{each.growth_per_token:,} bytes per token and {each.fixed_per_request:,} fixed"
    return f"{REGIMES[each.regime]}: {held}, " + ("no max length to compare at" if each.distance is None else f"{each.distance:.2%} away")
