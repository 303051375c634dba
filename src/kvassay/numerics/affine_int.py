"""Affine integers: q = round((x - offset) / scale), with an FP16 scale and an FP16 offset per group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kvassay.formats import FormatLaw
from kvassay.numerics.packing import pack_bits, unpack_bits
from kvassay.numerics.quantizer import Packed, grouped, head_dim_of, limited, narrowed

FP16_MAX = torch.finfo(torch.float16).max
FP16_SMALLEST = torch.finfo(torch.float16).smallest_normal * torch.finfo(torch.float16).eps


@dataclass(frozen=True)
class AffineInt:
    """scale = (max - min) / (2 ** bits - 1) and offset = min, both rounded to FP16 and saturated there; the codes are computed
    with the stored values. A group whose scale underflows to zero (a constant group) comes back as its offset."""

    law: FormatLaw

    def pack(self, x: Tensor) -> Packed:
        """Payload [..., head_dim * bits / 8] uint8; scales [..., groups, 2] float16, (scale, offset)."""
        head_dim_of(x, self.law)
        levels = 2**self.law.element_bits - 1
        groups = grouped(limited(x), self.law.group or 1)
        low, high = groups.aminmax(dim=-1)
        scales = torch.stack(((high - low) / levels, low), dim=-1).clamp_(-FP16_MAX, FP16_MAX).half()
        scale, offset = scales.float().unsqueeze(-2).unbind(-1)
        # A zero scale would divide by zero; the smallest FP16 in its place leaves every other scale as it is.
        codes = groups.sub_(offset).div_(scale.clamp(min=FP16_SMALLEST)).round_().clamp_(0, levels).to(torch.uint8)
        return pack_bits(codes.flatten(-2), self.law.element_bits), scales

    def unpack(self, packed: Packed, dtype: torch.dtype) -> Tensor:
        """Code x scale (exact in FP32) + offset."""
        payload, scales = packed
        scale, offset = scales.float().unsqueeze(-2).unbind(-1)
        codes = unpack_bits(payload, self.law.element_bits).float()
        groups = grouped(codes, self.law.group or 1).mul_(scale).add_(offset)
        return narrowed(groups.flatten(-2), dtype)

    def empty(self, leading_shape: Sequence[int], head_dim: int, device: torch.device | str) -> Packed:
        """Payload and scales."""
        groups = head_dim // (self.law.group or 1)
        payload = torch.empty(*leading_shape, self.law.payload_bytes(head_dim), dtype=torch.uint8, device=device)
        return payload, torch.empty(*leading_shape, groups, 2, dtype=torch.float16, device=device)
