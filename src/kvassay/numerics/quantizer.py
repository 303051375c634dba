"""What every reference quantizer offers, and the two conversions they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from kvassay.errors import BadInput
from kvassay.formats import FormatLaw

Packed = tuple[Tensor, ...]

# The largest finite BF16. Inputs are limited to it, so that one rounding upwards on the way back cannot become infinity.
LARGEST_INPUT = torch.finfo(torch.bfloat16).max


class Quantizer(Protocol):
    """One cache format. Rows are independent: packing tokens one by one or all at once gives the same bytes.

    Rounding is to nearest, ties to even. Finite input gives finite output: values out of range saturate. Infinities
    saturate too, unless a float format stores its own dtype unchanged. A NaN is never hidden: it comes back as NaN, in scaled formats
    with all elements that share its scale.
    """

    @property
    def law(self) -> FormatLaw:
        """The byte law that this quantizer fills."""

    def pack(self, x: Tensor) -> Packed:
        """Pack `x` [..., head_dim], floating point, into tensors with the same leading dimensions: payload, then scales
        where the format stores any. Raises BadInput when head_dim is illegal for the format."""

    def unpack(self, packed: Packed, dtype: torch.dtype) -> Tensor:
        """The stored values [..., head_dim] in `dtype`: computed in FP32, rounded once, saturated to its range."""

    def empty(self, leading_shape: Sequence[int], head_dim: int, device: torch.device | str) -> Packed:
        """Uninitialised storage as `pack` returns it; its bytes are rows x `law.row_bytes(head_dim)` exactly."""


def limited(x: Tensor) -> Tensor:
    """A copy of `x` in FP32 with infinities and near-infinities brought to the largest finite BF16; NaN stays."""
    return x.to(torch.float32, copy=True, memory_format=torch.contiguous_format).clamp_(-LARGEST_INPUT, LARGEST_INPUT)


def narrowed(x: Tensor, dtype: torch.dtype) -> Tensor:
    """FP32 `x` in `dtype`, saturated where FP16 would overflow. May change `x` in place."""
    if dtype == torch.float32:
        return x
    if dtype == torch.float16:
        x.clamp_(-torch.finfo(dtype).max, torch.finfo(dtype).max)
    return x.to(dtype)


def grouped(x: Tensor, size: int) -> Tensor:
    """`x` [..., n] as [..., n / size, size], the same memory."""
    return x.view(*x.shape[:-1], x.shape[-1] // size, size)


def head_dim_of(x: Tensor, law: FormatLaw) -> int:
    """Size of the last dimension of `x`. Raises BadInput when `law` cannot hold it or `x` is no floating-point tensor."""
    if not x.is_floating_point() or x.dim() == 0:
        raise BadInput(f"{law.name}: can only pack a floating-point tensor [..., head_dim], not {x.dtype} of shape {list(x.shape)}")
    if why := law.why_illegal(x.shape[-1]):
        raise BadInput(why)
    return x.shape[-1]
