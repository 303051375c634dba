from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap, norm

from kvassay.errors import BadInput
from kvassay.statistics.bootstrap import bootstrap_mean_interval, bootstrap_ratio_interval


def test_two_values_by_hand():
    # Means of resamples are 0, 1/2, 1 with chances 1/4, 1/2, 1/4: the 2.5 % and 97.5 % points are the ends.
    assert bootstrap_mean_interval([0.0, 1.0], seed=1) == (0.0, 1.0)
    # At 40 % the interval runs from the 30 % to the 70 % point, both inside the middle half.
    assert bootstrap_mean_interval([0.0, 1.0], seed=1, level=0.4) == (0.5, 0.5)


def test_equal_values_have_no_width():
    assert bootstrap_mean_interval([0.25] * 9, seed=3) == (0.25, 0.25)


def test_close_to_scipys_percentile_bootstrap_and_to_theory():
    values = np.random.default_rng(0).exponential(size=400)
    low, high = bootstrap_mean_interval(list(values), seed=5, resamples=20000)
    theirs = bootstrap((values,), np.mean, n_resamples=20000, method="percentile", rng=1).confidence_interval
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.006)
    half_width = norm.ppf(0.975) * values.std() / 20
    assert high - low == pytest.approx(2 * half_width, rel=0.05)


def test_same_seed_same_interval_other_seed_another():
    values = [0.1, 0.5, 0.2, 0.9, 0.4]
    assert bootstrap_mean_interval(values, 7) == bootstrap_mean_interval(values, 7)
    assert bootstrap_mean_interval(values, 7, resamples=50) != bootstrap_mean_interval(values, 8, resamples=50)


def test_weights_are_cluster_sizes():
    # All the weight on the first: nearly every resample that holds it is near 1.
    low, high = bootstrap_mean_interval([1.0, 0.0], seed=2, level=0.4, weights=[999.0, 1.0])
    assert (low, high) == (0.999, 0.999)


def test_ratio_of_sums_by_hand():
    # Numerators are twice the denominators in every cluster, so every resample has ratio 2.
    assert bootstrap_ratio_interval([2.0, 4.0, 8.0], [1.0, 2.0, 4.0], seed=0) == pytest.approx((2.0, 2.0))


def test_many_clusters_are_drawn_in_batches():
    low, high = bootstrap_mean_interval([0.0, 1.0] * 10_000, seed=0, resamples=1000)
    assert 0.49 < low < 0.5 < high < 0.51


@pytest.mark.parametrize("values", [[], [1.0], [1.0, float("nan")], [1.0, float("inf")]])
def test_too_few_or_not_finite_is_refused(values):
    with pytest.raises(BadInput):
        bootstrap_mean_interval(values, 0)


def test_other_bad_input_is_refused():
    for options in ({"level": 0.0}, {"level": 1.0}, {"resamples": 0}, {"weights": [1.0]}, {"weights": [1.0, 0.0]}):
        with pytest.raises(BadInput):
            bootstrap_mean_interval([1.0, 2.0], 0, **options)
    with pytest.raises(BadInput, match="pair up"):
        bootstrap_ratio_interval([1.0, 2.0], [1.0, 2.0, 3.0], 0)
    with pytest.raises(BadInput, match="denominator"):
        bootstrap_ratio_interval([1.0, 2.0], [0.0, 1.0], 0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_interval_lies_within_the_values(values):
    low, high = bootstrap_mean_interval(values, 0, resamples=100)
    slack = 1e-9 * (1 + max(map(abs, values)))
    assert min(values) - slack <= low <= high <= max(values) + slack
