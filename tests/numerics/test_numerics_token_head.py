"""int8 with one scale per token and head, by hand and against numpy."""

import numpy as np
import torch

from kvassay.numerics import disturb, quantizer

INT8 = quantizer("int8_token_head", torch.float32)


def test_by_hand() -> None:
    # absmax 254: scale 2. 3 is 1.5 steps (tie, to 2), 5 is 2.5 (tie, to 2), -254 is -127.
    payload, scales = INT8.pack(torch.tensor([[254.0, 3.0, 5.0, -254.0, 0.9]]))
    assert scales.tolist() == [[2.0]]
    assert payload.tolist() == [[127, 2, 2, -127, 0]]
    assert INT8.unpack((payload, scales), torch.float32).tolist() == [[254.0, 4.0, 4.0, -254.0, 0.0]]


def test_against_numpy() -> None:
    x = np.random.default_rng(4).standard_normal((50, 2, 64)).astype(np.float32) * np.logspace(-30, 30, 50, dtype=np.float32)[:, None, None]
    scale = np.abs(x).max(-1, keepdims=True) / np.float32(127)
    expected = np.rint(x / scale)
    payload, scales = INT8.pack(torch.from_numpy(x))
    assert np.array_equal(scales.numpy(), scale)
    assert np.array_equal(payload.numpy(), expected)
    assert np.array_equal(INT8.unpack((payload, scales), torch.float32).numpy(), expected.astype(np.float32) * scale)


def test_rows_have_scales_of_their_own_and_zeros_stay() -> None:
    x = torch.tensor([[0.0, 0.0], [1e-3, -1e-3], [1e6, 0.0]])
    assert torch.allclose(disturb("int8_token_head", x), x, rtol=1e-6)
    assert disturb("int8_token_head", x)[0].tolist() == [0.0, 0.0]
