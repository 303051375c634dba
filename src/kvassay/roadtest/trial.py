"""One short-lived server of a bad-day check: start it, ask it some requests, keep what it said, stop it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvassay.records.export import ArmExport
from kvassay.roadtest.asking import Answer, ask, died
from kvassay.roadtest.bench import Bench
from kvassay.serving.process import Server
from kvassay.store import Run
from kvassay.targets.start import start_arm

TRIAL_REQUEST_LIMIT_S = 60.0
# Threads that wait in a spin would take the cores from the servers of other checks; results do not depend on it.
SHARES_CORES = {"OMP_WAIT_POLICY": "PASSIVE"}


@dataclass(frozen=True)
class Trial:
    """`answers` in the order asked. `alive`: the process still ran after the last answer.

    started_s: seconds from the call until it was healthy. served_s: seconds from the call to the end of the first answer.
    """

    state: Mapping[str, Any]
    answers: tuple[Answer, ...]
    alive: bool
    started_s: float
    served_s: float


def try_requests(
    bench: Bench,
    run: Run,
    arm: ArmExport,
    log_name: str,
    kv_memory_bytes: int,
    indexes: Sequence[int],
    max_context_tokens: int | None = None,
    watch: Callable[[int], None] | None = None,
) -> Trial:
    """Start `arm` from the run folder `run` and ask requests `indexes` of the trace in order; one may stand there more than once.

    `watch` gets the process id after the answers, while the server still runs. Raises EngineError when the server does not start,
    or cannot tell its state.
    """
    began = time.monotonic()
    with start_arm(
        run, arm, log_name=log_name, kv_memory_bytes=kv_memory_bytes, max_context_tokens=max_context_tokens, extra_env=SHARES_CORES
    ) as server:
        started_s = time.monotonic() - began
        state, answers, alive = asyncio.run(_ask_all(bench, server, indexes))
        first_s = answers[0].done_s if answers else time.monotonic()
        if watch and alive:
            watch(server.pid)
        return Trial(state, answers, alive, started_s, first_s - began)


async def _ask_all(bench: Bench, server: Server, indexes: Sequence[int]) -> tuple[dict[str, Any], tuple[Answer, ...], bool]:
    from kvassay.serving.client import Client

    async with Client(server.url) as client:
        state = await client.kv_state()
        answers = [await ask(client, bench.prompt(index), bench.request(index).output_tokens, TRIAL_REQUEST_LIMIT_S) for index in indexes]
        lost = bool(answers) and answers[-1].lost
        return state, tuple(answers), not (await died(server) if lost else not server.is_alive())
