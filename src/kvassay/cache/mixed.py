"""The reference engine's cache: every layer packed in its own formats, K and V apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin

from kvassay.cache.packed_rows import PackedRows
from kvassay.capabilities.layouts import why_layout_unserved
from kvassay.errors import BadInput
from kvassay.geometry.price import zip_owners
from kvassay.numerics import quantizer
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry, Layer


class MixedCache(Cache):  # type: ignore[misc]
    """Cache of one sequence, one packed layer per owner layer of `geometry`, formats `pairs` in the same order.

    What attention reads is always unpacked from the packed rows, in prefill as in decode. `native` layers store `dtype`, the
    model's own: bytes equal `geometry.price` where that is the geometry's native dtype. `capacity_tokens` rows are allocated
    at once; `update` past them raises BadInput.
    """

    def __init__(
        self, pairs: Sequence[Pair], geometry: Geometry, capacity_tokens: int, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> None:
        if capacity_tokens < 1:
            raise BadInput(f"capacity_tokens {capacity_tokens}: a cache needs room for at least one token")
        owners = zip_owners(geometry, pairs)
        if why := why_layout_unserved(geometry):
            raise BadInput(why)
        super().__init__(layers=[MixedLayer(layer, pair, capacity_tokens, dtype, device) for layer, pair in owners])
        self.capacity_tokens = capacity_tokens

    @property
    def tokens_held(self) -> int:
        """Tokens in the cache."""
        return int(self.get_seq_length())

    @property
    def bytes_held(self) -> int:
        """Bytes of the packed rows of the tokens held, scales included, over all layers."""
        return sum(layer.bytes_of(layer.tokens) for layer in self.layers)

    @property
    def bytes_allocated(self) -> int:
        """Bytes of all rows, used or not, scales included, over all layers."""
        return sum(layer.bytes_of(self.capacity_tokens) for layer in self.layers)

    def truncate(self, tokens: int) -> None:
        """Keep the first `tokens` tokens. Rows are independent, so the cache is then as if no more had ever been written."""
        for layer in self.layers:
            layer.truncate(tokens)


class MixedLayer(CacheLayerMixin):  # type: ignore[misc]
    """Packed K and V of one attention layer that keeps every token."""

    is_sliding = False
    is_croppable = True
    batch_size = 1

    def __init__(self, layer: Layer, pair: Pair, capacity_tokens: int, dtype: torch.dtype, device: torch.device | str) -> None:
        super().__init__()
        self.index, self.capacity_tokens, self.dtype = layer.index, capacity_tokens, dtype
        self.tokens = 0
        self.k_shape, self.v_shape = (1, layer.kv_heads, layer.k_dim), (1, layer.kv_heads, layer.v_dim)
        self.k = PackedRows.allocate(quantizer(pair.k, dtype), layer.kv_heads, capacity_tokens, layer.k_dim, device)
        self.v = PackedRows.allocate(quantizer(pair.v, dtype), layer.kv_heads, capacity_tokens, layer.v_dim, device)
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Storage exists from the start."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Pack the new K and V, [1, kv_heads, new tokens, dim], and return all of the cache unpacked, in the model's dtype.

        Raises BadInput when they do not fit in the capacity or have another shape than the geometry says.
        """
        for name, states, (batch, heads, dim) in (("K", key_states, self.k_shape), ("V", value_states, self.v_shape)):
            if states.dim() != 4 or states.shape[:2] != (batch, heads) or states.shape[3] != dim:
                raise BadInput(
                    f"layer {self.index}: {name} of shape {list(states.shape)}; this cache holds one sequence of "
                    f"{heads} KV heads of {dim} elements: check that geometry and model belong together"
                )
        start, tokens = self.tokens, self.tokens + key_states.shape[2]
        if tokens > self.capacity_tokens:
            raise BadInput(
                f"KV cache is full: layer {self.index} holds {start} tokens and {key_states.shape[2]} more were asked, "
                f"its capacity is {self.capacity_tokens} tokens; shorten the request or raise the KV memory limit"
            )
        self.k.write(key_states, start)
        self.v.write(value_states, start)
        self.tokens = tokens
        return self.k.read(tokens, key_states.dtype), self.v.read(tokens, value_states.dtype)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """(keys that `update` will return, offset of the first)."""
        return self.tokens + query_length, 0

    def get_seq_length(self) -> int:
        """Tokens held."""
        return self.tokens

    def get_max_length(self) -> int:
        """Tokens that fit."""
        return self.capacity_tokens

    def bytes_of(self, tokens: int) -> int:
        """Bytes of `tokens` tokens, K and V."""
        return self.k.bytes_of(tokens) + self.v.bytes_of(tokens)

    def truncate(self, tokens: int) -> None:
        """Keep the first `tokens` tokens; raises BadInput when there are fewer."""
        if not 0 <= tokens <= self.tokens:
            raise BadInput(f"cannot keep {tokens} tokens of a cache that holds {self.tokens}")
        self.tokens = tokens

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the last -`tokens_to_remove` tokens (transformers counts them negative)."""
        if tokens_to_remove > 0:
            raise BadInput(f"crop({tokens_to_remove}): give the number of tokens to remove as a negative number")
        self.truncate(max(0, self.tokens + tokens_to_remove))

    def reset(self) -> None:
        """Forget every token; the storage stays."""
        self.tokens = 0

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Beams need several sequences."""
        raise BadInput("this cache holds one sequence at a time: use no beam search")
