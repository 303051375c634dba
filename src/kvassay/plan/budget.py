"""A plan's budget, said in any of its ways, as bytes per cached token of one model."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kvassay.capabilities import Capability
from kvassay.errors import BadInput
from kvassay.geometry.price import bytes_per_token, cached_elements, effective_bits, native_pairs
from kvassay.plan.legal import cheapest_pairs
from kvassay.plan.schema import Budget, Menu
from kvassay.records.geometry import Geometry

ROUNDING = 1e-6


@dataclass(frozen=True)
class TokenBudget:
    """bytes_per_token: the most a token may take over all owner layers. bits: the same per cached element. text: as asked."""

    bytes_per_token: int
    bits: float
    text: str


def token_budget(budget: Budget, geometry: Geometry) -> TokenBudget:
    """The budget as bytes per token. "smallest within gates" sets no limit of its own: it is the native price.

    Raises BadInput when gib, tokens and requests leave less than one byte a token.
    """
    elements = cached_elements(geometry)
    if budget.bits is not None:
        # A requested figure such as 5.326389 is rounded text of an exact one; the bits of the bytes are what maps are held against.
        return _of_bytes(math.floor(budget.bits * elements / 8 + ROUNDING * elements), elements, f"{budget.bits:g} bits per element")
    if budget.bytes_per_token is not None:
        return _of_bytes(budget.bytes_per_token, elements, f"{budget.bytes_per_token:,} bytes per token")
    if budget.gib is not None and budget.tokens is not None and budget.requests is not None:
        text = f"{budget.gib:g} GiB for {budget.requests:,} requests of {budget.tokens:,} tokens"
        return _of_bytes(math.floor(budget.gib * 2**30 / (budget.tokens * budget.requests)), elements, text)
    return _of_bytes(bytes_per_token(geometry, native_pairs(geometry)), elements, "the smallest map within the gates")


def check_budget(budget: TokenBudget, geometry: Geometry, menu: Menu, capability: Capability) -> None:
    """Raise BadInput, naming the smallest possible figure, when the budget is under the cheapest legal map."""
    cheapest = cheapest_pairs(geometry, menu, capability)
    smallest = bytes_per_token(geometry, cheapest)
    if budget.bytes_per_token < smallest:
        raise BadInput(
            f"budget: {budget.text} is {budget.bytes_per_token:,} bytes per token, under the cheapest legal map of the menu: "
            f"{smallest:,} bytes per token, {effective_bits(geometry, cheapest):.4f} bits"
        )


def _of_bytes(per_token: int, elements: int, text: str) -> TokenBudget:
    return TokenBudget(per_token, 8 * per_token / elements, text)
