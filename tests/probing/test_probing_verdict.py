"""Every branch of the probe's verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvassay.probing.observed import Expected, Shown, loss
from kvassay.probing.verdict import judge

N = 20
EXPECTED = Expected(quantized=True, bytes_per_token=11520, capacity_ratio=2.0, predicted_kl_nats=(0.02,) * N)
SHOWN = Shown(
    formats_differ=(),
    bytes_per_token=11520.0,
    capacity_tokens=2000,
    capacity_ratio=2.0,
    served_kl_nats=(0.022,) * N,
    top1_agreement=0.95,
)
FLOOR = 0.001


def verdict(expected=EXPECTED, shown=SHOWN, floor=FLOOR):
    found, reasons = judge(expected, shown, loss(expected, shown, floor, seed=0))
    assert reasons
    return found, "; ".join(reasons)


def served(nats):
    return replace(SHOWN, served_kl_nats=(nats,) * N)


def test_conforms_with_ratio_and_floor_removed():
    found, why = verdict()
    assert found == "conforms"
    # (0.022 − 0.001) ÷ 0.02
    assert "1.05 times the predicted [1.05, 1.05] over 20 documents" in why


@pytest.mark.parametrize(
    ("nats", "expected"),
    # Floor 0.001, predicted 0.02: ratios 0.60, 0.70, 1.45, 1.55.
    [(0.013, "degraded"), (0.015, "conforms"), (0.030, "conforms"), (0.032, "degraded")],
)
def test_within_one_and_a_half_either_way(nats, expected):
    assert verdict(shown=served(nats))[0] == expected


def test_broken_needs_a_nat_and_three_times_the_predicted():
    assert verdict(shown=served(1.2))[0] == "broken"
    assert "60.0 times" in verdict(shown=served(1.2))[1]
    high = replace(EXPECTED, predicted_kl_nats=(0.9,) * N)
    assert verdict(high, served(1.2))[0] == "conforms"
    assert verdict(high, served(2.5))[0] == "degraded"
    assert verdict(high, served(2.8))[0] == "broken"


def test_broken_without_a_prediction():
    blind = replace(EXPECTED, predicted_kl_nats=None, why_no_prediction="the ladder measured no such map")
    assert verdict(blind, served(9.7))[0] == "broken"
    assert verdict(blind, served(0.5)) == ("unknown", "the ladder measured no such map")


def test_gibberish_is_broken_whatever_the_estimate_says():
    found, why = verdict(shown=replace(SHOWN, top1_agreement=0.018))
    assert (found, "gibberish" in why) == ("broken", True)


def test_not_engaged_when_served_kl_is_zero_or_at_the_floor():
    assert verdict(shown=served(0.0))[0] == "not_engaged"
    assert verdict(shown=served(0.0009))[0] == "not_engaged"
    assert verdict(shown=served(0.0011))[0] == "degraded"


def test_not_engaged_when_capacity_did_not_change():
    found, why = verdict(shown=replace(SHOWN, capacity_ratio=1.0))
    assert found == "not_engaged"
    assert "did not change" in why
    # Nothing to gain was priced, so an unchanged capacity says nothing.
    flat = replace(EXPECTED, capacity_ratio=1.0)
    assert verdict(flat, replace(SHOWN, capacity_ratio=1.0))[0] == "conforms"


def test_exactly_zero_is_not_engaged_even_without_a_prediction():
    blind = replace(EXPECTED, predicted_kl_nats=None)
    assert verdict(blind, served(0.0))[0] == "not_engaged"


def test_degraded_when_formats_bytes_or_capacity_differ_though_the_loss_fits():
    other = replace(SHOWN, formats_differ=("layer 3 runs native/native, the map says fp8_e4m3/fp8_e4m3",))
    assert verdict(shown=other)[0] == "degraded"
    assert "layer 3" in verdict(shown=other)[1]
    assert verdict(shown=replace(SHOWN, bytes_per_token=11700.0))[0] == "degraded"
    assert verdict(shown=replace(SHOWN, bytes_per_token=11600.0))[0] == "conforms"
    assert verdict(shown=replace(SHOWN, bytes_per_token=None))[0] == "degraded"
    assert verdict(shown=replace(SHOWN, capacity_ratio=1.7))[0] == "degraded"


def test_unknown_under_twenty_documents():
    few = replace(EXPECTED, predicted_kl_nats=(0.02,) * 19)
    found, why = verdict(few, replace(SHOWN, served_kl_nats=(0.02,) * 19))
    assert (found, why) == ("unknown", "19 documents, 20 are needed for an interval")


def test_unknown_when_the_floor_drowns_the_prediction():
    found, why = verdict(floor=0.007)
    assert found == "unknown"
    assert "rounding drowns it" in why
    # Then being at the floor proves nothing either.
    assert verdict(shown=served(0.006), floor=0.007)[0] == "unknown"


def test_unknown_when_nothing_was_served():
    silent = replace(SHOWN, served_kl_nats=None, why_not_served="the engine gives no log-probabilities")
    assert verdict(shown=silent) == ("unknown", "the engine gives no log-probabilities")
    # Formats that differ are still named.
    assert verdict(shown=replace(silent, formats_differ=("layer 0 differs",)))[0] == "degraded"


def test_unknown_never_for_layout_alone_and_native_needs_no_loss():
    native = Expected(quantized=False, bytes_per_token=23040, capacity_ratio=1.0, predicted_kl_nats=None)
    shown = Shown((), 23040.0, 1000, 1.0, None, "native is the baseline of every KL")
    assert verdict(native, shown)[0] == "conforms"
    assert verdict(native, replace(shown, formats_differ=("layer 0 runs fp8_e4m3/native",)))[0] == "degraded"


def test_documents_that_do_not_pair_give_no_ratio():
    expected = replace(EXPECTED, predicted_kl_nats=(0.02,) * 25)
    found = loss(expected, SHOWN, FLOOR, seed=0)
    assert found.ratio is None
    assert verdict(expected)[0] == "unknown"


def test_ratio_by_hand_with_an_interval_over_documents():
    expected = replace(EXPECTED, predicted_kl_nats=(0.01, 0.03) * 10)
    shown = replace(SHOWN, served_kl_nats=(0.02, 0.03) * 10)
    found = loss(expected, shown, floor_nats=0.005, seed=0)
    # Means 0.025 − 0.005 over 0.02; the pairs have ratios 1.5 and 0.83, so resamples lie between.
    assert found.ratio == pytest.approx(1.0)
    assert 0.83 < found.ratio_interval.low < 1.0 < found.ratio_interval.high < 1.5
    assert found.ratio_interval.level == 0.95
