"""Check `fallback`: the plan's ladder is applied until a rung serves the refused request, and the others, fully and correctly."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from kvassay.errors import EngineError
from kvassay.plan.schema import FallbackRung
from kvassay.records.export import ArmExport
from kvassay.records.roadtest import Check
from kvassay.roadtest.bench import Bench, sample
from kvassay.roadtest.shortage import Shortage
from kvassay.roadtest.trial import Trial, try_requests

OTHER_REQUESTS = 3


@dataclass(frozen=True)
class RungResult:
    """What one rung did. `recover_s`: seconds from applying it to the end of the refused request's answer, None where it was not served."""

    rung: str
    worked: bool
    says: str
    recover_s: float | None


def fallback(bench: Bench, short: Shortage) -> Check:
    """Apply the ladder in order with the memory that refused the request; stop at the first rung that works."""
    if not bench.stage.plan.fallback:
        return Check(verdict="not_run", reason="the plan names no fallback ladder", evidence={})
    others = sample([index for index in range(len(bench.trace.requests)) if index != short.largest], OTHER_REQUESTS)
    began = time.monotonic()
    results: list[RungResult] = []
    for rung in bench.stage.plan.fallback:
        results.append(apply(bench, rung, short, others))
        if results[-1].worked:
            break
    return judge_ladder(results, short, len(others), time.monotonic() - began)


def apply(bench: Bench, rung: FallbackRung, short: Shortage, others: list[int]) -> RungResult:
    """Start the rung's server, ask the refused request first, then the others, and compare with the same arm's unhurried answers."""
    name = describe(rung)
    arm = arm_of(bench, rung)
    if arm is None:
        return RungResult(name, False, "not available: no smaller measured map was exported", None)
    kv_memory_bytes = int(short.kv_memory_bytes * rung.memory_factor)
    holds_tokens = min(kv_memory_bytes // arm.bytes_per_token, rung.context_tokens or short.needed_tokens)
    if holds_tokens < short.needed_tokens:
        # The price of a map is exact, so a server that cannot hold the request need not be started to know it.
        return RungResult(name, False, f"holds {holds_tokens} tokens, the refused request needs {short.needed_tokens}; not started", None)
    asked = [short.largest, *others]
    try:
        trial = try_requests(bench, bench.stage.run, arm, f"roadtest-fallback-{rung.kind}", kv_memory_bytes, asked, rung.context_tokens)
        if problem := unserved(trial, asked):
            return RungResult(name, False, problem, None)
        expected = references(bench, rung, arm, asked)
    except EngineError as error:
        return RungResult(name, False, str(error), None)
    wrong = [index for index, answer in zip(asked, trial.answers, strict=True) if answer.sha256 != expected.get(index)]
    if wrong:
        return RungResult(name, False, f"requests {wrong} were answered otherwise than by the same arm with ample memory", None)
    says = f"the refused request and {len(others)} others served, equal to the same arm with ample memory"
    return RungResult(name, True, says, trial.served_s)


def arm_of(bench: Bench, rung: FallbackRung) -> ArmExport | None:
    """The arm a rung serves, None when it was not exported."""
    if rung.kind == "smaller_map":
        return bench.export.helpers.get("smaller_map")
    return bench.arms["native" if rung.kind == "native" else "map"]


def references(bench: Bench, rung: FallbackRung, arm: ArmExport, asked: list[int]) -> Mapping[int, str | None]:
    """Answers of the same arm with ample memory: from its replay, or from a server started for them where it was not replayed."""
    if rung.kind != "smaller_map":
        return {index: row.answer_sha256 for index, row in bench.good_rows("native" if rung.kind == "native" else "map").items()}
    ample = try_requests(bench, bench.stage.run, arm, "roadtest-fallback-reference", bench.kv_memory_bytes, asked)
    return {index: answer.sha256 for index, answer in zip(asked, ample.answers, strict=True) if answer.ok}


def unserved(trial: Trial, asked: list[int]) -> str | None:
    """A sentence naming the first request that was not served fully, or None."""
    for index, answer in zip(asked, trial.answers, strict=True):
        if not answer.ok:
            return f"request {index} not served: {answer.error}"
    return None


def judge_ladder(results: list[RungResult], short: Shortage, others: int, ladder_s: float) -> Check:
    """passed at the first rung that works; every rung tried stands in the evidence."""
    evidence: dict[str, str | int | float | bool | None] = {
        "refused_request": short.largest,
        "needed_tokens": short.needed_tokens,
        "kv_memory_bytes": short.kv_memory_bytes,
        "other_requests": others,
        "ladder_s": round(ladder_s, 2),
        "beside": "measured while servers of other checks ran on the same machine",
    }
    evidence |= {f"rung_{at}": f"{result.rung}: {result.says}" for at, result in enumerate(results, start=1)}
    last = results[-1]
    if not last.worked:
        return Check(
            verdict="failed", reason=f"none of {len(results)} rungs served the refused request and the others correctly", evidence=evidence
        )
    evidence |= {"served_by": last.rung, "recover_s": round(last.recover_s or 0.0, 2)}
    reason = f"{last.rung} served the refused request and {others} others correctly, {last.recover_s or 0.0:.1f} s after it was applied"
    return Check(verdict="passed", reason=reason, evidence=evidence)


def describe(rung: FallbackRung) -> str:
    """The rung in a few words."""
    if rung.kind == "context_cap":
        return f"context cap of {rung.context_tokens} tokens"
    memory = "the same memory" if rung.memory_factor == 1 else f"{rung.memory_factor:g} times the memory"
    return f"{'smaller map' if rung.kind == 'smaller_map' else 'native formats'} with {memory}"
