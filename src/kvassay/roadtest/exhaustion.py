"""Check `exhaustion`: a request larger than the whole cache is refused cleanly, and the others do not notice."""

from __future__ import annotations

import re
from typing import Literal

from kvassay.records.roadtest import Check
from kvassay.roadtest.asking import Answer
from kvassay.roadtest.bench import Bench
from kvassay.roadtest.identity import number
from kvassay.roadtest.shortage import Shortage
from kvassay.roadtest.trial import Trial, try_requests

Behaviour = Literal["clean refusal", "unclear refusal", "never drains", "crash", "server error", "served"]

SMALL_REQUESTS = 2


def exhaustion(bench: Bench, short: Shortage) -> Check:
    """Start the map arm with too little memory; ask small requests, the one that cannot fit, and the small ones again."""
    references = bench.good_rows("map")
    small = [index for index in short.fitting if index in references][:SMALL_REQUESTS]
    if not small:
        return Check(
            verdict="not_run",
            reason="no request of the trace fits beside the largest one; give a trace with shorter requests too",
            evidence={},
        )
    asked = [*small, short.largest, *small]
    trial = try_requests(bench, bench.stage.run, bench.arms["map"], "roadtest-exhaustion", short.kv_memory_bytes, asked)
    expected = [references[index].answer_sha256 for index in small]
    return judge_exhaustion(short, trial, expected)


def judge_exhaustion(short: Shortage, trial: Trial, expected: list[str | None]) -> Check:
    """`trial` asked len(expected) small requests, the large one, and the small ones again.

    `expected`: the small requests' answers with ample memory.
    """
    half = len(expected)
    before, large, after = trial.answers[:half], trial.answers[half], trial.answers[half + 1 :]
    capacity_tokens = int(number(trial.state, "capacity_tokens"))
    behaviour = classify(large, trial.alive, short.needed_tokens, capacity_tokens)
    right_before, right_after = matched(before, expected), matched(after, expected)
    evidence: dict[str, str | int | float | bool | None] = {
        "behaviour": behaviour,
        "kv_memory_bytes": short.kv_memory_bytes,
        "capacity_tokens": capacity_tokens,
        "needed_tokens": short.needed_tokens,
        "status": large.status or 0,
        "answer": large.error or "served",
        "refused_after_s": round(large.done_s - large.sent_s, 3),
        "alive": trial.alive,
        "small_requests": half,
        "small_right_before": right_before,
        "small_right_after": right_after,
    }
    if behaviour != "clean refusal":
        says = large.error or "it was served"
        reason = f"a request of {short.needed_tokens} tokens at a capacity of {capacity_tokens}: {behaviour} ({says})"
        return Check(verdict="failed", reason=reason, evidence=evidence)
    if right_before < half or right_after < half:
        reason = f"of {half} answers beside the refused request, as with ample memory: {right_before} before it, {right_after} after it"
        return Check(verdict="failed", reason=reason, evidence=evidence)
    reason = f"refused, naming {short.needed_tokens} needed and {capacity_tokens} available tokens; {half} others right before and after"
    return Check(verdict="passed", reason=reason, evidence=evidence)


def classify(large: Answer, alive: bool, needed_tokens: int, capacity_tokens: int) -> Behaviour:
    """What the engine did with the request that cannot fit. A clean refusal is HTTP 400 with needed and available tokens."""
    if large.ok:
        return "served"
    if large.hung:
        return "never drains"
    if not alive:
        return "crash"
    if large.status != 400:
        return "server error"
    figures = {int(found) for found in re.findall(r"\d+", large.error or "")}
    return "clean refusal" if {needed_tokens, capacity_tokens} <= figures else "unclear refusal"


def matched(answers: tuple[Answer, ...], expected: list[str | None]) -> int:
    """How many answers are good and equal to the expected ones."""
    return sum(answer.ok and answer.sha256 == digest for answer, digest in zip(answers, expected, strict=True))
