"""What every format keeps: bytes by its law, finite output, error bounds, independent rows, one rounding, NaN kept in sight."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvassay.errors import BadInput
from kvassay.formats import FORMATS
from kvassay.numerics import QUANTIZERS, disturb, quantizer

HEAD_DIM = 128
EVERY = list(QUANTIZERS)
EXTREMES = [0.0, -0.0, 1e-45, -1e-45, 1.2e-38, 6e-8, 1e-3, 448.0, 65504.0, 65536.0, -1e30, 3.4028234e38, -3.4028234e38]


def rows(values: list[float]) -> torch.Tensor:
    """One row of `values`, repeated to head_dim."""
    return torch.tensor(values, dtype=torch.float32).repeat(HEAD_DIM // len(values) + 1)[:HEAD_DIM].reshape(1, HEAD_DIM)


def test_every_format_has_numerics() -> None:
    assert list(QUANTIZERS) == list(FORMATS)
    assert all(QUANTIZERS[name].law is FORMATS[name] for name in EVERY)
    assert quantizer("native", torch.bfloat16) is QUANTIZERS["bf16"]
    with pytest.raises(BadInput, match="no reference numerics"):
        quantizer("int7_g64", torch.bfloat16)
    with pytest.raises(BadInput, match="native dtype"):
        quantizer("native", torch.float64)


@pytest.mark.parametrize("head_dim", [16, 32, 64, 80, 96, 128, 192, 256])
@pytest.mark.parametrize("name", EVERY)
def test_storage_is_the_law(name: str, head_dim: int) -> None:
    law = FORMATS[name]
    quantize = quantizer(name, torch.bfloat16)
    x = torch.randn(2, 3, 5, head_dim)
    if law.why_illegal(head_dim):
        with pytest.raises(BadInput):
            quantize.pack(x)
        return
    storage, packed = quantize.empty((2, 3, 5), head_dim, "cpu"), quantize.pack(x)
    assert sum(part.nbytes for part in storage) == 30 * law.row_bytes(head_dim)
    assert storage[0].nbytes == 30 * law.payload_bytes(head_dim)
    assert [(part.shape, part.dtype) for part in storage] == [(part.shape, part.dtype) for part in packed]
    assert quantize.unpack(packed, torch.bfloat16).shape == x.shape


@pytest.mark.parametrize("name", EVERY)
@given(
    values=st.lists(
        st.one_of(st.sampled_from(EXTREMES), st.floats(width=32, allow_nan=False, allow_infinity=False)), min_size=1, max_size=HEAD_DIM
    )
)
@settings(max_examples=25, deadline=None)
def test_never_nan_or_infinite(name: str, values: list[float]) -> None:
    quantize = quantizer(name, torch.float32)
    packed = quantize.pack(rows(values))
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert quantize.unpack(packed, dtype).isfinite().all()


@pytest.mark.parametrize("name", [name for name in EVERY if name != "f32"])
def test_infinities_saturate(name: str) -> None:
    back = disturb(name, rows([torch.inf, -torch.inf, 1.0]))
    assert back.isfinite().all()
    assert back[0, 0] == back.max() > 0 > back[0, 1] == back.min()


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_all_inputs_of_a_dtype_stay_finite_in_it(name: str, dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max
    x = torch.tensor([largest, -largest, torch.finfo(dtype).tiny, 0.0], dtype=dtype).repeat(32).reshape(1, HEAD_DIM)
    back = disturb(name, x)
    assert back.dtype == dtype
    assert back.isfinite().all()


@pytest.mark.parametrize("name", EVERY)
@given(scale=st.floats(1e-2, 50), shift=st.floats(-20, 20), seed=st.integers(0, 2**31))
@settings(max_examples=15, deadline=None)
def test_error_is_within_half_a_step(name: str, scale: float, shift: float, seed: int) -> None:
    law = FORMATS[name]
    x = torch.randn(4, HEAD_DIM, generator=torch.Generator().manual_seed(seed)) * scale + shift
    groups = x.reshape(4, -1, law.group or HEAD_DIM)
    low, high = groups.amin(-1, keepdim=True), groups.amax(-1, keepdim=True)
    absmax = groups.abs().amax(-1, keepdim=True)
    if law.source.startswith("affine"):
        # Half a step, and what FP16 rounding of the offset and of `levels` scales can move the ends.
        bound = (high - low) / (2**law.element_bits - 1) / 2 + (high - low) * 2.0**-11 + absmax * 2.0**-11 + 2.0**-14
    else:
        # Relative half steps of the element: mantissa bits + 1; block formats add the step below their largest value.
        bound = {
            "f32": 0 * absmax,
            "bf16": groups.abs() * 2.0**-8,
            "f16": groups.abs() * 2.0**-11 + 2.0**-24,
            "fp8_e4m3": groups.abs() * 2.0**-4 + 2.0**-10,
            "fp8_e5m2": groups.abs() * 2.0**-3 + 2.0**-17,
            "nvfp4": absmax / 6 * 1.07 + 6 * 2.0**-10,
            "mxfp4": absmax / 4 * 1.01,
            "int8_token_head": absmax / 127 * 0.501,
        }[name]
    assert ((disturb(name, x).reshape(groups.shape) - groups).abs() <= bound).all()


@pytest.mark.parametrize("name", EVERY)
def test_rows_are_independent_and_bytes_are_the_same_one_by_one(name: str) -> None:
    x = torch.randn(1, 3, 37, HEAD_DIM, generator=torch.Generator().manual_seed(5)).bfloat16() * 4
    quantize = quantizer(name, torch.bfloat16)
    at_once = quantize.pack(x)
    one_by_one = [quantize.pack(x[:, :, t : t + 1]) for t in range(37)]
    for index, part in enumerate(at_once):
        joined = torch.cat([piece[index].contiguous().view(torch.uint8) for piece in one_by_one], dim=2)
        assert torch.equal(joined, part.contiguous().view(torch.uint8))
    transposed = x.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(disturb(name, transposed), disturb(name, x))


@pytest.mark.parametrize("name", EVERY)
def test_narrow_output_is_the_fp32_output_rounded_once(name: str) -> None:
    x = torch.randn(20, HEAD_DIM, generator=torch.Generator().manual_seed(6)) * 3
    quantize = quantizer(name, torch.float32)
    packed = quantize.pack(x)
    before = [part.contiguous().view(torch.uint8).clone() for part in packed]
    wide = quantize.unpack(packed, torch.float32)
    assert torch.equal(quantize.unpack(packed, torch.bfloat16), wide.bfloat16())
    assert torch.equal(quantize.unpack(packed, torch.float16), wide.half())
    assert all(torch.equal(part.contiguous().view(torch.uint8), old) for part, old in zip(packed, before, strict=True))


@pytest.mark.parametrize("name", ["bf16", "f16", "f32", "fp8_e4m3", "fp8_e5m2", "nvfp4", "mxfp4"])
def test_packing_twice_changes_nothing_more(name: str) -> None:
    x = torch.randn(200, HEAD_DIM, generator=torch.Generator().manual_seed(7))
    once = disturb(name, x)
    assert torch.equal(disturb(name, once), once)


@pytest.mark.parametrize("name", EVERY)
def test_nan_stays_in_sight_and_in_its_row(name: str) -> None:
    x = torch.ones(2, HEAD_DIM)
    x[0, 3] = torch.nan
    back = disturb(name, x)
    assert back[0, 3].isnan()
    assert back[1].isfinite().all()


@pytest.mark.parametrize("name", EVERY)
def test_input_is_left_alone(name: str) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.randn(3, HEAD_DIM).to(dtype)
        before = x.clone()
        disturb(name, x)
        assert torch.equal(x, before)


def test_native_is_the_input_itself() -> None:
    x = torch.randn(3, 7)
    assert disturb("native", x) is x


def test_integers_are_refused() -> None:
    with pytest.raises(BadInput, match="floating-point"):
        quantizer("fp8_e4m3", torch.float32).pack(torch.zeros(2, 64, dtype=torch.int32))


@pytest.mark.parametrize("name", EVERY)
def test_rounding_carries_no_gradient(name: str) -> None:
    x = torch.randn(2, HEAD_DIM, requires_grad=True)
    assert not disturb(name, x).requires_grad
    assert disturb("native", x).requires_grad
