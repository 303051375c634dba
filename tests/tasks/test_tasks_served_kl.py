from __future__ import annotations

import asyncio
import math

import pytest

from kvassay.errors import BadInput, EngineError
from kvassay.tasks.served_kl import DocumentKL, document_kl, document_logprobs, mean_kl, rerun_logprobs, summarise


class FakeClient:
    """Answers each position with one certain token; remembers what was asked."""

    def __init__(self, answer=None):
        self.asked = []
        self.answer = answer

    async def prompt_logprobs(self, prompt, top_k):
        self.asked.append((list(prompt), top_k))
        return [None, *({token: -0.5, token + 1: -1.5} for token in prompt[1:])] if self.answer is None else self.answer


def test_one_token_more_is_asked_so_that_every_token_of_the_document_counts():
    client = FakeClient()
    found = asyncio.run(document_logprobs(client, [5, 6, 7], 20))
    assert client.asked == [([5, 6, 7, 7], 20)]
    assert len(found) == 3


def test_rerun_covers_the_first_half():
    client = FakeClient()
    found = asyncio.run(rerun_logprobs(client, [1, 2, 3, 4, 5], 20))
    assert client.asked == [([1, 2, 3, 3], 20)]
    assert len(found) == 3


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([None, {1: -0.1}, None, {1: -0.1}], "2 positions answered of 3"),
        ([None, {1: -0.1}, {}, {1: -0.1}], "2 positions answered of 3"),
        ([None, {1: -0.1}, {1: math.nan}, {1: -0.1}], "NaN"),
        ([None, {1: -0.1}, {1: 0.7}, {1: -0.1}], "above 1"),
    ],
)
def test_unusable_answers_are_engine_errors(answer, says):
    with pytest.raises(EngineError, match=says):
        asyncio.run(document_logprobs(FakeClient(answer), [5, 6, 7], 20))


def test_document_kl_by_hand():
    certain = {0: math.log(0.5), 1: math.log(0.5)}
    tilted = {0: math.log(0.25), 1: math.log(0.75)}
    found = document_kl([certain, certain, certain], [certain, tilted])
    assert len(found.kl_nats) == 2
    assert found.kl_nats[0] == 0.0
    assert found.kl_nats[1] == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3), abs=1e-5)
    assert found.top1_agrees == (True, False)


def test_summary_weighs_by_positions_and_resamples_documents():
    documents = [DocumentKL((0.1, 0.3), (True, False)), DocumentKL((0.5,), (True,)), DocumentKL((0.2, 0.2, 0.2), (True,) * 3)]
    found = summarise(documents, 50, seed=1)
    assert found.mean == pytest.approx(1.5 / 6)
    assert mean_kl(documents) == found.mean
    assert (found.positions, found.documents, found.top_k, found.estimator) == (6, 3, 50, "top_k_rest")
    assert found.top1_agreement == pytest.approx(5 / 6)
    assert found.p99 == pytest.approx(0.5 - 0.05 * 0.2)
    assert 0.199 < found.mean_interval.low < found.mean < found.mean_interval.high < 0.501
    with pytest.raises(BadInput, match="at least two"):
        summarise(documents[:1], 50, seed=1)
