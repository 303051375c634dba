"""FP8 with a tensor scale of 1.0 ("cast"): OCP 8-bit floating point, E4M3 (finite, maximum 448) and E5M2 (maximum 57,344)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from kvassay.formats import FormatLaw
from kvassay.numerics.lookup import look_up_pairs, pair_table
from kvassay.numerics.quantizer import Packed, head_dim_of


@dataclass(frozen=True)
class Fp8:
    """Elements stored as torch's `dtype`, saturated at its greatest finite value."""

    law: FormatLaw
    dtype: torch.dtype

    def pack(self, x: Tensor) -> Packed:
        """Payload [..., head_dim] of `dtype`."""
        head_dim_of(x, self.law)
        limit = torch.finfo(self.dtype).max
        # torch's own cast does not saturate everywhere: E5M2 overflows to infinity, E4M3 to NaN in some versions.
        return (x.clamp(-limit, limit).to(self.dtype),)

    def unpack(self, packed: Packed, dtype: torch.dtype) -> Tensor:
        """The elements in `dtype`; exact, every FP8 value exists in FP16, BF16 and FP32."""
        (payload,) = packed
        if payload.shape[-1] % 2 or payload.numel() == 0:
            return payload.to(dtype)
        indices = payload.view(torch.int16).int().bitwise_and_(0xFFFF)
        return look_up_pairs(indices, _table(self.dtype, dtype, payload.device), dtype)

    def empty(self, leading_shape: Sequence[int], head_dim: int, device: torch.device | str) -> Packed:
        """Payload only."""
        return (torch.empty(*leading_shape, head_dim, dtype=self.dtype, device=device),)


@lru_cache
def _table(fp8: torch.dtype, dtype: torch.dtype, device: torch.device) -> Tensor:
    return pair_table(torch.arange(256, dtype=torch.uint8).view(fp8).to(dtype)).to(device)
