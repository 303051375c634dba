"""The demo as a new user runs it, on SmolLM2: a card with real figures, and nothing that leaves the machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from kvassay.records import Card
from kvassay.store import Run
from support.network_guard import guarded_environment, network_log

PLAN = Path(__file__).parents[2] / "examples" / "smollm2" / "plan.yaml"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("demo")
    out = folder / "run"
    command = [sys.executable, "-m", "kvassay", "run", str(PLAN), "--out", str(out)]
    result = subprocess.run(command, env=guarded_environment(folder), text=True)
    assert result.returncode == 0
    return Run(out)


def test_every_headline_figure_is_there(demo: Run) -> None:
    card = demo.read(Card)
    for name in ("native", "uniform", "map"):
        arm = card.arms[name]
        assert arm is not None, card.arms_reason.get(name)
        assert arm.payload_bytes_per_token > 0
        assert arm.memory.process_peak_bytes
        assert arm.throughput.output_tokens_per_s > 0
        assert arm.ttft_ms.p50
        assert arm.tpot_ms.p50
        assert arm.decode_tokens_per_s.p50
        assert "retrieval" in arm.tasks
    assert card.arms["native"].payload_bytes_per_token == 23_040  # type: ignore[union-attr]
    for name in ("uniform", "map"):
        figure = card.arms[name].kl_nats  # type: ignore[union-attr]
        assert figure is not None
        assert 0 < figure.mean < 1


def test_the_bad_day_was_survived(demo: Run) -> None:
    checks = demo.read(Card).checks
    assert {name: checks[name].verdict for name in ("exhaustion", "fallback", "restart")} == {
        "exhaustion": "passed",
        "fallback": "passed",
        "restart": "passed",
    }


def test_few_items_never_approve(demo: Run) -> None:
    card = demo.read(Card)
    assert card.decision.verdict != "approve"
    assert card.decision.scope == "reference"
    assert any("items needed" in reason for reason in card.decision.reasons)


def test_report_is_self_contained(demo: Run) -> None:
    html = demo.path("report.html").read_text()
    assert len(html) < 1_000_000
    assert "http://" not in html.replace("http://www.w3.org/", "")
    assert "https://" not in html


def test_nothing_left_the_machine(demo: Run) -> None:
    log = network_log(demo.folder.parent)
    assert not log.exists(), log.read_text()
