"""Closed-loop replay at concurrency 1: the next request is scheduled when the answer before it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kvassay.errors import EngineError
from kvassay.progress import Step
from kvassay.roadtest.asking import Answer, ask, died
from kvassay.roadtest.bench import Bench
from kvassay.roadtest.identity import number
from kvassay.roadtest.rows import MemoryReading, request_row

if TYPE_CHECKING:
    from kvassay.serving.client import Client
    from kvassay.serving.memory import MemorySampler
    from kvassay.serving.process import Server

GIVE_UP_AFTER_HANGS = 3


async def replay(
    bench: Bench, arm: str, indexes: Sequence[int], segment: int, client: Client, server: Server, memory: MemorySampler, step: Step
) -> None:
    """Ask requests `indexes` one after another; each becomes a row as soon as it ends.

    Raises EngineError when the server dies or hangs for several requests running; finished rows are kept.
    """
    longest = max((row.input_tokens + row.asked_tokens for row in bench.ledger.requests(arm).values() if row.kv_peak_bytes), default=0)
    hangs = 0
    start_s = time.monotonic()
    for index in indexes:
        request, prompt = bench.request(index), bench.prompt(index)
        scheduled_s = time.monotonic()
        answer = await ask(client, prompt, request.output_tokens)
        kv_peak_bytes = None
        if answer.ok and request.total_tokens > longest:
            longest, kv_peak_bytes = request.total_tokens, int(number(await client.kv_state(), "bytes_peak"))
        sizes = (request.input_tokens, request.output_tokens)
        row = request_row(arm, index, segment, sizes, answer, scheduled_s, start_s, reading(memory), kv_peak_bytes)
        bench.ledger.add_request(row)
        step.advance()
        hangs = hangs + 1 if answer.hung else 0
        if answer.lost and await died(server):
            raise EngineError(f"arm {arm}: the server died at request {index} ({answer.error}); its log is in logs/roadtest-{arm}.log")
        if hangs >= GIVE_UP_AFTER_HANGS:
            raise EngineError(f"arm {arm}: {hangs} requests running got no end, last request {index}; see logs/roadtest-{arm}.log")


async def warm_up(bench: Bench, client: Client, step: Step) -> None:
    """The plan's warm-up requests: never measured, and with text of their own, so that no prefix is cached by them."""
    for each in range(bench.stage.plan.workload.warmup_requests):
        await ask(client, bench.warmup_prompt(each), bench.request(each % len(bench.trace.requests)).output_tokens)
        step.advance()


async def ask_again(bench: Bench, indexes: Sequence[int], client: Client, on_answer: Callable[[int, Answer], None]) -> None:
    """The same requests once more, unhurried."""
    for index in indexes:
        on_answer(index, await ask(client, bench.prompt(index), bench.request(index).output_tokens))


def reading(memory: MemorySampler) -> MemoryReading:
    """What the sampler has seen so far."""
    return MemoryReading(peak_bytes=memory.peak_bytes, start_bytes=memory.start_bytes, samples=memory.samples, measure=memory.measure)
