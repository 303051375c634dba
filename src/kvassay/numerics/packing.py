"""Bit packing: codes of 1 to 8 bits in rows of bytes, without waste.

A row of `b`-bit codes is split into planes whose widths are powers of two (5 = 4 + 1), because those fill whole bytes. In a plane of
`width` bits a word takes `8 / width` runs of codes, one code per byte and run, so that a shift and a mask of a whole word
unpack a run at once.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

PLANES: dict[int, tuple[int, ...]] = {2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1), 6: (4, 2), 8: (8,)}
WORDS = ((8, torch.int64), (4, torch.int32), (2, torch.int16), (1, torch.uint8))


def pack_bits(codes: Tensor, bits: int) -> Tensor:
    """`codes` [..., n] uint8, each below 2**bits, as [..., n * bits / 8] uint8. `n * bits` must fill whole bytes in every plane."""
    if bits == 8:
        return codes
    planes, below = [], 0
    for width in PLANES[bits]:
        part = codes >> below if below else codes
        if below + width < bits:
            part = part & ((1 << width) - 1)
        planes.append(_pack_plane(part, width, word_bytes(codes.shape[-1], bits)))
        below += width
    return planes[0] if len(planes) == 1 else torch.cat(planes, dim=-1)


def unpack_bits(packed: Tensor, bits: int) -> Tensor:
    """The inverse of `pack_bits`: [..., bytes] uint8 to codes [..., bytes * 8 / bits] uint8."""
    if bits == 8:
        return packed
    size = packed.shape[-1] * 8 // bits
    word = word_bytes(size, bits)
    codes: Tensor | None = None
    start = below = 0
    for width in PLANES[bits]:
        stop = start + size * width // 8
        words = _unpack_plane(packed[..., start:stop], width, word)
        codes = words if codes is None else codes.bitwise_or_(words << below)
        start, below = stop, below + width
    assert codes is not None  # noqa: S101 - every entry of PLANES has a plane
    return codes.flatten(-2).view(torch.uint8)


@lru_cache
def word_bytes(size: int, bits: int) -> int:
    """The widest word, in bytes, that divides every plane of a row of `size` codes; part of the layout."""
    return next(word for word, _ in WORDS if all(size * width % (8 * word) == 0 for width in PLANES[bits]))


def _pack_plane(part: Tensor, width: int, word: int) -> Tensor:
    runs = 8 // width
    return (part.unflatten(-1, (-1, runs, word)) << _shifts(width, part.device)[:, None]).sum(-2, dtype=torch.uint8).flatten(-2)
