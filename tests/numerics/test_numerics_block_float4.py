"""NVFP4 and MXFP4 by hand, and element by element against ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kvassay.numerics import disturb, quantizer
from kvassay.numerics.block_float4 import encode_e2m1

NVFP4 = quantizer("nvfp4", torch.float32)
MXFP4 = quantizer("mxfp4", torch.float32)


def row(values: list[float], size: int) -> torch.Tensor:
    return torch.tensor([values + [0.0] * (size - len(values))])


def nibbles(payload: torch.Tensor) -> np.ndarray:
    both = payload.numpy()
    return np.stack((both & 15, both >> 4), axis=-1).reshape(*both.shape[:-1], -1)


def near_every_boundary() -> torch.Tensor:
    middles = torch.tensor([0.0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7])
    up, down = torch.nextafter(middles, torch.tensor(torch.inf)), torch.nextafter(middles, torch.tensor(-torch.inf))
    values = torch.cat((middles, up, down, torch.linspace(0, 8, 1601)))
    values = torch.cat((values, -values))
    return torch.cat((values, torch.zeros(-len(values) % 32)))


def test_elements_round_like_ml_dtypes_float4() -> None:
    x = near_every_boundary().reshape(1, -1)
    codes = nibbles(encode_e2m1(x, torch.ones(1, 1)))
    expected = np.clip(x.numpy(), -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8).ravel()
    assert np.array_equal(codes, expected)


def test_nvfp4_by_hand() -> None:
    # amax 3 gives the scale 3/6 = 0.5; quotients 6, 1, -0.5, 0.26 / 0.5 = 0.52, 2.5 (tie, down to even 2), -5 (tie, to 4).
    x = row([3.0, 0.5, -0.25, 0.26, 1.25, -2.5], 16)
    payload, scales = NVFP4.pack(x)
    assert scales.float().tolist() == [[0.5]]
    # Codes 7, 2, 1 | 8, 1, 4, 6 | 8; the even element is the low nibble.
    assert payload.tolist() == [[7 | 2 << 4, 9 | 1 << 4, 4 | 14 << 4, 0, 0, 0, 0, 0]]
    assert NVFP4.unpack((payload, scales), torch.float32).tolist() == row([3.0, 0.5, -0.25, 0.25, 1.0, -2.0], 16).tolist()


def test_nvfp4_scale_is_rounded_to_e4m3_and_saturates() -> None:
    # 1/6 = 0.16667 lies between 0.15625 and 0.171875 of E4M3: the scale is 0.171875 and the largest comes back as 6 x that.
    _, scales = NVFP4.pack(row([1.0], 16))
    assert scales.float().tolist() == [[0.171875]]
    assert disturb("nvfp4", row([1.0], 16))[0, 0] == 1.03125
    assert disturb("nvfp4", row([1e30, -1e30, 1.0], 16)).tolist() == row([2688.0, -2688.0, 0.0], 16).tolist()
    # Half of the smallest E4M3 is the largest scale that vanishes: 6 x 2**-10.
    assert disturb("nvfp4", row([6 * 2.0**-10], 16)).tolist() == row([], 16).tolist()
    assert disturb("nvfp4", row([7 * 2.0**-10], 16)).tolist() == row([4 * 2.0**-9], 16).tolist()


def test_nvfp4_scales_are_ml_dtypes_casts() -> None:
    x = torch.randn(500, 32, generator=torch.Generator().manual_seed(2)) * torch.logspace(-5, 5, 500)[:, None]
    _, scales = NVFP4.pack(x)
    expected = np.minimum(np.abs(x.numpy()).reshape(500, 2, 16).max(-1) / np.float32(6), 448).astype(ml_dtypes.float8_e4m3fn)
    assert np.array_equal(scales.view(torch.uint8).numpy(), expected.view(np.uint8))


def test_mxfp4_by_hand() -> None:
    # amax 7: floor(log2 7) = 2, so the scale is 2**0, stored as 127; 7 saturates to 6, 0.75 is a tie between 0.5 and 1.
    x = row([7.0, 5.0, -0.75, 0.3], 32)
    payload, exponents = MXFP4.pack(x)
    assert exponents.tolist() == [[127]]
    assert payload[0, :2].tolist() == [7 | 6 << 4, 10 | 1 << 4]
    assert MXFP4.unpack((payload, exponents), torch.float32).tolist() == row([6.0, 4.0, -1.0, 0.5], 32).tolist()
    # amax 0.1: floor(log2) = -4, the scale 2**-6; 0.1 x 64 = 6.4 becomes 6.
    assert disturb("mxfp4", row([0.1], 32))[0, 0] == 6 / 64


@given(st.floats(min_value=-(2.0**120), max_value=2.0**120, width=32, allow_nan=False))
def test_mxfp4_exponent_follows_the_specification(value: float) -> None:
    _, exponents = MXFP4.pack(row([value], 32))
    if abs(value) < 2.0**-125:
        assert exponents.item() == 0
    else:
        assert float(exponents.numpy().view(ml_dtypes.float8_e8m0fnu)[0, 0]) == 2.0 ** (np.frexp(abs(value))[1] - 1 - 2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_mxfp4_reaches_both_ends_of_float32(dtype: torch.dtype) -> None:
    largest = disturb("mxfp4", row([3e38, -3e38], 32).to(dtype)).float()
    assert largest[0, :2].tolist() == [6 * 2.0**125, -6 * 2.0**125]
    smallest = row([2.0**-127, -(2.0**-128)], 32).to(dtype)
    assert torch.equal(disturb("mxfp4", smallest), smallest)
