"""Forward KL: direction and size by hand, exact zero for identity, and no loss of small values."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

from kvassay.scoring import kl as kl_module
from kvassay.scoring.kl import forward_kl


def test_direction_and_size_by_hand() -> None:
    half, quarter = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.25, 0.75]]).log()
    # KL(half || quarter) = 1/2 ln(2) + 1/2 ln(2/3) = 1/2 ln(4/3); KL(quarter || half) = 1/4 ln(1/2) + 3/4 ln(3/2).
    assert forward_kl(half, quarter).item() == pytest.approx(0.5 * math.log(4 / 3), rel=1e-6)
    assert forward_kl(quarter, half).item() == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5), rel=1e-6)


def test_identity_is_exactly_zero_and_a_constant_changes_nothing() -> None:
    logits = torch.randn(3, 5, 700, generator=torch.Generator().manual_seed(0)) * 5
    assert forward_kl(logits, logits).tolist() == [[0.0] * 5] * 3
    assert forward_kl(logits, logits + 3).abs().max().item() < 1e-9


@pytest.mark.parametrize("size", [1e-4, 1e-2, 1.0, 10.0, 60.0])
def test_matches_double_precision_at_every_size(size: float) -> None:
    generator = torch.Generator().manual_seed(1)
    reference = torch.randn(8, 4000, generator=generator) * 3
    candidate = reference + size * torch.randn(8, 4000, generator=generator)
    a, b = reference.double().log_softmax(-1), candidate.double().log_softmax(-1)
    torch.testing.assert_close(forward_kl(reference, candidate).double(), (a.exp() * (a - b)).sum(-1), rtol=2e-3, atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(-8, 8), st.floats(-8, 8)), min_size=2, max_size=40))
def test_matches_scipy(pairs: list[tuple[float, float]]) -> None:
    reference, candidate = (torch.tensor([side]) for side in zip(*pairs, strict=True))
    p, q = (np.exp(x.double().log_softmax(-1).numpy()[0]) for x in (reference, candidate))
    assert forward_kl(reference, candidate).item() == pytest.approx(entropy(p, q), rel=1e-4, abs=1e-7)


def test_tiles_and_kept_probabilities_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reference, candidate = torch.randn(2, 7, 50), torch.randn(2, 7, 50)
    whole = forward_kl(reference, candidate)
    monkeypatch.setattr(kl_module, "TILE_ELEMENTS", 150)
    torch.testing.assert_close(forward_kl(reference, candidate), whole)
    torch.testing.assert_close(forward_kl(reference, candidate, reference.softmax(-1)), whole)


def test_nan_stays_visible_and_shapes_must_agree() -> None:
    reference = torch.zeros(2, 4)
    broken = torch.tensor([[0.0, 1.0, 2.0, 3.0], [float("nan"), 0.0, 0.0, 0.0]])
    assert torch.isnan(forward_kl(reference, broken)[1])
    with pytest.raises(ValueError, match="differ"):
        forward_kl(reference, reference[:, :3])
