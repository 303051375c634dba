"""A cache that stores nothing packed: it gives back K and V as a packed cache would, for scoring in FP32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin

from kvassay.errors import BadInput
from kvassay.numerics import disturb
from kvassay.records.frontier import Pair


class DisturbingCache(Cache):  # type: ignore[misc]
    """One layer per owner layer, formats `pairs` in their order; any batch size, one forward over whole sequences only."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        super().__init__(layers=[DisturbingLayer(pair) for pair in pairs])


class DisturbingLayer(CacheLayerMixin):  # type: ignore[misc]
    """Formats of one layer and the number of tokens seen."""

    is_sliding = False

    def __init__(self, pair: Pair) -> None:
        super().__init__()
        self.pair = pair
        self.tokens = 0
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing is stored."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """K and V [batch, kv_heads, tokens, dim] after a round trip through the formats. Raises BadInput on a second call."""
        if self.tokens:
            raise BadInput("a DisturbingCache keeps nothing between forwards: give it the whole sequence at once, or use a new one")
        self.tokens = key_states.shape[2]
        return disturb(self.pair.k, key_states), disturb(self.pair.v, value_states)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """(keys that `update` will return, offset of the first)."""
        return self.tokens + query_length, 0

    def get_seq_length(self) -> int:
        """Tokens seen."""
        return self.tokens

    def get_max_length(self) -> int:
        """No limit."""
        return -1

    def reset(self) -> None:
        """Ready for another sequence."""
        self.tokens = 0
