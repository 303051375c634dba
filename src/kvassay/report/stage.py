"""Stage `card`: the card, and the report that shows it. It stands here because it needs both, and report lies above card."""

from __future__ import annotations

from kvassay.card.build import build_card
from kvassay.card.evidence import read_records
from kvassay.card.hardware import Surroundings, package_versions, this_machine
from kvassay.errors import BadInput
from kvassay.records import Card
from kvassay.report.render import render_report
from kvassay.stage import StageInput
from kvassay.store import write_atomic

REPORT = "report.html"
MAX_REPORT_BYTES = 2**20


def card(stage: StageInput) -> Card:
    """Write report.html, then hand back the card that vouches for it. Raises DamagedArtifact for artifacts that do not fit."""
    run = stage.run
    with stage.progress.step("card and report", 3) as step:
        records = read_records(run)
        step.advance()
        surroundings = Surroundings(hardware=this_machine(), packages=package_versions(), stage_seconds=run.stage_seconds())
        record = build_card(records, stage.plan, surroundings)
        step.advance()
        page = render_report(record, records).encode()
        if len(page) > MAX_REPORT_BYTES:
            raise BadInput(f"{run.path(REPORT)}: the report would have {len(page):,} bytes, over the limit of {MAX_REPORT_BYTES:,}")
        write_atomic(run.path(REPORT), page)
        step.advance()
    return record.model_copy(update={"side_files": (run.side_file(REPORT),)})
