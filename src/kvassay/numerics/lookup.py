"""Decoding small codes by table: one look-up gives two neighbouring values, many times faster on a CPU than torch's FP8 casts."""

from __future__ import annotations

import torch
from torch import Tensor

# One table entry holds two values side by side; these integers carry the pair through the look-up.
PAIR_DTYPES = {1: torch.int16, 2: torch.int32, 4: torch.int64}


def pair_table(values: Tensor) -> Tensor:
    """Table over all pairs of codes from `values` [codes]: entry `low + codes * high` holds (values[low], values[high])."""
    codes = values.shape[0]
    pairs = torch.stack((values.expand(codes, codes), values.unsqueeze(-1).expand(codes, codes)), dim=-1)
    return pairs.contiguous().view(PAIR_DTYPES[values.element_size()]).flatten()


def look_up(codes: Tensor, table: Tensor) -> Tensor:
    """Values of `table` [256] at `codes` (uint8), in the shape of `codes`."""
    return table.index_select(0, codes.flatten().int()).view(codes.shape)


def look_up_pairs(indices: Tensor, table: Tensor, dtype: torch.dtype) -> Tensor:
    """Values [..., 2 n] of `dtype` for `indices` [..., n] (int32) into a `pair_table` of that dtype."""
    return table.index_select(0, indices.flatten()).view(indices.shape).view(dtype)
