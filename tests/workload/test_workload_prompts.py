"""Prompts: exact length, the same every time, really shared where the trace says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvassay.errors import BadInput
from kvassay.workload import Request, SharedBlock, prompt_tokens, prompts_digest
from kvassay.workload.prompts import stretch

POOL = list(range(1000, 1500))


def test_the_pool_is_a_ring():
    assert stretch([1, 2, 3], 2, 7) == [3, 1, 2, 3, 1, 2, 3]
    assert stretch([1, 2, 3], 1, 2) == [2, 3]
    assert stretch([1, 2, 3], 0, 0) == []


@given(st.integers(1, 2000), st.integers(0, 2**40), st.integers(0, 5000), st.integers(0, 300))
def test_length_is_exact_and_every_call_gives_the_same(input_tokens, seed, index, shared):
    request = Request(0.0, input_tokens, 4, (SharedBlock("a", min(shared, input_tokens)),))
    prompt = prompt_tokens(POOL, seed, index, request)
    assert len(prompt) == input_tokens and set(prompt) <= set(POOL)
    assert prompt == prompt_tokens(POOL, seed, index, request)


def test_the_same_block_is_the_same_text_and_the_rest_is_not():
    first = prompt_tokens(POOL, 3, 0, Request(0.0, 100, 4, (SharedBlock("system", 40),)))
    second = prompt_tokens(POOL, 3, 1, Request(1.0, 150, 4, (SharedBlock("system", 40),)))
    part = prompt_tokens(POOL, 3, 2, Request(1.0, 30, 4, (SharedBlock("system", 20),)))
    assert first[:40] == second[:40] and first[40:100] != second[40:100]
    assert part[:20] == first[:20]
    other = prompt_tokens(POOL, 3, 1, Request(1.0, 150, 4, (SharedBlock("other", 40),)))
    assert other[:40] != second[:40] and other[40:] == second[40:]


def test_text_follows_seed_and_number():
    request = Request(0.0, 50, 4)
    prompts = [prompt_tokens(POOL, seed, index, request) for seed in (0, 1) for index in (0, 1)]
    assert len({tuple(prompt) for prompt in prompts}) == 4
    assert prompts_digest(prompts) == prompts_digest(prompts) != prompts_digest(prompts[::-1])
    assert prompts_digest([[1, 2], [3]]) != prompts_digest([[1], [2, 3]]) != prompts_digest([[12], [3]])


def test_what_cannot_make_a_prompt_is_refused():
    with pytest.raises(BadInput, match="pool"):
        prompt_tokens([], 0, 0, Request(0.0, 5, 1))
    with pytest.raises(BadInput, match="shared blocks of 12 tokens"):
        prompt_tokens(POOL, 0, 0, Request(0.0, 10, 1, (SharedBlock("a", 6), SharedBlock("b", 6))))
