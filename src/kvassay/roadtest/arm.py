"""Measure the arms, one server at a time; what is not measured of one runs while the server of the next starts."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from kvassay.progress import Step
from kvassay.records.roadtest import Check
from kvassay.roadtest.abort import abort_check
from kvassay.roadtest.bench import Bench, checked_count, sample
from kvassay.roadtest.checking import checked
from kvassay.roadtest.identity import number
from kvassay.roadtest.replay import ask_again, reading, replay, warm_up
from kvassay.roadtest.room import servers_at_once
from kvassay.targets.start import start_arm

if TYPE_CHECKING:
    from kvassay.roadtest.asking import Answer
    from kvassay.serving.process import Server

STOP_LIMIT_S = 10.0
ABORTED_TOKENS = 256


def measure_arms(bench: Bench, background: ThreadPoolExecutor) -> Future[None]:
    """Measure what is not yet measured. `background` has one worker; the future is done when the last server is gone.

    Raises EngineError when a server does not start or does not live through its replay.
    """
    ended: Future[None] = Future()
    ended.set_result(None)
    for name in bench.arms:
        ended = measure_arm(bench, name, background, ended)
    return ended


def measure_arm(bench: Bench, name: str, background: ThreadPoolExecutor, before: Future[None]) -> Future[None]:
    """Measure arm `name` once the server `before` it is gone, and hand its server to `background` for the unmeasured rest.

    Memory is measured as PSS, which pages shared with another server would make smaller: none lives while the arm is measured.
    """
    if bench.ledger.of("closed", name):
        return before
    done = bench.ledger.requests(name)
    remaining = [index for index in range(len(bench.trace.requests)) if index not in done]
    steps = 1 + bench.stage.plan.workload.warmup_requests + len(remaining)
    with bench.stage.progress.step(f"road test: {name}", steps) as step:
        server = start_arm(bench.stage.run, bench.arms[name], log_name=f"roadtest-{name}", kv_memory_bytes=bench.kv_memory_bytes)
        try:
            step.advance()
            before.result()
            asyncio.run(measured(bench, name, remaining, server, step))
            ended = background.submit(finish_arm, bench, name, server)
        except BaseException:
            server.stop()
            raise
    if servers_at_once(bench) == 1:
        ended.result()
    return ended


async def measured(bench: Bench, name: str, remaining: list[int], server: Server, step: Step) -> None:
    """Warm-up and replay under the memory sampler, then the engine's own state."""
    from kvassay.serving.client import Client
    from kvassay.serving.memory import MemorySampler

    async with Client(server.url) as client:
        if remaining:
            segment = 1 + max((row.segment for row in bench.ledger.requests(name).values()), default=-1)
            with MemorySampler(server.pid, hz=10) as memory:
                await warm_up(bench, client, step)
                await replay(bench, name, remaining, segment, client, server, memory, step)
            bench.ledger.add("memory", arm=name, segment=segment, **reading(memory).model_dump())
        bench.ledger.add("state", arm=name, state=await client.kv_state())


def finish_arm(bench: Bench, name: str, server: Server) -> None:
    """The unmeasured rest: second asks, on the map arm the abort check, and a clean end."""
    with server:
        asyncio.run(unhurried(bench, name, server.url))
        if name == "map" and bench.ledger.check("abort") is None:
            bench.ledger.add_check("abort", checked(bench.stage.run, lambda: asyncio.run(abort_storm(bench, server.url))))
        started = time.monotonic()
        exit_code = server.stop(timeout_s=STOP_LIMIT_S)
        bench.ledger.add("closed", arm=name, exit_code=exit_code, stop_s=round(time.monotonic() - started, 3))


async def unhurried(bench: Bench, name: str, url: str) -> None:
    """Some requests once more, each compared later with its replayed answer."""
    from kvassay.serving.client import Client

    ledger = bench.ledger

    def note(index: int, answer: Answer) -> None:
        ledger.add("second_ask", arm=name, request=index, outcome=answer.outcome, error=answer.error, answer_sha256=answer.sha256)

    asked = {row["request"] for row in ledger.of("second_ask", name)}
    chosen = sample(sorted(bench.good_rows(name)), checked_count(len(bench.trace.requests)))
    async with Client(url) as client:
        await ask_again(bench, [index for index in chosen if index not in asked], client, note)


async def abort_storm(bench: Bench, url: str) -> Check:
    """The abort check with the smallest request of the trace, its answer made as long as the cache allows, at most ABORTED_TOKENS."""
    from kvassay.serving.client import Client

    request = min(bench.trace.requests, key=lambda each: each.total_tokens)
    prompt = bench.prompt(bench.trace.requests.index(request))
    async with Client(url) as client:
        room_tokens = min(int(number(await client.kv_state(), "capacity_tokens")), bench.model.max_position_embeddings) - len(prompt)
        return await abort_check(client, url, prompt, min(ABORTED_TOKENS, room_tokens), prompt, request.output_tokens)
