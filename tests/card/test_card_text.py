"""The summary on a terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kvassay.card.build import build_card
from kvassay.card.text import WIDTH, render_text
from kvassay.records.base import SideFile
from support import fixture_records as fixture


def test_decision_first_then_arms_checks_and_report() -> None:
    card = build_card(fixture.records(), fixture.plan(), fixture.surroundings())
    card = card.model_copy(update={"side_files": (SideFile(path="report.html", bytes=1, sha256=fixture.digest("r")),)})
    lines = render_text(card, Path("runs/demo")).splitlines()
    assert lines[0] == "ABSTAIN  arm map, scope reference, transformers 0.1.0"
    assert "12 of 1,288 items needed to show no_worse at 2 points" in lines[2]
    assert lines[-1] == "report   runs/demo/report.html"
    assert all(len(line) <= WIDTH + 12 for line in lines)
    header = next(line for line in lines if line.startswith("arm "))
    rows = [line for line in lines if line.startswith(("native ", "uniform ", "map "))][:3]
    assert {len(row) for row in rows} == {len(header)}
    assert "23,040" in rows[0]
    assert "[" in rows[2]


def test_missing_arms_and_figures_are_said_not_hidden() -> None:
    records = fixture.records()
    evaluation = records.evaluation.model_copy(update={"kl": {}, "kl_reason": {}, "tasks": {}})
    export = records.export.model_copy(update={"arms": records.export.arms | {"uniform": None}, "arms_reason": {"uniform": "none fits"}})
    card = build_card(replace(records, evaluation=evaluation, export=export), fixture.plan(), fixture.surroundings())
    text = render_text(card, Path("run"))
    assert "uniform: none fits" in text
    assert "no served KL" in text
