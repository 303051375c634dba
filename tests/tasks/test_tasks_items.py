"""Items: exact lengths, seeds, depths, digests, scoring. The tokenizer here counts words and single characters."""

from __future__ import annotations

import hashlib
import re
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvassay.errors import BadInput
from kvassay.plan.schema import RetrievalTask, ShortTask
from kvassay.tasks import retrieval, short
from kvassay.tasks.checks import Check, is_correct
from kvassay.tasks.short_questions import QUESTIONS
from kvassay.tasks.tokenizer import TaskTokenizer


class WordTokenizer:
    """Words with their leading space, digits one by one, as many models do."""

    def __init__(self):
        self.ids: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        return [self.ids.setdefault(piece, len(self.ids) + 10) for piece in re.findall(r"\d| ?[A-Za-z]+|\s|[^\w\s]", text)]

    def decode(self, ids) -> str:
        pieces = {number: piece for piece, number in self.ids.items()}
        return "".join(pieces.get(each, "") for each in ids)


@pytest.fixture
def words():
    return WordTokenizer()


SIZES = RetrievalTask(lengths=(80, 200, 333), items_per_length=5)


def test_retrieval_lengths_are_exact_in_the_models_own_tokens(words):
    items = retrieval.retrieval(TaskTokenizer(words.encode), 1, SIZES)
    assert [len(item.prompt) for item in items] == [80] * 5 + [200] * 5 + [333] * 5
    assert [item.length for item in items] == ["80"] * 5 + ["200"] * 5 + ["333"] * 5
    assert len({item.item for item in items}) == len({item.prompt_digest for item in items}) == 15


def test_retrieval_with_start_tokens_keeps_its_length(words):
    items = retrieval.retrieval(TaskTokenizer(words.encode, (1, 2)), 1, SIZES)
    assert all(item.prompt[:2] == (1, 2) and len(item.prompt) == int(item.length) for item in items)


def test_the_needle_stands_once_and_its_answer_is_right(words):
    for item in retrieval.retrieval(TaskTokenizer(words.encode), 4, SIZES):
        text = words.decode(item.prompt)
        found = re.findall(r"The access code for (\w+) is (\d{5})\.", text)
        assert len(found) == 1
        word, number = found[0]
        assert text.endswith(f"What is the access code for {word}? The access code for {word} is")
        assert is_correct(item.check, f" {number}")
        assert not is_correct(item.check, f" {int(number) + 1}")
        # Nothing else in the prompt gives the number away.
        assert text.count(number) == 1


def test_depths_are_spread(words):
    items = retrieval.retrieval(TaskTokenizer(words.encode), 1, RetrievalTask(lengths=(1000,), items_per_length=4))
    depths = [words.decode(item.prompt).index("The access code") / len(words.decode(item.prompt)) for item in items]
    assert depths == pytest.approx([0.125, 0.375, 0.625, 0.875], abs=0.06)


def test_seeds_change_and_repeat_questions(words):
    tokenizer = TaskTokenizer(words.encode)
    first, again, other = (retrieval.retrieval(tokenizer, seed, SIZES) for seed in (1, 1, 2))
    assert first == again
    assert {item.prompt_digest for item in first}.isdisjoint(item.prompt_digest for item in other)
    # Asking for more keeps what was asked before.
    more = retrieval.retrieval(tokenizer, 1, RetrievalTask(lengths=(80,), items_per_length=5))
    assert more == first[:5]


def test_a_length_too_short_for_the_question_is_refused(words):
    with pytest.raises(BadInput, match="cannot hold the question"):
        retrieval.retrieval(TaskTokenizer(words.encode), 1, RetrievalTask(lengths=(20,), items_per_length=1))


def test_prompt_digest_is_over_little_endian_ids(words):
    item = retrieval.retrieval(TaskTokenizer(words.encode), 1, SIZES)[0]
    assert item.prompt_digest == hashlib.sha256(struct.pack(f"<{len(item.prompt)}I", *item.prompt)).hexdigest()
    assert item.needs_tokens == 80 + item.max_tokens


def test_short_questions_are_many_distinct_and_hold_no_answer(words):
    assert len(QUESTIONS) >= 40
    assert len({question.name for question in QUESTIONS}) == len(QUESTIONS)
    for question in QUESTIONS:
        if not question.name.startswith(("repeat", "letter")):
            shown = re.findall(r"\w+", f"{question.text} {question.prefix}".casefold())
            assert not {answer.casefold() for answer in question.accepted} & set(shown), question.name


def test_short_draw_is_seeded_without_repetition(words):
    tokenizer = TaskTokenizer(words.encode)
    items = short.short(tokenizer, 1, ShortTask(items=16))
    assert len({item.item for item in items}) == 16
    assert items == short.short(tokenizer, 1, ShortTask(items=16))
    assert items != short.short(tokenizer, 2, ShortTask(items=16))
    assert len(short.short(tokenizer, 1, ShortTask(items=len(QUESTIONS)))) == len(QUESTIONS)
    with pytest.raises(BadInput, match="questions are known"):
        short.short(tokenizer, 1, ShortTask(items=len(QUESTIONS) + 1))


def test_chance_is_the_best_constant_answer(words):
    items = short.short(TaskTokenizer(words.encode), 1, ShortTask(items=len(QUESTIONS)))
    best = max(sum(is_correct(item.check, answer) for item in items) for q in QUESTIONS for answer in q.accepted)
    assert short.chance(items) == best / len(items)
    assert retrieval.chance(()) == pytest.approx(1 / 90_000)


@pytest.mark.parametrize(
    ("kind", "accepted", "answer", "right"),
    [
        ("begins_with", "Paris", " Paris, of course", True),
        ("begins_with", "Paris", ' "paris"', True),
        ("begins_with", "Paris", " Parisian life", False),
        ("begins_with", "Paris", " not Paris", False),
        ("begins_with", "7", " 70", False),
        ("begins_with", "7", "", False),
        ("contains", "12345", " the code 12345", True),
        ("contains", "12345", " 123456", False),
        ("contains", "12345", " 012345", False),
        ("contains", "a.b", " axb", False),
    ],
)
def test_scoring(kind, accepted, answer, right):
    assert is_correct(Check(kind, (accepted,)), answer) is right


@given(st.text(max_size=40), st.text(min_size=1, max_size=5))
def test_scoring_never_raises(answer, accepted):
    for kind in ("begins_with", "contains"):
        is_correct(Check(kind, (accepted,)), answer)
