"""BF16, FP16 and FP32 storage, and `native`, which is one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kvassay.formats import FormatLaw
from kvassay.numerics.quantizer import Packed, head_dim_of


@dataclass(frozen=True)
class PlainFloat:
    """Elements stored as torch's `dtype`, saturated at its range; no scales."""

    law: FormatLaw
    dtype: torch.dtype

    def pack(self, x: Tensor) -> Packed:
        """Payload [..., head_dim] of `dtype`."""
        head_dim_of(x, self.law)
        if x.dtype == self.dtype:
            return (x,)
        limit = torch.finfo(self.dtype).max
        return (x.float().clamp(-limit, limit).to(self.dtype),)

    def unpack(self, packed: Packed, dtype: torch.dtype) -> Tensor:
        """The elements in `dtype`; the stored tensor itself where it has that dtype already."""
        (payload,) = packed
        if payload.dtype == dtype:
            return payload
        limit = torch.finfo(dtype).max
        return payload.float().clamp(-limit, limit).to(dtype)

    def empty(self, leading_shape: Sequence[int], head_dim: int, device: torch.device | str) -> Packed:
        """Payload only."""
        return (torch.empty(*leading_shape, head_dim, dtype=self.dtype, device=device),)
