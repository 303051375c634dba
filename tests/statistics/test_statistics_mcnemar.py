from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar

from kvassay.errors import BadInput
from kvassay.statistics.mcnemar import exact_mcnemar_p


@pytest.mark.parametrize(
    ("lost", "won", "p"),
    # 2 · (tail of a fair coin): 0 of 5 -> 2/32; 1 of 6 -> 2·(1+6)/64; 2 of 7 -> 2·(1+7+21)/128
    [(0, 0, 1.0), (5, 0, 0.0625), (0, 5, 0.0625), (6, 0, 0.03125), (5, 1, 0.21875), (2, 5, 0.453125), (3, 3, 1.0), (1, 0, 1.0)],
)
def test_by_hand(lost, won, p):
    assert exact_mcnemar_p(lost, won) == p


@given(st.integers(0, 400), st.integers(0, 400))
def test_equals_statsmodels(lost, won):
    if lost + won == 0:
        return
    assert exact_mcnemar_p(lost, won) == pytest.approx(mcnemar([[3, lost], [won, 4]], exact=True).pvalue, rel=1e-9)


def test_many_changed_answers_do_not_overflow():
    assert 0 < exact_mcnemar_p(3000, 2900) < 1
    assert exact_mcnemar_p(4000, 0) == pytest.approx(0, abs=1e-300)


def test_negative_counts_are_refused():
    with pytest.raises(BadInput):
        exact_mcnemar_p(-1, 4)
