"""NVFP4 and MXFP4: E2M1 elements, two per byte, with one small scale per block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from kvassay.formats import FormatLaw
from kvassay.numerics.lookup import look_up, look_up_pairs, pair_table
from kvassay.numerics.quantizer import Packed, grouped, head_dim_of, limited, narrowed

E2M1_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
E2M1_MAX = 6.0
E2M1_MAX_EXPONENT = 2
E4M3_MAX = 448.0
E8M0_NAN = 255


@dataclass(frozen=True)
class NvFp4:
    """One E4M3 scale per 16 elements, amax / 6; the tensor scale above it is 1.0, so blocks beyond 6 x 448 saturate."""

    law: FormatLaw

    def pack(self, x: Tensor) -> Packed:
        """Payload [..., head_dim / 2] uint8; scales [..., head_dim / 16] float8_e4m3fn."""
        blocks = _blocks(x, self.law)
        scales = (blocks.abs().amax(-1) / E2M1_MAX).clamp_(max=E4M3_MAX).to(torch.float8_e4m3fn)
        return encode_e2m1(blocks, scales.float().unsqueeze(-1)), scales

    def unpack(self, packed: Packed, dtype: torch.dtype) -> Tensor:
        """Element x scale."""
        payload, scales = packed
        return narrowed(_scaled(payload, look_up(scales.view(torch.uint8), _e4m3_table(payload.device))), dtype)

    def empty(self, leading_shape: Sequence[int], head_dim: int, device: torch.device | str) -> Packed:
        """Payload and scales."""
        return _empty(self.law, torch.float8_e4m3fn, leading_shape, head_dim, device)


@dataclass(frozen=True)
class MxFp4:
    """One E8M0 scale per 32 elements, 2 ** (floor(log2 amax) - 2); elements beyond 6 x scale saturate (OCP Microscaling v1.0, 6.3)."""

    law: FormatLaw

    def pack(self, x: Tensor) -> Packed:
        """Payload [..., head_dim / 2] uint8; scales [..., head_dim / 32] uint8, the E8M0 exponents biased by 127."""
        blocks = _blocks(x, self.law)
        # FP32 and E8M0 share their bias: the exponent field of amax is already floor(log2 amax) in E8M0's terms.
        exponents = blocks.abs().amax(-1).view(torch.int32) >> 23
        codes = torch.where(exponents == E8M0_NAN, E8M0_NAN, (exponents - E2M1_MAX_EXPONENT).clamp_(min=0)).to(torch.uint8)
        return encode_e2m1(blocks, _e8m0(codes).unsqueeze(-1)), codes

    def unpack(self, packed: Packed, dtype: torch.dtype) -> Tensor:
        """Element x scale."""
        payload, codes = packed
        return narrowed(_scaled(payload, _e8m0(codes)), dtype)

    def empty(self, leading_shape: Sequence[int], head_dim: int, device: torch.device | str) -> Packed:
        """Payload and scales."""
        return _empty(self.law, torch.uint8, leading_shape, head_dim, device)


def encode_e2m1(blocks: Tensor, scales: Tensor) -> Tensor:
    """`blocks` [..., n, size] over `scales` [..., n, 1], rounded to E2M1 and saturated: [..., n * size / 2] uint8, even element low.

    A block whose scale is zero (amax too small for the scale's range) becomes zeros.
    """
    quotients = blocks / scales.masked_fill(scales == 0, torch.inf)
    sizes = quotients.abs()
    # Codes 0 to 4 are steps of 0.5 up to 2, codes 4 to 6 steps of 1 up to 4, code 7 a step of 2; each `round` is to even.
    codes = (sizes * 2).round_().clamp_(max=4)
    codes += sizes.round().clamp_(2, 4).sub_(2)
    codes += (sizes / 2).round_().clamp_(2, 3).sub_(2)
    signs = quotients.view(torch.int32) >> 28 & 8
    pairs = (codes.int() | signs).to(torch.uint8).view(torch.int16)
    return (pairs | pairs >> 4).to(torch.uint8).flatten(-2)


def _scaled(payload: Tensor, scales: Tensor) -> Tensor:
    elements = look_up_pairs(payload.int(), _e2m1_pairs(payload.device), torch.float32)
    return grouped(elements, elements.shape[-1] // scales.shape[-1]).mul_(scales.unsqueeze(-1)).flatten(-2)


def _e8m0(codes: Tensor) -> Tensor:
    return codes.view(torch.float8_e8m0fnu).float()


def _blocks(x: Tensor, law: FormatLaw) -> Tensor:
    head_dim_of(x, law)
    return grouped(limited(x), law.group or 1)


def _empty(law: FormatLaw, scale_dtype: torch.dtype, leading: Sequence[int], head_dim: int, device: torch.device | str) -> Packed:
    payload = torch.empty(*leading, law.payload_bytes(head_dim), dtype=torch.uint8, device=device)
    return payload, torch.empty(*leading, law.row_scale_bytes(head_dim), dtype=scale_dtype, device=device)


@lru_cache
def _e4m3_table(device: torch.device) -> Tensor:
    return torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float().to(device)


@lru_cache
def _e2m1_pairs(device: torch.device) -> Tensor:
    return pair_table(torch.tensor([*E2M1_VALUES, *(-value for value in E2M1_VALUES)])).to(device)
