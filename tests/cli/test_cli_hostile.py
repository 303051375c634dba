"""Bad input on the command line: one sentence on stderr, exit code 2, and never a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kvassay.cli import run_command
from kvassay.records.frontier import Pair
from kvassay.serving.compare_state import compare_state
from support.fixture_records import geometry, kv_map
from support.planted import make_planted_model

PLAN = """model: {{folder: {model}}}
formats: {{k: [native, int8_g64], v: [native, fp8_e4m3]}}
budget: {budget}
{more}
workload: {{trace: trace.jsonl{workload}}}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_planted_model(tmp_path_factory.mktemp("model"))


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run_command(list(arguments)) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize(
    ("budget", "more", "says"),
    [
        ("{bits: 1e+300}", "", "line 3: budget.bits: must be less than or equal to 64"),
        ("{bytes_per_token: 99999999999999999999}", "", "line 3: budget.bytes_per_token"),
        ("{gib: 1, tokens: 99999999999999999999, requests: 1}", "", "line 3: budget.tokens"),
        ("{bits: 8.0}", "tasks: {short: {items: 1000000000}}", "line 4: tasks.short.items"),
        ("{bits: 8.0}", "tasks: {retrieval: {lengths: []}}", "line 4: tasks.retrieval.lengths"),
        ("{bits: 8.0}", "ladder: {maps: 100000000}", "line 4: ladder.maps"),
        ("{bits: 8.0}", "seeds: {tasks: 99999999999999999999}", "line 4: seeds.tasks"),
        ("{bits: 8.0}", "corpora: {choice: {documents: 99999999, tokens: 8}}", "line 4: corpora.choice.documents"),
    ],
)
def test_absurd_numbers_of_a_plan_are_named_with_their_line(
    budget: str, more: str, says: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trace.jsonl").write_text('{"arrival_s": 0.0, "input_tokens": 40, "output_tokens": 4}\n')
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(model=model, budget=budget, more=more, workload=""))
    assert says in refused(capsys, "run", str(plan), "--out", str(tmp_path / "run"), "--dry-run")


def test_a_cache_too_small_to_serve_anything_is_refused_beforehand(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trace.jsonl").write_text('{"arrival_s": 0.0, "input_tokens": 40, "output_tokens": 4}\n')
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(model=model, budget="{bits: 8.0}", more="", workload=", kv_memory_bytes: 1"))
    said = refused(capsys, "run", str(plan), "--out", str(tmp_path / "run"), "--dry-run")
    assert "line 5: workload.kv_memory_bytes: 1 bytes do not hold 64 tokens" in said


def test_what_the_operating_system_refuses_is_no_internal_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    too_long = "a" * 5000
    for arguments in (
        ["score", too_long],
        ["init", "x", "--out", too_long],
        ["gate", "--export", too_long, "--server", "http://127.0.0.1:1"],
    ):
        said = refused(capsys, *arguments)
        assert "name too long" in said
        assert said.count("\n") == 1


def test_a_run_folder_that_is_a_file_is_refused(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trace.jsonl").write_text('{"arrival_s": 0.0, "input_tokens": 40, "output_tokens": 4}\n')
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(model=model, budget="{bits: 9.0}", more="", workload=""))
    for place in (str(plan), "/dev/null"):
        assert f"{place}: not a folder" in refused(capsys, "run", str(plan), "--out", place)


def test_a_map_that_is_a_pipe_is_not_waited_for(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "map.json")
    assert "not a regular file" in refused(capsys, "inspect", str(model), "--map", str(tmp_path / "map.json"))
    assert "not a regular file" in refused(capsys, "gate", "--export", str(tmp_path), "--server", "http://127.0.0.1:1")


def test_inspect_bounds_its_counts(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "must be from 1 to" in refused(capsys, "inspect", str(model), "--requests", "9" * 400)


def test_garbage_from_a_server_is_a_difference_in_plain_text() -> None:
    shape = geometry(4)
    expected = kv_map(shape, (Pair(k="native", v="fp8_e4m3"),) * 4)
    layers = [{"index": [1]}, {"index": {}}, {"index": None}, {"index": True}, {"index": 0, "k": ["\x1b[31m"]}, 7]
    found = compare_state(expected, {"layers": layers, "map_digest": "\x1b[31m\ud800" + "x" * 10**6})
    assert "layers" in {difference.what for difference in found}
    assert all(difference.observed.isprintable() and len(difference.observed) <= 500 for difference in found)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--version"]) == 0
    assert capsys.readouterr().out.startswith("kvassay ")
