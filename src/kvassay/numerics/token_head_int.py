"""Symmetric integers with one FP32 scale per token and head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kvassay.formats import FormatLaw
from kvassay.numerics.quantizer import Packed, head_dim_of, limited, narrowed

INT8_MAX = 127


@dataclass(frozen=True)
class Int8TokenHead:
    """q = round(x / scale), scale = absmax / 127 in FP32; -128 is not used. A row of zeros has scale zero."""

    law: FormatLaw

    def pack(self, x: Tensor) -> Packed:
        """Payload [..., head_dim] int8; scales [..., 1] float32."""
        head_dim_of(x, self.law)
        rows = limited(x)
        scales = rows.abs().amax(-1, keepdim=True) / INT8_MAX
        # Over an infinite divisor a row without scale becomes zeros. A subnormal scale is coarse: quotients can leave the range.
        return rows.div_(scales.masked_fill(scales == 0, torch.inf)).round_().clamp_(-INT8_MAX, INT8_MAX).to(torch.int8), scales

    def unpack(self, packed: Packed, dtype: torch.dtype) -> Tensor:
        """Code x scale."""
        payload, scales = packed
        return narrowed(payload.float().mul_(scales), dtype)

    def empty(self, leading_shape: Sequence[int], head_dim: int, device: torch.device | str) -> Packed:
        """Payload and scales."""
        payload = torch.empty(*leading_shape, head_dim, dtype=torch.int8, device=device)
        return payload, torch.empty(*leading_shape, 1, dtype=torch.float32, device=device)
