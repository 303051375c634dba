"""Measure one arm on one server: warm-up, replay, second asks, the engine's own state, a clean end."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from kvassay.progress import Step
from kvassay.records.roadtest import Check
from kvassay.roadtest.abort import abort_check
from kvassay.roadtest.bench import Bench, checked_count, sample
from kvassay.roadtest.identity import number
from kvassay.roadtest.replay import ask_again, reading, replay, warm_up
from kvassay.targets.start import start_arm

if TYPE_CHECKING:
    from kvassay.roadtest.asking import Answer
    from kvassay.serving.client import Client
    from kvassay.serving.process import Server

STOP_LIMIT_S = 10.0
ABORTED_TOKENS = 256


def measure_arm(bench: Bench, name: str) -> None:
    """Do what is not yet done for arm `name`. No other server may run: its memory is measured.

    Raises EngineError when it does not start or does not live through the replay.
    """
    ledger = bench.ledger
    if ledger.of("closed", name):
        return
    done = ledger.requests(name)
    remaining = [index for index in range(len(bench.trace.requests)) if index not in done]
    again = checked_count(len(bench.trace.requests))
    steps = 1 + bench.stage.plan.workload.warmup_requests + len(remaining) + again
    with bench.stage.progress.step(f"road test: {name}", steps) as step:
        with start_arm(bench.stage.run, bench.arms[name], log_name=f"roadtest-{name}", kv_memory_bytes=bench.kv_memory_bytes) as server:
            step.advance()
            asyncio.run(session(bench, name, remaining, server, step))
            started = time.monotonic()
            exit_code = server.stop(timeout_s=STOP_LIMIT_S)
            stop_s = round(time.monotonic() - started, 3)
        ledger.add("closed", arm=name, exit_code=exit_code, stop_s=stop_s)


async def session(bench: Bench, name: str, remaining: list[int], server: Server, step: Step) -> None:
    """Everything that is asked of one running server."""
    from kvassay.serving.client import Client
    from kvassay.serving.memory import MemorySampler

    ledger = bench.ledger
    async with Client(server.url) as client:
        if remaining:
            segment = 1 + max((row.segment for row in ledger.requests(name).values()), default=-1)
            with MemorySampler(server.pid, hz=10) as memory:
                await warm_up(bench, client, step)
                await replay(bench, name, remaining, segment, client, server, memory, step)
            ledger.add("memory", arm=name, segment=segment, **reading(memory).model_dump())

        def note(index: int, answer: Answer) -> None:
            ledger.add("second_ask", arm=name, request=index, outcome=answer.outcome, error=answer.error, answer_sha256=answer.sha256)
            step.advance()

        asked = {row["request"] for row in ledger.of("second_ask", name)}
        chosen = sample(sorted(bench.good_rows(name)), checked_count(len(bench.trace.requests)))
        await ask_again(bench, [index for index in chosen if index not in asked], client, note)
        if name == "map" and ledger.check("abort") is None:
            ledger.add_check("abort", await abort_storm(bench, client, server.url))
        ledger.add("state", arm=name, state=await client.kv_state())


async def abort_storm(bench: Bench, client: Client, url: str) -> Check:
    """The abort check with the smallest request of the trace, its answer made as long as the cache allows, at most ABORTED_TOKENS."""
    request = min(bench.trace.requests, key=lambda each: each.total_tokens)
    prompt = bench.prompt(bench.trace.requests.index(request))
    room_tokens = min(int(number(await client.kv_state(), "capacity_tokens")), bench.model.max_position_embeddings) - len(prompt)
    return await abort_check(client, url, prompt, min(ABORTED_TOKENS, room_tokens), prompt, request.output_tokens)
