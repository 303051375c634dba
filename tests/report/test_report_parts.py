"""Scales, pictures, strip and answers, by hand-computed values."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvassay.card.build import build_card
from kvassay.records.base import Interval
from kvassay.records.frontier import Frontier
from kvassay.report.answers import more_budget, which_layers, worst_task
from kvassay.report.bars import interval_bar, range_bar
from kvassay.report.frontier_chart import NARROW, WIDE, frontier_chart
from kvassay.report.strip import format_cells, heat_strip, short_names
from kvassay.report.svg import LinearScale, LogScale, text
from support import fixture_records as fixture

RECORDS = fixture.records()


def test_log_scale_by_hand() -> None:
    scale = LogScale(0.01, 1, 0, 200)
    assert [scale(v) for v in (0.01, 0.1, 1)] == pytest.approx([0, 100, 200])
    assert scale(0) == 0
    assert scale(100) == 200
    assert scale.ticks() == pytest.approx([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1])


@given(st.floats(1e-9, 1e3), st.floats(1.0, 1e8))
def test_ticks_lie_inside_and_stay_few(low: float, width: float) -> None:
    ticks = LogScale(low, low * width, 0, 100).ticks()
    assert len(ticks) <= 7
    assert ticks == sorted(ticks)


def test_linear_scale_stops_at_its_ends() -> None:
    scale = LinearScale(-1, 1, 0, 100)
    assert [scale(v) for v in (-2, -1, 0, 0.5, 3)] == [0, 0, 50, 75, 100]


def test_text_is_escaped() -> None:
    assert "&lt;b&gt;" in text(0, 0, "<b>")


def test_interval_bar_places_ends() -> None:
    comparison = (
        RECORDS.evaluation.tasks["short"]
        .comparisons["map"]
        .model_copy(update={"difference": 0.0, "interval": Interval(low=-0.5, high=0.5, level=0.9)})
    )
    svg = interval_bar(comparison, 1.0)
    assert 'x1="50.5" y1="11" x2="139.5" y2="11" class="interval not_shown"' in svg
    assert "0.0 points, from −50.0 to +50.0; margin 2 points" in svg


def test_range_bar_places_p50_and_p90() -> None:
    svg = range_bar(fixture.percentiles(50, 100), 100)
    assert 'cx="95"' in svg
    assert 'x="95" y="8" width="89"' in svg


@pytest.mark.parametrize("frame", [WIDE, NARROW])
def test_frontier_has_every_measured_point_inside_the_frame(frame) -> None:  # type: ignore[no-untyped-def]
    svg = frontier_chart(RECORDS.frontier, RECORDS.ladder, RECORDS.frozen, 16.0, frame)
    mixed = [rung for rung in RECORDS.ladder.rungs if rung.kind == "mixed"]
    assert len(re.findall(r'class="mixed"', svg)) == len(mixed)
    assert len(re.findall(r'<rect [^>]*class="uniform"', svg)) == len(RECORDS.ladder.rungs) - len(mixed)
    assert ">map<" in svg
    assert ">best uniform<" in svg
    assert ">FP8<" in svg
    for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg):
        assert frame.left <= float(x) <= frame.width - frame.right
        assert frame.top <= float(y) <= frame.height - frame.bottom


def test_short_names_tell_formats_apart() -> None:
    names = ["native", "fp8_e4m3", "fp8_e5m2", "nvfp4", "mxfp4", "int4_g32", "int4_g64", "int6_g64", "int8_token_head"]
    short = short_names(names)
    assert len(set(short.values())) == len(names)
    assert max(map(len, short.values())) <= 4
    assert short["int6_g64"] == "i6"
    assert short["int4_g32"] == "4:32"
    colours = [cell.class_ for cell in format_cells({"native": 16.0, "fp8_e4m3": 8.0, "nvfp4": 4.5}).values()]
    assert colours == ["f0", "f1", "f2"]


def test_sensitivity_uses_one_format_for_all_layers() -> None:
    strip = heat_strip(RECORDS.frozen, RECORDS.geometry, RECORDS.scores)
    assert strip.sensitivity.startswith("Loss when this tensor of this layer alone is nvfp4:")
    losses = {(each.layer, each.tensor): each.kl_nats for each in RECORDS.scores.scores if each.format == "nvfp4"}
    worst = max(losses, key=lambda key: losses[key])
    cells = {
        (layer, t.lower()): cell
        for group in strip.groups
        for t, row in group.losses.items()
        for layer, cell in zip(group.layers, row, strict=True)
    }
    assert cells[worst].class_ == "s5"
    assert cells.keys() == losses.keys()


def test_answers_by_hand() -> None:
    lines = which_layers(RECORDS.frozen)
    first = RECORDS.frozen.layers[0]
    assert lines[0].startswith("K: ")
    assert first.k in lines[0]
    card = build_card(RECORDS, fixture.plan(), fixture.surroundings())
    assert worst_task(card).startswith("Retrieval: −8.3 points against native, 90 % interval −30.1 to +11.6, 12 items; 1,288 items")
    base = RECORDS.frontier.points[0]
    points = tuple(
        base.model_copy(update={"name": name, "bits": bits, "predicted_kl_nats": kl})
        for name, bits, kl in (("a", 5.0, 0.04), ("b", 5.4, 0.03), ("c", 5.6, 0.01))
    )
    frontier = RECORDS.frontier.model_copy(update={"points": points, "budget_bits": 5.0})
    assert isinstance(frontier, Frontier)
    assert (
        more_budget(frontier)
        == "A predicted KL of 0.030 nats instead of 0.040 nats (25.0 % less), at 5.40 bits instead of 5.00. Modelled, not measured."
    )
    assert more_budget(frontier.model_copy(update={"budget_bits": 4.0})) == "No predicted map fits the budget."
    assert more_budget(frontier.model_copy(update={"points": points[:1]})).startswith("Nothing that the search predicts")
    uniform = points[0].model_copy(update={"name": "int6_g64/int6_g64", "bits": 5.3, "predicted_kl_nats": 0.02})
    told = more_budget(frontier.model_copy(update={"points": points[:1], "uniform": (uniform,)}))
    assert told.startswith("A predicted KL of 0.020 nats instead of 0.040 nats"), "a uniform pair is a map too"
