"""The KL estimate from top-k log-probabilities against full KL."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, rel_entr

from kvassay.tasks.top_k_rest import most_likely, top_k_rest_kl


def top(logprobs, k):
    return {int(token): float(logprobs[token]) for token in np.argsort(-logprobs)[:k]}


def test_by_hand():
    # p = (1/2, 1/4, 1/4), q = (1/4, 1/4, 1/2), only token 0 named by both:
    # 1/2 ln 2 + 1/2 ln((1/2) / (3/4)) = 1/2 ln(4/3)
    p, q = {0: math.log(0.5), 1: math.log(0.25)}, {2: math.log(0.5), 0: math.log(0.25)}
    assert top_k_rest_kl(p, q) == pytest.approx(0.5 * math.log(4 / 3))


def test_direction_is_reference_first():
    p, q = {0: math.log(0.9), 1: math.log(0.1)}, {0: math.log(0.5), 1: math.log(0.5)}
    assert top_k_rest_kl(p, q) == pytest.approx(0.9 * math.log(1.8) + 0.1 * math.log(0.2), abs=1e-5)
    assert top_k_rest_kl(q, p) == pytest.approx(0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(5), abs=1e-5)


def test_identical_answers_give_exactly_zero():
    logprobs = log_softmax(np.random.default_rng(0).normal(size=5000) * 3)
    assert top_k_rest_kl(top(logprobs, 200), top(logprobs, 200)) == 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 5, 50, 400]), st.floats(0.01, 3.0), st.floats(0.5, 6.0))
def test_a_lower_bound_that_meets_full_kl_when_every_token_is_named(seed, k, disturbance, sharpness):
    random = np.random.default_rng(seed)
    logits = random.normal(size=400) * sharpness
    p, q = log_softmax(logits), log_softmax(logits + random.normal(size=400) * disturbance)
    full = float(rel_entr(np.exp(p), np.exp(q)).sum())
    estimate = top_k_rest_kl(top(p, k), top(q, k))
    assert estimate <= full + 1e-5
    if k == 400:
        assert estimate == pytest.approx(full, rel=1e-3, abs=2e-5)


@given(st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_naming_more_tokens_tightens_the_bound(seed):
    random = np.random.default_rng(seed)
    logits = random.normal(size=300) * 3
    p, q = log_softmax(logits), log_softmax(logits + random.normal(size=300))
    bounds = []
    for k in (10, 100, 300):
        named = set(top(p, k)) & set(top(q, k))
        bounds.append(top_k_rest_kl({t: float(p[t]) for t in named}, {t: float(q[t]) for t in named}))
    assert bounds[0] <= bounds[1] + 1e-6
    assert bounds[1] <= bounds[2] + 1e-5


def test_rounded_logprobs_that_sum_above_one_do_not_break_it():
    # FP32 rounding can push the named mass above 1: the rest is then nothing, on either side.
    p, q = {0: 1e-6, 1: -14.0}, {0: 0.0, 1: -13.0}
    assert math.isfinite(top_k_rest_kl(p, q))
    assert abs(top_k_rest_kl(p, q)) < 1e-4


def test_nothing_in_common_says_nothing():
    assert top_k_rest_kl({0: -0.1}, {1: -0.1}) == pytest.approx(0.0)


def test_most_likely_breaks_ties_by_id():
    assert most_likely({7: -1.0, 3: -1.0, 9: -2.0}) == 3
