"""The whole main job on the tiny planted model: killed at several instants, resumed, and then judged by its artifacts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from kvassay.records import ARTIFACTS, Card, Evaluation, Export, FrozenMap, Ladder, Probe, Roadtest, Scores
from kvassay.store import Run
from support.network_guard import guarded_environment, network_log
from support.planted import make_planted_model

PLAN = """\
model: {{folder: {model}}}
formats:
  k: [native, fp8_e4m3, int8_g64, int4_g64]
  v: [native, fp8_e4m3, int4_g64, nvfp4]
budget: {{bits: 8.0}}
corpora:
  scoring: {{documents: 2, tokens: 48}}
  choice: {{documents: 4, tokens: 32}}
  heldout: {{documents: 4, tokens: 32}}
ladder: {{maps: 5, uniform: 3}}
tasks:
  retrieval: {{lengths: [200, 300, 400], items_per_length: 1}}
  short: {{items: 2}}
workload: {{trace: {trace}, warmup_requests: 1, kv_memory_bytes: 8388608}}
"""
TRACE = [(40, 4), (60, 5), (300, 6), (50, 4)]

# (file of the run folder, bytes it must have reached): kvassay is killed as soon as that holds.
KILL_WHEN = [("model.json", 1), ("scores.rows.jsonl", 400), ("frontier.json", 1), ("items.jsonl", 900), ("requests.jsonl", 900)]


def write_plan(folder: Path) -> Path:
    make_planted_model(folder / "planted")
    rows = [{"arrival_s": float(i), "input_tokens": n, "output_tokens": m} for i, (n, m) in enumerate(TRACE)]
    (folder / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = folder / "plan.yaml"
    plan.write_text(PLAN.format(model="planted", trace="trace.jsonl"))
    return plan


def start(plan: Path, out: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kvassay", "run", str(plan), "--out", str(out)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def kill_when(process: subprocess.Popen[str], path: Path, size: int, limit_s: float = 120) -> None:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if path.exists() and path.stat().st_size >= size:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            return
        if process.poll() is not None:
            pytest.fail(f"ended with {process.returncode} before {path.name} reached {size} bytes:\n{process.communicate()[0]}")
        time.sleep(0.02)
    process.kill()
    pytest.fail(f"{path.name} never reached {size} bytes:\n{process.communicate()[0]}")


@pytest.fixture(scope="module")
def killed_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that was killed five times and finished by the sixth start."""
    folder = tmp_path_factory.mktemp("main_job")
    plan, out, environment = write_plan(folder), folder / "run", guarded_environment(folder)
    before: dict[str, bytes] = {}
    for name, size in KILL_WHEN:
        kill_when(start(plan, out, environment), out / name, size)
        for path, data in before.items():
            assert (out / path).read_bytes() == data, f"{path} was finished, and made again"
        before |= {kind.artifact: (out / kind.artifact).read_bytes() for kind in ARTIFACTS if (out / kind.artifact).exists()}
    last = start(plan, out, environment)
    output, _ = last.communicate(timeout=240)
    assert last.returncode == 0, output
    return Run(out)


def test_every_artifact_fits_its_schema_and_round_trips(killed_run: Run) -> None:
    for kind in ARTIFACTS:
        record = killed_run.read(kind)
        jsonschema.validate(record.model_dump(mode="json", by_alias=True), kind.model_json_schema(by_alias=True))
        assert kind.model_validate_json(record.model_dump_json(by_alias=True)) == record
        killed_run.check_side_files(record)


def test_no_finished_row_was_made_twice(killed_run: Run) -> None:
    items = [json.loads(line) for line in killed_run.path("items.jsonl").read_text().splitlines()[1:]]
    asked = [(row["task"], row["item"], row["arm"]) for row in items if "item" in row]
    assert len(asked) == len(set(asked)) > 0


def test_planted_layers_are_the_sensitive_ones(killed_run: Run) -> None:
    scores = [each for each in killed_run.read(Scores).scores if each.tensor == "k" and each.format == "int4_g64"]
    ranked = sorted(scores, key=lambda each: -each.kl_nats)
    last = max(each.layer for each in scores)
    assert {ranked[0].layer, ranked[1].layer} == {0, last}


def test_arms_are_engaged_and_priced_right(killed_run: Run) -> None:
    probe = killed_run.read(Probe)
    for name in ("native", "map"):
        arm = probe.arms[name]
        assert arm.formats_match is True
        assert arm.bytes_per_token_measured == arm.bytes_per_token_priced
    assert probe.arms["map"].capacity_ratio == pytest.approx(
        probe.arms["native"].bytes_per_token_priced / probe.arms["map"].bytes_per_token_priced, rel=0.01
    )


