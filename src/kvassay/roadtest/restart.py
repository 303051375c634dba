"""Check `restart`: SIGTERM, start from exported files alone, and everything that matters is as before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvassay.records.kv_map import KVMap
from kvassay.records.roadtest import Check
from kvassay.roadtest.asking import Answer
from kvassay.roadtest.bench import Bench, sample
from kvassay.roadtest.fresh import files_outside, fresh_run
from kvassay.roadtest.identity import number, state_problems
from kvassay.roadtest.trial import Trial, try_requests
from kvassay.store import json_digest
from kvassay.targets.launch import read_export

ASKED_AFTER = 4
MAX_NAMED = 3


@dataclass(frozen=True)
class Before:
    """What the replayed server said (`state`), answered (`answers`: request number to digest), and how SIGTERM ended it."""

    state: Mapping[str, Any]
    answers: Mapping[int, str | None]
    exit_code: int | None
    stop_s: float


def restart(bench: Bench) -> Check:
    """Before: the map arm's replay server. After: a server in a folder that holds the exported arm and the weights alone."""
    arm = bench.arms["map"]
    before = before_restart(bench)
    if not before.answers:
        return Check(verdict="not_run", reason="the map arm answered no request before the restart", evidence={})
    asked = sample(sorted(before.answers), ASKED_AFTER)
    with fresh_run(bench.stage.run, arm, bench.model, "restart") as fresh:
        foreign: list[str] = []
        trial = try_requests(
            bench,
            fresh,
            arm,
            "roadtest-restart",
            bench.kv_memory_bytes,
            asked,
            watch=lambda pid: foreign.extend(files_outside(pid, bench.stage.run, fresh)),
        )
    return judge_restart(before, asked, trial, read_export(bench.stage.run.path(arm.folder))[0], foreign)


def before_restart(bench: Bench) -> Before:
    """The map arm's side before the restart, from the rows of its replay."""
    state = bench.ledger.of("state", "map")[-1]["state"]
    closed = bench.ledger.of("closed", "map")[-1]
    answers = {index: row.answer_sha256 for index, row in bench.good_rows("map").items()}
    return Before(state=state, answers=answers, exit_code=closed["exit_code"], stop_s=closed["stop_s"])


def judge_restart(before: Before, asked: Sequence[int], trial: Trial, exported: KVMap, foreign: Sequence[str]) -> Check:
    """passed: exit code 0, nothing else of the run was read, the same state as before and as exported, the same greedy answers."""
    changed = state_problems(exported, before.state, trial.state)
    right = sum(same(before.answers[index], answer) for index, answer in zip(asked, trial.answers, strict=True))
    evidence: dict[str, str | int | float | bool | None] = {
        "exit_code": before.exit_code if before.exit_code is not None else "none: it had to be killed",
        "stop_s": before.stop_s,
        "start_s": round(trial.started_s, 2),
        "started_from": "a copy of the export folder and the weights, nothing else of the run",
        "other_run_files_open": len(foreign),
        "map_digest": str(trial.state["map_digest"]),
        "layers_sha256": json_digest(trial.state["layers"]),
        "scales": str(trial.state["scales"]),
        "capacity_tokens": int(number(trial.state, "capacity_tokens")),
        "state_differences": len(changed),
        "answers_asked": len(asked),
        "answers_equal": right,
    }
    problems = []
    if before.exit_code != 0:
        problems.append(f"SIGTERM ended the server with exit code {before.exit_code}")
    if foreign:
        problems.append(f"the restarted server read files outside its export: {', '.join(foreign[:MAX_NAMED])}")
    problems += changed[:MAX_NAMED]
    if right < len(asked):
        problems.append(f"only {right} of {len(asked)} greedy answers are as before")
    if problems:
        return Check(verdict="failed", reason="; ".join(problems), evidence=evidence)
    reason = f"per-layer formats, scales, capacity and {right} greedy answers are as before, from exported files alone"
    return Check(verdict="passed", reason=reason, evidence=evidence)


def same(digest: str | None, answer: Answer) -> bool:
    """Whether a good answer has this digest."""
    return answer.ok and digest is not None and answer.sha256 == digest
