"""Short factual and instruction prompts with an answer prefix: the cache holds a few dozen tokens, so a format can only hurt.

The list is written by kind, plain things a small model may know; nothing was added or dropped for how a model answers it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from kvassay.errors import BadInput
from kvassay.plan.schema import ShortTask
from kvassay.tasks.checks import Check
from kvassay.tasks.item import Item
from kvassay.tasks.short_questions import QUESTIONS, Question
from kvassay.tasks.tokenizer import TaskTokenizer

NAME = "short"
TEMPLATE = "Question: {question}\nAnswer:{prefix}"
ANSWER_TOKENS = 8


def short(tokenizer: TaskTokenizer, seed: int, sizes: ShortTask) -> tuple[Item, ...]:
    """`sizes.items` questions, drawn by `seed` without repetition. Raises BadInput when more are asked for than are known."""
    if sizes.items > len(QUESTIONS):
        raise BadInput(f"tasks.short.items: {sizes.items} asked for, {len(QUESTIONS)} questions are known; lower it")
    drawn = Random(f"{NAME} {seed}").sample(QUESTIONS, sizes.items)  # noqa: S311 - test questions, not secrets
    return tuple(_item(tokenizer, question) for question in drawn)


def chance(items: Sequence[Item]) -> float:
    """Score of the best constant answer to `items`: what a model gets that ignores the question."""
    answers = Counter(answer for item in items for answer in {accepted.casefold() for accepted in item.check.accepted})
    return max(answers.values(), default=0) / max(len(items), 1)


def _item(tokenizer: TaskTokenizer, question: Question) -> Item:
    text = TEMPLATE.format(question=question.text, prefix=f" {question.prefix}" if question.prefix else "")
    return Item(
        task=NAME,
        item=question.name,
        prompt=(*tokenizer.start, *tokenizer.encode(text)),
        max_tokens=ANSWER_TOKENS,
        stop=(".", ",", "\n"),
        check=Check("begins_with", question.accepted),
        cluster=question.name,
        length="short",
    )
