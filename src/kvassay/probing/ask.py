"""Ask running servers what they hold, and what they lose on the choice split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kvassay.errors import EngineError
from kvassay.progress import Progress
from kvassay.tasks.served_kl import DocumentKL, ask_together, document_kl, document_logprobs, rerun_logprobs

if TYPE_CHECKING:
    from kvassay.serving.client import Client

NATIVE = "native"


@dataclass
class Findings:
    """kl: per arm, in the order of the documents. noise: native against its own rerun. failed: arms that gave no log-probabilities."""

    states: dict[str, dict[str, Any]] = field(default_factory=dict)
    kl: dict[str, list[DocumentKL]] = field(default_factory=dict)
    noise: list[DocumentKL] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


async def ask_servers(urls: Mapping[str, str], documents: Sequence[Sequence[int]], top_k: int, progress: Progress) -> Findings:
    """`urls`: arm to base URL, native among them. Raises as `ask_clients`."""
    from kvassay.serving.client import Client

    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(Client(url)) for name, url in urls.items()}
        return await ask_clients(clients, documents, top_k, progress)


async def ask_clients(clients: Mapping[str, Client], documents: Sequence[Sequence[int]], top_k: int, progress: Progress) -> Findings:
    """Every document under every arm. The states are read after the text, when the caches have held real tokens.

    Raises EngineError when native gives no log-probabilities, or a server tells no state.
    """
    findings = Findings(kl={arm: [] for arm in clients if arm != NATIVE})
    with progress.step("choice text through the served caches", len(documents)) as step:
        for document in documents:
            await ask_document(clients, document, top_k, findings)
            step.advance()
    findings.states = {name: await client.kv_state() for name, client in clients.items()}
    return findings


async def ask_document(clients: Mapping[str, Client], document: Sequence[int], top_k: int, findings: Findings) -> None:
    """One document under native, native again, and every other arm that has not failed."""
    arms = [arm for arm in findings.kl if arm not in findings.failed]
    asking = [document_logprobs(clients[NATIVE], document, top_k), rerun_logprobs(clients[NATIVE], document, top_k)]
    asking += [document_logprobs(clients[arm], document, top_k) for arm in arms]
    native, again, *others = await ask_together(asking)
    if isinstance(native, EngineError):
        raise native
    if isinstance(again, EngineError):
        raise again
    findings.noise.append(document_kl(native, again))
    for arm, answer in zip(arms, others, strict=True):
        if isinstance(answer, EngineError):
            findings.failed[arm] = str(answer)
        else:
            findings.kl[arm].append(document_kl(native, answer))
