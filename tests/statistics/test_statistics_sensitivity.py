from __future__ import annotations

import pytest
from scipy.stats import beta

from kvassay.errors import BadInput
from kvassay.statistics.sensitivity import judge_sensitivity, lower_bound


@pytest.mark.parametrize(("right", "n"), [(1, 12), (3, 12), (12, 12), (40, 320), (16, 16)])
def test_lower_bound_equals_the_beta_quantile(right, n):
    assert lower_bound(right, n) == pytest.approx(beta.ppf(0.05, right, n - right + 1), abs=1e-9)


def test_lower_bound_of_nothing_is_zero():
    assert lower_bound(0, 10) == 0.0
    with pytest.raises(BadInput):
        lower_bound(3, 2)


def judged(native, canary, chance=0.0, margin=0.02):
    return judge_sensitivity(native, canary, native[: len(canary or [])], chance, margin)


def test_a_canary_that_loses_everything_makes_a_task_sensitive():
    found = judged([True] * 12, [False] * 12)
    assert found.sensitive
    assert "loses 12" in found.reason


def test_near_chance_is_insensitive():
    found = judged([True] + [False] * 11, [False] * 12)
    assert not found.sensitive
    assert "too near chance" in found.reason
    # Half right where a guess is half right shows nothing, however many items.
    assert not judged([True, False] * 100, [False] * 200, chance=0.5).sensitive


def test_two_of_twelve_are_above_a_chance_of_zero():
    # Lower bound of 2/12 is 0.030, above 0.02; the canary must then lose enough to be seen, and two are too few.
    found = judged([True, True] + [False] * 10, [False] * 12)
    assert "canary does not move it" in found.reason


def test_at_the_ceiling_with_no_room_is_insensitive():
    found = judged([True] * 100, [True] * 99 + [False])
    assert not found.sensitive
    assert "ceiling" in found.reason


def test_an_unmoved_canary_away_from_the_ceiling():
    found = judged([True, False] * 10, [True, False] * 10)
    assert not found.sensitive
    assert "ceiling" not in found.reason
    assert "canary does not move it" in found.reason


def test_a_canary_that_only_gains_does_not_move_it():
    assert not judged([True, False] * 20, [True] * 40).sensitive


def test_four_of_four_lost_is_not_yet_seen_and_five_are():
    # One-sided: 1/16 = 0.0625, 1/32 = 0.03125.
    assert not judged([True] * 5, [False] * 4 + [True]).sensitive
    assert judged([True] * 5, [False] * 5).sensitive


def test_without_a_canary_nothing_is_known():
    assert not judged([True] * 20, None).sensitive
    assert "no canary" in judged([True] * 20, None).reason
    assert not judge_sensitivity([], None, [], 0.0, 0.02).sensitive


def test_canary_and_native_must_pair_up():
    with pytest.raises(BadInput):
        judge_sensitivity([True] * 5, [False] * 5, [True] * 4, 0.0, 0.02)
