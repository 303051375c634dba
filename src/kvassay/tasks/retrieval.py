"""Needle retrieval: a fact hidden in plain prose, asked for at the end (after RULER's single needle, arXiv 2404.06654).

The template is frozen: another wording is another task, and its prompts have other digests.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from kvassay.errors import BadInput
from kvassay.plan.schema import RetrievalTask
from kvassay.tasks.checks import Check
from kvassay.tasks.filler import sentence
from kvassay.tasks.item import Item
from kvassay.tasks.tokenizer import TaskTokenizer

NAME = "retrieval"
OPENING = "Some important facts are hidden in the following text. Remember them.\n\n"
NEEDLE = " The access code for {word} is {number}."
QUESTION = "\n\nWhat is the access code for {word}? The access code for {word} is"
WORDS = (
    "apple", "river", "candle", "forest", "hammer", "silver", "rocket", "pencil", "winter", "mirror", "basket", "copper",
    "feather", "lantern", "marble", "pepper", "ribbon", "saddle", "thunder", "velvet",
)  # fmt: skip
LOWEST, HIGHEST = 10_000, 99_999
# A number of five digits in the most wasteful tokenizer, its full stop, and one to spare.
ANSWER_TOKENS = 8
CHANCE = 1 / (HIGHEST - LOWEST + 1)


def retrieval(tokenizer: TaskTokenizer, seed: int, sizes: RetrievalTask) -> tuple[Item, ...]:
    """`sizes.items_per_length` prompts of each of `sizes.lengths`, each exactly so many of the model's tokens.

    The depth of the needle is spread evenly over the items of a length. Raises BadInput when a length cannot hold the question.
    """
    return tuple(
        _item(tokenizer, seed, length, number, (number + 0.5) / sizes.items_per_length)
        for length in sizes.lengths
        for number in range(sizes.items_per_length)
    )


def chance(items: Sequence[Item]) -> float:
    """Score of a guess."""
    return CHANCE


def _item(tokenizer: TaskTokenizer, seed: int, length: int, number: int, depth: float) -> Item:
    """`depth` is where the needle stands: 0 at the start of the prose, 1 at its end."""
    random = Random(f"{NAME} {seed} {length} {number}")  # noqa: S311 - test questions, not secrets
    word, code = random.choice(WORDS), str(random.randint(LOWEST, HIGHEST))
    head = [*tokenizer.start, *tokenizer.encode(OPENING)]
    needle = tokenizer.encode(NEEDLE.format(word=word, number=code))
    tail = tokenizer.encode(QUESTION.format(word=word))
    prose_tokens = length - len(head) - len(needle) - len(tail)
    if prose_tokens < 0:
        raise BadInput(f"tasks.retrieval.lengths: {length} tokens cannot hold the question, which takes {length - prose_tokens}; raise it")
    prose, starts = _prose(tokenizer, random, prose_tokens)
    at = min(starts, key=lambda start: abs(start - depth * prose_tokens))
    prompt = (*head, *prose[:at], *needle, *prose[at:], *tail)
    return Item(
        task=NAME,
        item=f"{length}-{number}",
        prompt=prompt,
        max_tokens=ANSWER_TOKENS,
        stop=(".", "\n"),
        check=Check("contains", (code,)),
        cluster=f"{length}-{number}",
        length=str(length),
    )


def _prose(tokenizer: TaskTokenizer, random: Random, tokens: int) -> tuple[list[int], list[int]]:
    """Exactly `tokens` ids of prose, its last sentence cut to fit, and the places between sentences."""
    prose: list[int] = []
    starts = [0]
    while len(prose) < tokens:
        prose += tokenizer.encode(" " * bool(prose) + sentence(random))
        starts.append(min(len(prose), tokens))
    return prose[:tokens], starts
