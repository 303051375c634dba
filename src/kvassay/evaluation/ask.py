"""Put every question to every arm that has not answered it yet."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kvassay.corpora.tokens import ids_digest
from kvassay.errors import EngineError
from kvassay.evaluation.arms import NATIVE, NOISE
from kvassay.evaluation.rows import ItemRow, KLRow, Ledger
from kvassay.progress import Step
from kvassay.tasks.checks import is_correct
from kvassay.tasks.item import Item
from kvassay.tasks.served_kl import ask_together, document_kl, document_logprobs, rerun_logprobs

if TYPE_CHECKING:
    from kvassay.serving.client import Client

# Requests at a time over all arms. Decoding one sequence leaves cores idle: on two cores three at once took two thirds of the
# time of one by one.
AT_ONCE = 3


async def ask_items(clients: Mapping[str, Client], todo: Iterable[tuple[str, Item]], ledger: Ledger, step: Step) -> None:
    """Ask each (arm, item); each answer is on disk when it is counted. Raises EngineError when an engine has died."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(arm: str, item: Item) -> None:
        async with gate:
            ledger.add_answer(await ask_item(clients[_server(arm)], arm, item))
            step.advance()

    async with asyncio.TaskGroup() as group:
        for arm, item in todo:
            group.create_task(one(arm, item))


async def ask_item(client: Client, arm: str, item: Item) -> ItemRow:
    """One answer, judged. A request that fails on a living engine is a wrong answer with an error."""
    answer = await client.complete(list(item.prompt), item.max_tokens, stop=item.stop, stream=False)
    if answer.error is not None:
        await refuse_dead(client, arm, answer.error)
    return ItemRow(
        task=item.task,
        item=item.item,
        arm=arm,
        correct=answer.error is None and is_correct(item.check, answer.text),
        prompt_digest=item.prompt_digest,
        cluster=item.cluster,
        length=item.length,
        finish_reason=answer.finish_reason,
        answer_sha256=None if answer.error is not None else hashlib.sha256(answer.text.encode()).hexdigest(),
        output_tokens=answer.output_tokens,
        empty=answer.error is None and not answer.text.strip(),
        error=answer.error,
    )


async def ask_kl(
    clients: Mapping[str, Client], documents: Sequence[Sequence[int]], arms: Sequence[str], top_k: int, ledger: Ledger, step: Step
) -> None:
    """Measure each document under each of `arms` that has no row for it; native is asked once per document.

    Raises EngineError when native gives no log-probabilities, or an engine has died.
    """
    for document in documents:
        digest = ids_digest(document)
        missing = [arm for arm in arms if (arm, digest) not in ledger.documents]
        if not missing:
            continue
        asking = [document_logprobs(clients[NATIVE], document, top_k), *(_logprobs(clients, arm, document, top_k) for arm in missing)]
        native, *others = await ask_together(asking)
        if isinstance(native, EngineError):
            raise native
        for arm, answer in zip(missing, others, strict=True):
            if isinstance(answer, EngineError):
                if arm == NOISE:
                    raise answer
                await refuse_dead(clients[arm], arm, str(answer))
                ledger.add_kl(KLRow(arm=arm, document=digest, kl_nats=(), top1_agrees=(), error=str(answer)))
            else:
                found = document_kl(native, answer)
                ledger.add_kl(KLRow(arm=arm, document=digest, kl_nats=found.kl_nats, top1_agrees=found.top1_agrees, error=None))
            step.advance()


def _logprobs(
    clients: Mapping[str, Client], arm: str, document: Sequence[int], top_k: int
) -> Coroutine[None, None, list[dict[int, float]]]:
    ask = rerun_logprobs if arm == NOISE else document_logprobs
    return ask(clients[_server(arm)], document, top_k)


async def refuse_dead(client: Client, arm: str, error: str) -> None:
    """Raise EngineError when the engine no longer answers: its failure is then none of this question's."""
    if not await client.health():
        raise EngineError(f"arm {arm}: the engine no longer answers ({error}); finished answers are kept, run again to go on")


def _server(arm: str) -> str:
    return NATIVE if arm == NOISE else arm