def test_the_canary_moved_and_the_checks_ran(killed_run: Run) -> None:
    assert killed_run.read(Evaluation).canary.moved
    checks = killed_run.read(Roadtest).checks
    assert {name: checks[name].verdict for name in ("exhaustion", "restart", "wrong_restart", "abort")} == {
        "exhaustion": "passed",
        "restart": "passed",
        "wrong_restart": "passed",
        "abort": "passed",
    }


def test_card_has_figures_for_every_arm(killed_run: Run) -> None:
    card = killed_run.read(Card)
    assert card.decision.scope == "reference"
    assert card.decision.verdict in ("abstain", "reject")
    assert card.decision.reasons
    for name in ("native", "uniform", "map"):
        arm = card.arms[name]
        assert arm is not None, card.arms_reason.get(name)
        assert arm.memory.process_peak_bytes
        assert arm.throughput.output_tokens_per_s > 0
        assert arm.ttft_ms.p50
        assert arm.ttft_ms.p99 is None
        assert arm.ttft_ms.p99_reason
        assert "retrieval" in arm.tasks
    assert card.arms["native"].kl_nats is None  # type: ignore[union-attr]
    assert card.arms["map"].kl_nats.mean > 0  # type: ignore[union-attr]
    text = killed_run.path("card.json").read_text() + killed_run.path("report.html").read_text()
    assert str(killed_run.folder) not in text


def test_the_network_guard_sees_what_it_should(tmp_path: Path) -> None:
    code = 'import sys; sys.audit("socket.connect", None, ("203.0.113.1", 80)); sys.audit("socket.connect", None, ("127.0.0.1", 80))'
    subprocess.run([sys.executable, "-c", code], env=guarded_environment(tmp_path), check=True)
    assert network_log(tmp_path).read_text() == "socket.connect ('203.0.113.1', 80)\n"


def test_nothing_left_the_machine(killed_run: Run) -> None:
    log = network_log(killed_run.folder.parent)
    assert not log.exists(), log.read_text()


def test_no_server_is_left_running(killed_run: Run) -> None:
    listed = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout
    assert str(killed_run.folder) not in listed


def test_a_second_run_keeps_everything(killed_run: Run) -> None:
    before = {kind.artifact: killed_run.path(kind.artifact).stat().st_mtime_ns for kind in ARTIFACTS}
    plan = killed_run.folder.parent / "plan.yaml"
    again = start(plan, killed_run.folder, dict(os.environ))
    output, _ = again.communicate(timeout=60)
    assert again.returncode == 0, output
    assert {kind.artifact: killed_run.path(kind.artifact).stat().st_mtime_ns for kind in ARTIFACTS} == before


def test_a_moved_run_stays_valid_and_starts(killed_run: Run, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(killed_run.folder, moved, symlinks=True)
    result = subprocess.run([sys.executable, "-m", "kvassay", "card", str(moved), "--check"], capture_output=True, text=True)
    assert result.returncode in (1, 3), result.stderr


def test_artifacts_of_another_plan_are_refused_by_name(killed_run: Run, tmp_path: Path) -> None:
    plan = killed_run.folder.parent / "plan.yaml"
    other = killed_run.folder.parent / "other.yaml"
    other.write_text(plan.read_text().replace("bits: 8.0", "bits: 7.0"))
    result = subprocess.run(
        [sys.executable, "-m", "kvassay", "run", str(other), "--out", str(killed_run.folder)], capture_output=True, text=True
    )
    assert result.returncode == 2
    assert "another plan" in result.stderr
    assert "budget" in result.stderr


def test_an_artifact_of_another_model_is_refused_by_name(killed_run: Run, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(killed_run.folder, moved, symlinks=True)
    path = moved / "model.json"
    document = json.loads(path.read_text())
    document["weights_sha256"] = "0" * 64
    path.write_text(json.dumps(document))
    result = subprocess.run([sys.executable, "-m", "kvassay", "score", str(moved)], capture_output=True, text=True)
    assert result.returncode == 2
    assert "scores.json" in result.stderr
    assert "model.json" in result.stderr


def test_map_beats_or_recommends_uniform(killed_run: Run) -> None:
    frozen, ladder = killed_run.read(FrozenMap), killed_run.read(Ladder)
    kinds = {rung.kind for rung in ladder.rungs}
    assert kinds == {"mixed", "uniform"}
    assert frozen.recommended_arm in ("map", "uniform", "native")
    assert len({(layer.k, layer.v) for layer in frozen.layers}) > 1
    assert killed_run.read(Export).arms["map"].map_digest == frozen.digest  # type: ignore[union-attr]
