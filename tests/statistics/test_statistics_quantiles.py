from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvassay.errors import BadInput
from kvassay.statistics.quantiles import percentile, percentiles


def test_by_hand():
    found = percentiles([40.0, 10.0, 30.0, 20.0])
    # Ranks 1.5 and 2.7 of 10, 20, 30, 40.
    assert (found.p50, found.mean, found.n) == (25.0, 25.0, 4)
    assert found.p90 == pytest.approx(37.0)
    assert found.p99 is None
    assert found.p99_reason == "4 values; a 99th percentile is quoted from 1,000 on"


def test_p99_needs_a_thousand_values():
    assert percentiles([1.0] * 999).p99 is None
    enough = percentiles([float(x) for x in range(1000)])
    assert enough.p99 == pytest.approx(989.01)
    assert enough.p99_reason is None


def test_nothing_measured_is_null_with_reasons():
    found = percentiles([])
    assert (found.p50, found.p90, found.p99, found.mean, found.n) == (None, None, None, None, 0)
    assert {found.p50_reason, found.p90_reason, found.p99_reason, found.mean_reason} == {"no values"}


@pytest.mark.parametrize("bad", [[1.0, -0.1], [float("nan")], [float("inf")]])
def test_impossible_latencies_are_refused(bad):
    with pytest.raises(BadInput):
        percentiles(bad)


def test_percentile_of_nothing_is_refused():
    with pytest.raises(BadInput):
        percentile([], 50)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.floats(0, 100))
def test_equals_numpys_default(values, percent):
    assert percentile(sorted(values), percent) == pytest.approx(float(np.percentile(values, percent)), rel=1e-9, abs=1e-9)
