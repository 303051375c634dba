"""Asking: canary first, each answer once, resumable, failures told apart from a dead engine."""

from __future__ import annotations

import asyncio
import json

import pytest

from kvassay.errors import DamagedArtifact, EngineError
from kvassay.evaluation.arms import NOISE, questions
from kvassay.evaluation.rows import ITEM_ROWS, Ledger
from kvassay.evaluation.sitting import first_cause, sitting
from kvassay.progress import Silent
from kvassay.store import Rows
from support.fake_arms import Counter, FakeClient, clients


def sit(servers, bench, run, key="k", progress=None):
    ledger = Ledger(run, key, bench.items)
    try:
        asyncio.run(sitting(servers, bench, ledger, 20, progress or Silent()))
    except ExceptionGroup as group:
        raise first_cause(group) from None
    return ledger


def test_everybody_answers_everything_once(bench, run):
    servers, progress = clients(), Counter()
    ledger = sit(servers, bench, run, progress=progress)
    # 24 retrieval and 16 short items; the noise arm asks native the shortest again: 8 + 16.
    assert {name: len(client.completed) for name, client in servers.items()} == {
        "native": 40 + 24,
        "uniform": 40,
        "map": 40,
        "canary": 16 + 16,
    }
    assert len(ledger.answers) == 40 * 3 + 24 + 32
    # 6 documents under noise, canary, uniform, map.
    assert len(ledger.documents) == 24
    assert [(total, done) for _, total, done in progress.steps] == [(24, 24), (176, 176)]
    rows = [json.loads(line) for line in run.path(ITEM_ROWS).read_text().splitlines()]
    assert rows[0] == {"key": "k"}
    assert rows[1].keys() == {
        "task", "item", "arm", "correct", "prompt_digest", "cluster", "length", "finish_reason", "answer_sha256", "output_tokens", "empty", "error", "row_sha256",
    }  # fmt: skip
    assert not bench.unanswered(ledger, bench.asked)
    assert not bench.unmeasured(ledger, bench.asked)


def test_same_prompts_for_every_arm(bench, run):
    servers = clients()
    sit(servers, bench, run)
    assert sorted(servers["uniform"].completed) == sorted(servers["map"].completed) == sorted(list(item.prompt) for item in bench.items)


def test_a_second_sitting_repeats_nothing(bench, run):
    first = sit(clients(), bench, run)
    servers = clients()
    again = sit(servers, bench, run)
    assert again.answers == first.answers
    assert again.documents == first.documents
    assert all(not client.completed and not client.documents for client in servers.values())


@pytest.mark.parametrize("dies_after", [0, 7, 12, 30])
def test_a_dead_engine_stops_the_sitting_and_the_next_goes_on(bench, run, dies_after):
    with pytest.raises(EngineError, match="no longer answers"):
        sit(clients(map=FakeClient(p=0.58, dies_after=dies_after)), bench, run)
    kept = Ledger(run, "k", bench.items)
    assert all(row.error is None for row in kept.answers.values())
    servers = clients()
    ledger = sit(servers, bench, run)
    assert len(ledger.answers) == 176
    assert len(servers["map"].completed) == 40 - sum(arm == "map" for arm, _, _ in kept.answers)


def test_a_failed_request_on_a_living_engine_is_a_wrong_answer(bench, run):
    ledger = sit(clients(map=FakeClient(p=0.58, failing={2})), bench, run)
    failed = [row for row in ledger.answers.values() if row.error]
    assert {(row.arm, row.correct, row.answer_sha256) for row in failed} == {("map", False, None)}
    assert len(failed) == 3


def test_an_arm_without_log_probabilities_is_told_and_goes_on(bench, run):
    ledger = sit(clients(map=FakeClient(no_logprobs=True)), bench, run)
    assert all(row.error for row in ledger.measured("map", bench.documents))
    assert all(row.error is None for row in ledger.measured("uniform", bench.documents))
    assert len(ledger.answers) == 176


def test_native_without_log_probabilities_stops(bench, run):
    with pytest.raises(EngineError, match="log-probabilities"):
        sit(clients(native=FakeClient(no_logprobs=True)), bench, run)


def test_a_canary_that_moves_nothing_stops_before_the_long_work(bench, run):
    servers = clients(canary=FakeClient())
    with pytest.raises(EngineError, match=r"int2_g64 in every layer changed nothing .* not reading the cache; evaluation stops"):
        sit(servers, bench, run)
    assert not servers["map"].completed
    assert not servers["map"].documents


def test_a_canary_within_the_noise_has_not_moved(bench, run):
    with pytest.raises(EngineError, match="not reading the cache"):
        sit(clients(native=FakeClient(rounding=0.02), canary=FakeClient(p=0.59)), bench, run)


def test_a_canary_whose_answers_change_has_moved_even_within_the_noise_of_kl(bench, run):
    ledger = sit(clients(native=FakeClient(rounding=0.02), canary=FakeClient(p=0.59, wrong=set(range(8)))), bench, run)
    assert len(ledger.answers) == 176


def test_rows_of_another_prompt_are_refused(bench, run):
    sit(clients(), bench, run)
    path = run.path(ITEM_ROWS)
    first, *others = Rows(path, "k").load()
    path.unlink()
    for row in (first | {"prompt_digest": "cd" * 32}, *others):
        Rows(path, "k").append(row)
    with pytest.raises(DamagedArtifact, match="another prompt"):
        Ledger(run, "k", bench.items)
    path.unlink()
    Rows(path, "k").append(first | {"correct": "perhaps"})
    with pytest.raises(DamagedArtifact, match=r"items.jsonl, line 2: correct"):
        Ledger(run, "k", bench.items)
    with pytest.raises(DamagedArtifact, match="another model, plan or version"):
        Ledger(run, "other", bench.items)


def test_guards_get_the_cheaper_questions(bench):
    retrieval, short = bench.tasks["retrieval"], bench.tasks["short"]
    assert {item.length for item in questions("canary", retrieval)} == {"6", "9"}
    assert {item.length for item in questions(NOISE, retrieval)} == {"6"}
    assert questions("canary", short) == questions(NOISE, short) == questions("map", short) == short
    assert questions("map", retrieval) == retrieval
