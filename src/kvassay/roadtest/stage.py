"""Stage `roadtest`: the workload on the running engine, arm after arm, then the bad day."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from kvassay.errors import DamagedArtifact
from kvassay.records.roadtest import CHECKS, ArmRoadtest, Check, Roadtest
from kvassay.roadtest.arm import measure_arms
from kvassay.roadtest.bad_day import bad_day
from kvassay.roadtest.bench import ROWS_FILE, Bench, open_bench
from kvassay.roadtest.figures import CLOCKS_NOTE, arm_figures
from kvassay.stage import StageInput
from kvassay.workload import prompts_digest

CONCURRENCY = 1
MEMORY_NOTES = {
    True: "process memory is PSS: pages shared with other processes of the machine, such as libraries, count in part",
    False: "process memory is RSS, as this system does not tell PSS: shared pages count in full",
}


def roadtest(stage: StageInput) -> Roadtest:
    """Replay the trace on every arm, one server at a time, then run the checks; goes on where it stopped.

    Raises BadInput for an unusable trace, EngineError when an arm does not start or does not live through the replay.
    """
    bench = open_bench(stage)
    with ThreadPoolExecutor(1) as background:
        ended = measure_arms(bench, background)
        bad_day(bench, ended)
        ended.result()
    arms: dict[str, ArmRoadtest | None] = {
        name: arm_figures(bench.ledger, name) if arm is not None else None for name, arm in bench.export.arms.items()
    }
    state = bench.ledger.of("state", "map")[-1]["state"]
    return Roadtest(
        target=bench.export.target,
        version=str(state["engine_version"]),
        build=str(state["build"]),
        workload=stage.plan.workload.trace.name,
        workload_sha256=bench.trace.sha256,
        loop="closed",
        concurrency=CONCURRENCY,
        warmup_requests=stage.plan.workload.warmup_requests,
        arms=arms,
        arms_reason={name: bench.export.arms_reason.get(name, "not exported") for name, arm in arms.items() if arm is None},
        checks={name: finished(bench, name) for name in CHECKS},
        longest_request_tokens=longest_served(bench),
        notes=notes(bench),
        side_files=(stage.run.side_file(ROWS_FILE),),
    )


def finished(bench: Bench, name: str) -> Check:
    """The check's row. Raises DamagedArtifact when it is missing."""
    check = bench.ledger.check(name)
    if check is None:
        raise DamagedArtifact(f"{bench.stage.run.path(ROWS_FILE)}: check {name} has no row; delete the file to start this stage again")
    return check


def longest_served(bench: Bench) -> int:
    """Cache tokens of the longest request that every arm answered well: the envelope is what was tested, not what was sent."""
    served = set.intersection(*(set(bench.good_rows(name)) for name in bench.arms))
    return max((bench.request(index).total_tokens for index in served), default=0)


def notes(bench: Bench) -> tuple[str, ...]:
    """Limits of what was measured, in sentences."""
    digest = prompts_digest(bench.prompt(index) for index in range(len(bench.trace.requests)))
    pss = all(row.memory.measure == "pss" for name in bench.arms for row in bench.ledger.requests(name).values())
    found = [
        CLOCKS_NOTE,
        "the engine serves one sequence at a time: arrival times of the trace are not replayed, and no queueing is measured",
        f"prompts: text of CPython's documentation topics cut to exact lengths, sha256 {digest}",
        "answers of the speed run are never used for quality",
        MEMORY_NOTES[pss],
        "answers have a fixed length (end-of-sequence ignored), greedy, streamed",
    ]
    if bench.trace.bad:
        named = ", ".join(f"line {bad.number} ({bad.why})" for bad in bench.trace.bad[:5])
        found.append(f"{len(bench.trace.bad)} of {bench.trace.lines} trace lines were left out: {named}")
    return tuple(found)
