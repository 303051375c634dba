"""Packed storage of the K or the V of one layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kvassay.numerics import Packed, Quantizer


@dataclass(frozen=True)
class PackedRows:
    """Rows [1, kv_heads, capacity_tokens, ...] in one format, allocated once."""

    quantizer: Quantizer
    storage: Packed

    @classmethod
    def allocate(cls, quantizer: Quantizer, kv_heads: int, capacity_tokens: int, head_dim: int, device: torch.device | str) -> PackedRows:
        """Uninitialised room for exactly `capacity_tokens` tokens."""
        return cls(quantizer, quantizer.empty((1, kv_heads, capacity_tokens), head_dim, device))

    @torch.no_grad()
    def write(self, x: Tensor, start: int) -> None:
        """Pack `x` [1, kv_heads, tokens, head_dim] into the rows from token `start` on."""
        for part, new in zip(self.storage, self.quantizer.pack(x), strict=True):
            part[:, :, start : start + x.shape[2]].copy_(new)

    @torch.no_grad()
    def read(self, tokens: int, dtype: torch.dtype) -> Tensor:
        """The first `tokens` tokens, unpacked: [1, kv_heads, tokens, head_dim]."""
        return self.quantizer.unpack(self.first(tokens), dtype)

    def first(self, tokens: int) -> Packed:
        """Views of the storage of the first `tokens` tokens."""
        return tuple(part[:, :, :tokens] for part in self.storage)

    def bytes_of(self, tokens: int) -> int:
        """Bytes that the first `tokens` tokens take, counted on the tensors."""
        return sum(part.nbytes for part in self.first(tokens))
