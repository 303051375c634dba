"""Does the harness read the cache at all? The worst cache the engine can be made to serve must change what comes out."""

from __future__ import annotations

from collections.abc import Sequence

from kvassay.errors import EngineError
from kvassay.evaluation.arms import CANARY, NATIVE, NOISE, questions
from kvassay.evaluation.rows import Ledger, document_kls
from kvassay.records.evaluation import Canary
from kvassay.tasks.item import Item
from kvassay.tasks.served_kl import mean_kl

NOISE_MULTIPLE = 3
# A canary costs nats; below this even a noiseless engine's rounding could pass for a movement.
LEAST_NATS = 1e-4


def judge_canary(ledger: Ledger, documents: Sequence[Sequence[int]], tasks: Sequence[Sequence[Item]], cache_format: str) -> Canary:
    """The canary against native by what is on file. It has moved when its KL leaves the native-native noise, or a larger
    share of its answers changed than of native's own when asked again.

    Raises EngineError when neither it nor native gave log-probabilities for `documents`.
    """
    canary, noise = document_kls(ledger.measured(CANARY, documents)), document_kls(ledger.measured(NOISE, documents))
    if not canary or not noise:
        raise EngineError(
            "canary: no log-probabilities, so it cannot be told whether the harness reads the cache; see logs/evaluate-canary.log"
        )
    kl_nats, noise_nats = mean_kl(canary), mean_kl(noise)
    changed, answers = _changed(ledger, CANARY, tasks)
    noise_changed, noise_answers = _changed(ledger, NOISE, tasks)
    by_kl = kl_nats > max(NOISE_MULTIPLE * noise_nats, LEAST_NATS)
    by_answers = changed * max(noise_answers, 1) > noise_changed * max(answers, 1)
    return Canary(
        format=cache_format,
        kl_nats=kl_nats,
        noise_nats=noise_nats,
        moved=by_kl or by_answers,
        answers_changed=changed,
        answers=answers,
    )


def refuse_unmoved(canary: Canary) -> None:
    """Raise EngineError when the canary moved nothing: no later number of this harness would be about the cache."""
    if not canary.moved:
        raise EngineError(
            f"canary: {canary.format} in every layer changed nothing (KL {canary.kl_nats:.2g} nats, noise {canary.noise_nats:.2g}, "
            f"{canary.answers_changed} of {canary.answers} answers), so the harness is not reading the cache; evaluation stops"
        )


def _changed(ledger: Ledger, arm: str, tasks: Sequence[Sequence[Item]]) -> tuple[int, int]:
    """Answers of `arm` that differ from native's, and answers that both gave."""
    pairs = [(ledger.answered(NATIVE, item), ledger.answered(arm, item)) for items in tasks for item in questions(arm, items)]
    both = [(a.answer_sha256, b.answer_sha256) for a, b in pairs if a and b and a.error is None and b.error is None]
    return sum(a != b for a, b in both), len(both)
