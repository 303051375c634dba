"""Bit packing: lossless, without waste, one bit changed changes one code."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvassay.numerics.packing import PLANES, pack_bits, unpack_bits


@given(
    st.sampled_from(sorted(PLANES)),
    st.sampled_from([8, 16, 24, 32, 64, 96, 128]),
    st.lists(st.integers(1, 3), max_size=3),
    st.integers(0, 2**31),
)
@settings(max_examples=80, deadline=None)
def test_round_trip_without_waste(bits: int, size: int, leading: list[int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(0, 2**bits, (*leading, size), dtype=torch.uint8, generator=generator)
    packed = pack_bits(codes, bits)
    assert packed.dtype == torch.uint8
    assert packed.shape == (*leading, size * bits // 8)
    assert torch.equal(unpack_bits(packed, bits), codes)


@pytest.mark.parametrize("bits", sorted(PLANES))
def test_every_stored_bit_belongs_to_one_code(bits: int) -> None:
    zeros = torch.zeros(64 * bits // 8, dtype=torch.uint8)
    seen = set()
    for byte in range(len(zeros)):
        for bit in range(8):
            one = zeros.clone()
            one[byte] = 1 << bit
            codes = unpack_bits(one, bits)
            (place,) = codes.nonzero().flatten().tolist()
            seen.add((place, int(codes[place])))
    assert seen == {(place, 1 << bit) for place in range(64) for bit in range(bits)}


@pytest.mark.parametrize("bits", sorted(PLANES))
def test_rows_of_a_larger_store_unpack_in_place(bits: int) -> None:
    codes = torch.randint(0, 2**bits, (1, 3, 10, 64), dtype=torch.uint8, generator=torch.Generator().manual_seed(bits))
    store = torch.full((1, 3, 17, 64 * bits // 8), 255, dtype=torch.uint8)
    store[:, :, :10] = pack_bits(codes, bits)
    before = store.clone()
    assert torch.equal(unpack_bits(store[:, :, :10], bits), codes)
    assert torch.equal(store, before)
