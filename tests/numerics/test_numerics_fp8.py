"""FP8 against ml_dtypes, exhaustively over BF16, and against torch's own cast inside its range."""

import ml_dtypes
import numpy as np
import pytest
import torch

from kvassay.numerics import disturb, quantizer

FORMATS = [
    ("fp8_e4m3", ml_dtypes.float8_e4m3fn, torch.float8_e4m3fn, 448.0),
    ("fp8_e5m2", ml_dtypes.float8_e5m2, torch.float8_e5m2, 57344.0),
]


def every_bf16() -> torch.Tensor:
    values = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    return values[values.isfinite()].reshape(-1, 2)


@pytest.mark.parametrize(("name", "oracle", "_torch_dtype", "largest"), FORMATS)
def test_every_finite_bf16_is_stored_as_ml_dtypes_would(name: str, oracle: type, _torch_dtype: torch.dtype, largest: float) -> None:
    x = every_bf16()
    expected = np.clip(x.float().numpy(), -largest, largest).astype(oracle)
    (payload,) = quantizer(name, torch.bfloat16).pack(x)
    assert np.array_equal(payload.view(torch.uint8).numpy(), expected.view(np.uint8))
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        back = quantizer(name, torch.bfloat16).unpack((payload,), dtype)
        assert back.dtype == dtype and back.shape == x.shape
        assert np.array_equal(back.float().numpy(), expected.astype(np.float32))


@pytest.mark.parametrize(("name", "oracle", "torch_dtype", "largest"), FORMATS)
def test_float32_inside_the_range_is_torchs_cast(name: str, oracle: type, torch_dtype: torch.dtype, largest: float) -> None:
    x = torch.randn(100, 64, generator=torch.Generator().manual_seed(1)) * torch.logspace(-6, 1.5, 100)[:, None]
    assert torch.equal(disturb(name, x), x.to(torch_dtype).float())


@pytest.mark.parametrize(("name", "_oracle", "_torch_dtype", "largest"), FORMATS)
def test_saturates_and_breaks_ties_to_even(name: str, _oracle: type, _torch_dtype: torch.dtype, largest: float) -> None:
    x = torch.tensor([[largest * 1.2, -largest * 3, 3e38, -float("inf")]])
    assert disturb(name, x).tolist() == [[largest, -largest, largest, -largest]]
    # Ties go to even: 17 lies between 16 and 18 of E4M3, 9 between 8 and 10 of E5M2.
    tie, even = {"fp8_e4m3": (17.0, 16.0), "fp8_e5m2": (9.0, 8.0)}[name]
    assert disturb(name, torch.tensor([tie, -tie])).tolist() == [even, -even]


def test_an_odd_number_of_elements_is_decoded_too() -> None:
    x = torch.tensor([0.1, -7.3, 500.0])
    assert disturb("fp8_e4m3", x).tolist() == [0.1015625, -7.5, 448.0]
