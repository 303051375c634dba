"""One sitting with all servers running: the canary first, then text, then tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from kvassay.errors import EngineError, KvassayError
from kvassay.evaluation.arms import CANARY, NATIVE, NOISE
from kvassay.evaluation.ask import ask_items, ask_kl
from kvassay.evaluation.bench import Bench
from kvassay.evaluation.canary import judge_canary, refuse_unmoved
from kvassay.evaluation.rows import Ledger
from kvassay.progress import Progress, Silent
from kvassay.stage import StageInput
from kvassay.targets.fleet import kv_memory_for, start_fleet

if TYPE_CHECKING:
    from kvassay.serving.client import Client

# Enough documents to see an unread cache before the long work begins.
FIRST_DOCUMENTS = 4
GUARDS = (NATIVE, NOISE, CANARY)


def ask_missing(stage: StageInput, bench: Bench, ledger: Ledger) -> dict[str, str]:
    """Start every server, do the work that is not on file, stop them. Returns the arms that did not start, with reasons.

    Raises EngineError when native or the canary does not start, an engine dies, or the canary moves nothing.
    """
    memory_bytes = kv_memory_for(bench.served.values(), bench.longest_tokens)
    with start_fleet(stage.run, bench.served, "evaluate", memory_bytes, stage.progress) as fleet:
        for name in (NATIVE, CANARY):
            if name in fleet.refused:
                raise EngineError(f"arm {name}: {fleet.refused[name]}; without it nothing can be judged")
        urls = {name: server.url for name, server in fleet.servers.items()}
        try:
            asyncio.run(_connected(urls, bench, ledger, stage.plan.tasks.served_kl.top_k, stage.progress))
        except ExceptionGroup as group:
            raise first_cause(group) from None
        return fleet.refused


async def sitting(clients: Mapping[str, Client], bench: Bench, ledger: Ledger, top_k: int, progress: Progress) -> None:
    """Ask the arms of `clients` everything that is not on file."""
    arms = tuple(arm for arm in bench.asked if arm == NOISE or arm in clients)
    with progress.step("held-out text through the served cache", bench.unmeasured(ledger, arms)) as step:
        await ask_kl(clients, bench.documents[:FIRST_DOCUMENTS], (NOISE, CANARY), top_k, ledger, step)
        await check_canary(clients, bench, ledger)
        await ask_kl(clients, bench.documents, [arm for arm in arms if arm != NATIVE], top_k, ledger, step)
    todo = bench.unanswered(ledger, arms)
    with progress.step("held-out tasks", len(todo)) as step:
        await ask_items(clients, todo, ledger, step)


async def _connected(urls: Mapping[str, str], bench: Bench, ledger: Ledger, top_k: int, progress: Progress) -> None:
    from kvassay.serving.client import Client

    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(Client(url)) for name, url in urls.items()}
        await sitting(clients, bench, ledger, top_k, progress)


async def check_canary(clients: Mapping[str, Client], bench: Bench, ledger: Ledger) -> None:
    """Raise EngineError unless the canary has moved; answers are asked for only where its KL does not show it."""
    tasks = list(bench.tasks.values())
    if not judge_canary(ledger, bench.documents, tasks, bench.canary_format).moved:
        await ask_items(clients, bench.unanswered(ledger, GUARDS), ledger, Silent())
        refuse_unmoved(judge_canary(ledger, bench.documents, tasks, bench.canary_format))


def first_cause(group: ExceptionGroup[Exception]) -> Exception:
    """The first problem that a user can act on, else the first."""
    flat: list[Exception] = []
    waiting: list[Exception] = [group]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, ExceptionGroup):
            waiting.extend(each.exceptions)
        else:
            flat.append(each)
    return next((each for each in flat if isinstance(each, KvassayError)), flat[0])
