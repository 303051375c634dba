"""Stage `card` on a run folder: both files, one commit mark."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvassay.errors import DamagedArtifact
from kvassay.pipeline import BY_NAME, is_done, run_stage
from kvassay.progress import Silent
from kvassay.records import Card, FrozenMap
from kvassay.report import render
from kvassay.store import Run
from support import fixture_records as fixture

ZERO = "0" * 64


@pytest.fixture
def run(tmp_path: Path) -> Run:
    opened = Run(tmp_path / "run")
    records = fixture.records()
    for record in (getattr(records, name) for name in records.__dataclass_fields__):
        opened.write(record, {}, ZERO)
    return opened


def test_card_and_report_are_written_and_kept(run: Run) -> None:
    plan = fixture.plan()
    card = run_stage(run, plan, "card", Silent())
    assert isinstance(card, Card)
    written = run.read(Card)
    assert written == card
    assert [side.path for side in written.side_files] == ["report.html"]
    run.check_side_files(written)
    assert is_done(run, plan, BY_NAME["card"])
    assert str(run.folder) not in run.path("card.json").read_text() + run.path("report.html").read_text()


def test_an_edited_report_is_refused(run: Run) -> None:
    plan = fixture.plan()
    run_stage(run, plan, "card", Silent())
    page = run.path("report.html")
    page.write_text(page.read_text().replace("Abstain", "Approve"))
    with pytest.raises(DamagedArtifact, match=r"report\.html: differs"):
        is_done(run, plan, BY_NAME["card"])


def test_no_card_without_a_map(run: Run) -> None:
    run.path(FrozenMap.artifact).unlink()
    with pytest.raises(DamagedArtifact, match=r"map\.json: missing"):
        run_stage(run, fixture.plan(), "card", Silent())


def test_a_failed_report_leaves_no_card(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "source", lambda name: "{{ nothing_of_that_name }}")
    with pytest.raises(Exception, match="nothing_of_that_name"):
        run_stage(run, fixture.plan(), "card", Silent())
    assert not run.has(Card)
