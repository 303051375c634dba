"""Tango's interval against published figures and against the score test derived anew from the multinomial likelihood."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

from kvassay.errors import BadInput
from kvassay.statistics.tango import score_statistic, tango_interval


@pytest.mark.parametrize(
    ("lost", "won", "n", "low", "high"),
    [
        # Fagerland, Lydersen, Laake, Statistical Analysis of Contingency Tables, ch. 8: airway data, n12 = 1, n21 = 7, N = 21.
        (7, 1, 21, -0.517, -0.026),
        # Newcombe 1998's example (36, 12, 2, 0): score interval 0.0611 to 0.3447.
        (2, 12, 50, 0.0611, 0.3447),
    ],
)
def test_published_95_percent_intervals(lost, won, n, low, high):
    interval = tango_interval(lost, won, n, level=0.95)
    assert interval.low == pytest.approx(low, abs=6e-4)
    assert interval.high == pytest.approx(high, abs=6e-4)


def test_no_changed_answer_has_the_closed_form():
    # With both counts 0 the limits are ± z² / (n + z²).
    square = norm.ppf(0.95) ** 2
    interval = tango_interval(0, 0, 100)
    assert interval.level == 0.90
    assert interval.high == pytest.approx(square / (100 + square), abs=1e-9)
    assert interval.low == pytest.approx(-square / (100 + square), abs=1e-9)


def test_all_lost_reaches_minus_one():
    assert tango_interval(5, 0, 5).low == -1.0
    assert tango_interval(0, 5, 5).high == 1.0


def independent_statistic(won, lost, n, difference):
    """The same test from its definition: constrained maximum of the multinomial likelihood, found numerically."""

    def minus_log_likelihood(q):
        p = q + difference
        rest = 1 - p - q
        return -sum(count * math.log(max(share, 1e-300)) for count, share in ((won, p), (lost, q), (n - won - lost, rest)) if count)

    low, high = max(0.0, -difference), (1 - difference) / 2
    q = minimize_scalar(minus_log_likelihood, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
    return (won - lost - n * difference) / math.sqrt(n * (2 * q + difference - difference**2))


@pytest.mark.parametrize(("lost", "won", "n"), [(1, 3, 20), (9, 2, 40), (4, 4, 12), (30, 10, 400)])
def test_limits_solve_the_independently_derived_score_equation(lost, won, n):
    interval = tango_interval(lost, won, n)
    z = norm.ppf(0.95)
    observed = (won - lost) / n
    low = brentq(lambda d: independent_statistic(won, lost, n, d) - z, -0.99, observed)
    high = brentq(lambda d: independent_statistic(won, lost, n, d) + z, observed, 0.99)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-5)


counts = st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 200)).filter(lambda c: sum(c) > 0)


@given(counts)
def test_interval_holds_the_observed_difference_and_mirrors(count):
    lost, won, same = count
    n = lost + won + same
    interval, mirrored = tango_interval(lost, won, n), tango_interval(won, lost, n)
    assert -1 <= interval.low <= (won - lost) / n <= interval.high <= 1
    assert (interval.low, interval.high) == pytest.approx((-mirrored.high, -mirrored.low), abs=1e-12)
    assert interval.high > interval.low


@given(counts, st.floats(-0.95, 0.95), st.floats(0.001, 0.05))
def test_statistic_falls_as_the_difference_rises(count, difference, step):
    lost, won, same = count
    n = lost + won + same
    assert score_statistic(won, lost, n, difference + step) <= score_statistic(won, lost, n, difference) + 1e-9


def test_statistic_at_zero_is_mcnemars():
    # (won − lost) / √(won + lost) = (3 − 12) / √15
    assert score_statistic(3, 12, 50, 0.0) == pytest.approx(-9 / math.sqrt(15))


@pytest.mark.parametrize(("lost", "won", "n", "level"), [(3, 3, 5, 0.9), (-1, 0, 5, 0.9), (0, 0, 0, 0.9), (0, 0, 5, 1.0), (0, 0, 5, 0.0)])
def test_impossible_counts_and_levels_are_refused(lost, won, n, level):
    with pytest.raises(BadInput):
        tango_interval(lost, won, n, level)
