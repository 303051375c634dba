"""Paired comparison, with hand-computed tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvassay.errors import BadInput
from kvassay.statistics.comparison import PairedCounts, compare, count_pairs, items_needed, pooled_verdict, smallest_detectable_difference
from kvassay.statistics.sensitivity import Sensitivity

SENSITIVE = Sensitivity(True, "the canary loses all")
INSENSITIVE = Sensitivity(False, "the canary does not move it")


@pytest.mark.parametrize(
    ("disagreement", "margin", "items"),
    [
        (0.02, 0.01, 1237), (0.02, 0.02, 309), (0.02, 0.03, 137),
        (0.05, 0.01, 3091), (0.05, 0.02, 773), (0.05, 0.03, 343),
        (0.10, 0.01, 6183), (0.10, 0.02, 1546), (0.10, 0.03, 687),
    ],
)  # fmt: skip
def test_items_needed_by_hand(disagreement, margin, items):
    # (1.644854 + 0.841621)² = 6.182557; · disagreement / margin²
    assert items_needed(disagreement, margin) == items


@pytest.mark.parametrize(
    ("disagreement", "row"),
    [(0.02, (4.0, 2.8, 1.8, 1.3, 0.9, 0.6)), (0.05, (6.3, 4.4, 2.8, 2.0, 1.4, 0.9)), (0.10, (8.9, 6.3, 4.0, 2.8, 2.0, 1.3))],
)
def test_smallest_detectable_difference_table(disagreement, row):
    points = [100 * smallest_detectable_difference(disagreement, n) for n in (100, 200, 500, 1000, 2000, 5000)]
    assert points == pytest.approx(row, abs=0.051)


def test_without_a_changed_answer_the_interval_itself_sets_the_items():
    assert items_needed(0.0, 0.02) == 133
    assert compare(PairedCounts(133, 0, 0, 0), 0.02).verdict == "no_worse"
    assert compare(PairedCounts(132, 0, 0, 0), 0.02).verdict == "not_shown"


@given(st.floats(0.001, 0.5))
def test_items_when_nothing_differs_is_the_smallest_that_shows_it(margin):
    n = items_needed(0.0, margin)
    assert compare(PairedCounts(n, 0, 0, 0), margin).verdict == "no_worse"
    if n > 1:
        assert compare(PairedCounts(n - 1, 0, 0, 0), margin).verdict == "not_shown"


def test_counts_and_figures_by_hand():
    a = [True, True, True, False, False, True]
    b = [True, False, True, True, False, True]
    counts = count_pairs(a, b)
    assert counts == PairedCounts(both_right=3, right_to_wrong=1, wrong_to_right=1, both_wrong=1)
    found = compare(counts, 0.02)
    assert (found.n, found.a, found.b, found.difference, found.mcnemar_p) == (6, 4 / 6, 4 / 6, 0.0, 1.0)
    assert (found.right_to_wrong, found.wrong_to_right, found.margin) == (1, 1, 0.02)
    assert found.verdict == "not_shown"
    assert found.difference_detected is False
    # 2 of 6 answers differ: 6.182557 · 0.3333 / 0.0004 = 5152
    assert found.items_needed == 5152
    assert "6 of 5,152 items" in found.reason


def test_worse_when_the_whole_interval_is_below_zero():
    found = compare(PairedCounts(both_right=60, right_to_wrong=30, wrong_to_right=2, both_wrong=8), 0.02)
    assert (found.verdict, found.difference_detected) == ("worse", True)
    assert found.difference == pytest.approx(-0.28)
    assert found.interval.high < 0


def test_a_real_loss_within_the_margin_is_no_worse_and_detected():
    found = compare(PairedCounts(both_right=9900, right_to_wrong=60, wrong_to_right=20, both_wrong=20), 0.02)
    assert (found.verdict, found.difference_detected) == ("no_worse", True)
    assert found.interval.high < 0


def test_enough_items_yet_not_shown_names_the_interval():
    found = compare(PairedCounts(both_right=300, right_to_wrong=5, wrong_to_right=1, both_wrong=8), 0.02)
    assert found.n >= found.items_needed
    assert found.verdict == "not_shown"
    assert "interval" in found.reason


def test_insensitive_tasks_show_nothing_either_way():
    good, bad = PairedCounts(1000, 0, 0, 0), PairedCounts(0, 1000, 0, 0)
    for counts in (good, bad):
        found = compare(counts, 0.02, INSENSITIVE)
        assert found.verdict == "not_shown"
        assert INSENSITIVE.reason in found.reason


def test_a_fall_to_zero_from_a_sensitive_score_is_worse_and_named_broken():
    counts = PairedCounts(both_right=0, right_to_wrong=2, wrong_to_right=0, both_wrong=30)
    assert compare(counts, 0.20).verdict != "worse"
    found = compare(counts, 0.20, SENSITIVE)
    assert found.verdict == "worse"
    assert "broken" in found.reason


def test_two_scores_of_zero_are_no_fall():
    assert compare(PairedCounts(0, 0, 0, 500), 0.02, SENSITIVE).verdict == "no_worse"


@pytest.mark.parametrize(
    ("verdicts", "pooled"),
    [
        (["no_worse", "no_worse"], "no_worse"),
        (["no_worse", "not_shown"], "not_shown"),
        (["not_shown", "worse", "no_worse"], "worse"),
        ([], "not_shown"),
    ],
)
def test_pooled_is_the_worst(verdicts, pooled):
    assert pooled_verdict(verdicts) == pooled


@pytest.mark.parametrize("margin", [0.0, -0.1, 1.1])
def test_a_margin_that_nothing_can_show_is_refused(margin):
    with pytest.raises(BadInput, match="margin"):
        compare(PairedCounts(10, 0, 0, 0), margin)


def test_unpaired_or_empty_input_is_refused():
    with pytest.raises(BadInput, match="same items"):
        count_pairs([True], [True, False])
    with pytest.raises(BadInput, match="at least one"):
        count_pairs([], [])
    with pytest.raises(BadInput, match="no items"):
        compare(PairedCounts(0, 0, 0, 0), 0.02)
    with pytest.raises(BadInput):
        smallest_detectable_difference(0.1, 0)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.floats(0.001, 0.9))
def test_verdict_follows_the_interval(both, lost, won, neither, margin):
    if both + lost + won + neither == 0:
        return
    found = compare(PairedCounts(both, lost, won, neither), margin)
    expected = "no_worse" if found.interval.low > -margin else "worse" if found.interval.high < 0 else "not_shown"
    assert found.verdict == expected
    assert found.difference == pytest.approx(found.b - found.a)
