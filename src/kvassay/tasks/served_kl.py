"""Forward KL through the served cache: teacher-forced text, native's log-probabilities against an arm's."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvassay.errors import EngineError
from kvassay.records.base import Interval
from kvassay.records.evaluation import ServedKL
from kvassay.statistics.bootstrap import bootstrap_mean_interval
from kvassay.statistics.quantiles import percentile
from kvassay.tasks.top_k_rest import most_likely, top_k_rest_kl

if TYPE_CHECKING:
    from kvassay.serving.client import Client

LEVEL = 0.95
Logprobs = Sequence[dict[int, float]]


@dataclass(frozen=True)
class DocumentKL:
    """One document under one arm. kl_nats, top1_agrees: per position that predicts a token, in order."""

    kl_nats: tuple[float, ...]
    top1_agrees: tuple[bool, ...]

    @property
    def mean_nats(self) -> float:
        return math.fsum(self.kl_nats) / len(self.kl_nats)


async def document_logprobs(client: Client, document: Sequence[int], top_k: int) -> list[dict[int, float]]:
    """The served distribution after each token of `document`, as {token id: nats} with at least top_k entries each.

    Raises EngineError when the server gives none, or one of them is not a probability.
    """
    # A server answers for prompt tokens only: one more lets it tell what it expects after the last.
    asked = [*document, document[-1]]
    positions = (await client.prompt_logprobs(asked, top_k))[1:]
    found = [position for position in positions if position]
    if len(found) != len(document):
        raise EngineError(f"prompt log-probabilities: {len(found)} positions answered of {len(document)}")
    if any(math.isnan(nats) or nats > 1e-3 for position in found for nats in position.values()):
        raise EngineError("prompt log-probabilities: the server gives NaN or a probability above 1; its cache or model is broken")
    return found


async def rerun_logprobs(client: Client, document: Sequence[int], top_k: int) -> list[dict[int, float]]:
    """The same positions of the first half of `document`, asked for in a request of half the length.

    The numbers must be the same, but a low-precision engine rounds otherwise when shapes differ; so native against its own rerun
    shows the noise that any disturbance of the cache stirs up. An exact repetition would show none.
    """
    return await document_logprobs(client, document[: (len(document) + 1) // 2], top_k)


async def ask_together(asking: Iterable[Coroutine[None, None, list[dict[int, float]]]]) -> list[list[dict[int, float]] | EngineError]:
    """Every answer in order, or the EngineError in its place; any other failure is raised."""
    answers = await asyncio.gather(*asking, return_exceptions=True)
    found: list[list[dict[int, float]] | EngineError] = []
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, EngineError):
            raise answer
        found.append(answer)
    return found


def document_kl(reference: Logprobs, candidate: Logprobs) -> DocumentKL:
    """Position by position, over those that both have from the start."""
    pairs = list(zip(reference, candidate, strict=False))
    return DocumentKL(
        kl_nats=tuple(top_k_rest_kl(a, b) for a, b in pairs),
        top1_agrees=tuple(most_likely(a) == most_likely(b) for a, b in pairs),
    )


def mean_kl(documents: Sequence[DocumentKL]) -> float:
    """Mean over all positions, nats."""
    return math.fsum(nats for each in documents for nats in each.kl_nats) / sum(len(each.kl_nats) for each in documents)


def summarise(documents: Sequence[DocumentKL], top_k: int, seed: int) -> ServedKL:
    """Mean with a bootstrap interval over documents, p99 over positions. Raises BadInput for fewer than two documents."""
    weights = [len(each.kl_nats) for each in documents]
    low, high = bootstrap_mean_interval([each.mean_nats for each in documents], seed, LEVEL, weights=weights)
    positions = sorted(nats for each in documents for nats in each.kl_nats)
    agreed = [agrees for each in documents for agrees in each.top1_agrees]
    return ServedKL(
        mean=mean_kl(documents),
        mean_interval=Interval(low=low, high=high, level=LEVEL),
        p99=percentile(positions, 99),
        top1_agreement=sum(agreed) / len(agreed),
        estimator="top_k_rest",
        top_k=top_k,
        positions=len(positions),
        documents=len(documents),
    )
