"""Bit packing: codes of 2 to 8 bits in rows of bytes, without waste.

A row of codes is split into planes whose widths are powers of two (5 bits = 4 + 1), because those fill whole bytes. In a plane of
`width` bits a word of bytes takes `8 / width` runs of codes, one code of the run per byte: shift and mask of a whole word unpack a
run at once.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from kvassay.numerics.quantizer import grouped

PLANES: dict[int, tuple[int, ...]] = {2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1), 6: (4, 2), 8: (8,)}
WORDS = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}


def pack_bits(codes: Tensor, bits: int) -> Tensor:
    """`codes` [..., n] uint8, each below 2**bits, as [..., n * bits / 8] uint8; every plane must fill whole bytes."""
    if bits == 8:
        return codes
    word = word_bytes(codes.shape[-1], bits)
    planes, below = [], 0
    for width in PLANES[bits]:
        part = codes >> below if below else codes
        if below + width < bits:
            part = part & ((1 << width) - 1)
        planes.append(_pack_plane(part.view(WORDS[word]), width))
        below += width
    return planes[0] if len(planes) == 1 else torch.cat(planes, dim=-1)


def unpack_bits(packed: Tensor, bits: int) -> Tensor:
    """The inverse of `pack_bits`: [..., bytes] uint8 to codes [..., bytes * 8 / bits] uint8."""
    if bits == 8:
        return packed
    size = packed.shape[-1] * 8 // bits
    word = word_bytes(size, bits)
    first, *others = PLANES[bits]
    stop = size * first // 8
    codes = _unpack_plane(packed[..., :stop], first, word).flatten(-2)
    below = first
    for width in others:
        start, stop = stop, stop + size * width // 8
        codes |= _unpack_plane(packed[..., start:stop], width, word).flatten(-2) << below
        below += width
    return codes.view(torch.uint8)


@lru_cache
def word_bytes(size: int, bits: int) -> int:
    """The widest word, in bytes, that divides every plane of a row of `size` codes; it is part of the layout."""
    return next(word for word in WORDS if all(size * width % (8 * word) == 0 for width in PLANES[bits]))


def _pack_plane(words: Tensor, width: int) -> Tensor:
    """The inverse of `_unpack_plane`, from words of one code per byte."""
    runs = grouped(words, 8 // width)
    if width == 1:  # the runs share no bit, so their sum is their union
        return (runs << _shifts(width, words.dtype, words.device)).sum(-1, dtype=words.dtype).view(torch.uint8)
    plane = runs[..., 0] | runs[..., 1] << width
    for run in range(2, 8 // width):
        plane |= runs[..., run] << run * width
    return plane.view(torch.uint8)


def _unpack_plane(plane: Tensor, width: int, word: int) -> Tensor:
    """Words [..., n, 8 / width] of one code per byte."""
    words, mask = plane.view(WORDS[word]), _mask(width, word)
    if width == 1:  # eight runs: one broadcast shift beats eight strided ones; with fewer runs it is the other way round
        return (words.unsqueeze(-1) >> _shifts(width, words.dtype, words.device)).bitwise_and_(mask)
    codes = words.new_empty((*words.shape, 8 // width))
    for run in range(8 // width):
        torch.bitwise_and(words >> run * width if run else words, mask, out=codes[..., run])
    return codes


def _mask(width: int, word: int) -> int:
    return int.from_bytes(bytes([(1 << width) - 1] * word), "little")


@lru_cache
def _shifts(width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.arange(0, 8, width, dtype=dtype, device=device)
