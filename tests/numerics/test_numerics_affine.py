"""Affine integers by hand and against a plain numpy version."""

import numpy as np
import pytest
import torch

from kvassay.errors import BadInput
from kvassay.formats import FORMATS
from kvassay.numerics import disturb, quantizer

AFFINE = [name for name, law in FORMATS.items() if law.source.startswith("affine")]


def numpy_affine(x: np.ndarray, bits: int, group: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, (scale, offset) in FP16, and values in FP32; straight from the definition."""
    groups = x.astype(np.float32).reshape(*x.shape[:-1], -1, group)
    low, high = groups.min(-1), groups.max(-1)
    scale = np.clip((high - low) / np.float32(2**bits - 1), 0, 65504).astype(np.float16)
    offset = np.clip(low, -65504, 65504).astype(np.float16)
    wide = scale.astype(np.float32)[..., None], offset.astype(np.float32)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        codes = np.where(wide[0] == 0, 0, np.clip(np.rint((groups - wide[1]) / wide[0]), 0, 2**bits - 1))
    return codes.reshape(x.shape), np.stack((scale, offset), -1), (codes * wide[0] + wide[1]).astype(np.float32).reshape(x.shape)


def test_every_affine_format_is_here() -> None:
    assert len(AFFINE) == 18


def test_int4_by_hand() -> None:
    # From -2 to 5.5 in 15 steps: scale 0.5, offset -2. 0.3 is 4.6 steps up; 0.25 is 4.5 steps up, a tie, to even 4.
    x = torch.full((1, 32), -2.0)
    x[0, :5] = torch.tensor([5.5, 0.3, 0.25, 0.75, -2.0])
    quantize = quantizer("int4_g32", torch.float32)
    packed = quantize.pack(x)
    assert packed[1].tolist() == [[[0.5, -2.0]]]
    assert quantize.unpack(packed, torch.float32)[0, :5].tolist() == [5.5, 0.5, 0.0, 1.0, -2.0]


@pytest.mark.parametrize("name", AFFINE)
def test_against_numpy(name: str) -> None:
    law = FORMATS[name]
    group = law.group or 0
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((40, 3, 128)) * np.logspace(-6, 5, 40)[:, None, None] + rng.standard_normal((40, 3, 1))).astype(np.float32)
    _, scales, values = numpy_affine(x, law.element_bits, group)
    quantize = quantizer(name, torch.float32)
    packed = quantize.pack(torch.from_numpy(x))
    assert np.array_equal(packed[1].numpy(), scales)
    assert np.array_equal(quantize.unpack(packed, torch.float32).numpy(), values)


@pytest.mark.parametrize("name", AFFINE)
def test_constant_groups_and_overflow(name: str) -> None:
    levels = 2 ** FORMATS[name].element_bits - 1
    assert torch.equal(disturb(name, torch.full((2, 128), -3.5)), torch.full((2, 128), -3.5))
    assert torch.equal(disturb(name, torch.zeros(2, 128)), torch.zeros(2, 128))
    # The offset saturates, the scale vanishes: a constant beyond FP16 comes back as the largest FP16.
    assert torch.equal(disturb(name, torch.full((1, 128), 1e6)), torch.full((1, 128), 65504.0))
    wide = torch.zeros(1, 128)
    wide[:, ::2] = 3e38
    wide[:, 1::2] = -3e38
    back = disturb(name, wide)
    assert torch.equal(back[:, ::2], torch.full((1, 64), 65504.0 * levels - 65504.0))
    assert torch.equal(back[:, 1::2], torch.full((1, 64), -65504.0))


def test_a_group_that_does_not_divide_is_refused() -> None:
    with pytest.raises(BadInput, match="group 128 does not divide head_dim 64"):
        quantizer("int4_g128", torch.float32).pack(torch.zeros(1, 64))
