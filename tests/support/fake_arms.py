"""Items, arms and clients that answer from memory, for evaluations without a server."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace

from kvassay.errors import EngineError
from kvassay.records.export import ArmExport
from kvassay.tasks.checks import Check
from kvassay.tasks.item import Item

SHA = "ab" * 32


def item(task, number, length, tokens):
    return Item(
        task=task,
        item=f"{length}-{number}",
        prompt=(number + 1,) * tokens,
        max_tokens=4,
        stop=("\n",),
        check=Check("contains", (str(number),)),
        cluster=f"{length}-{number}",
        length=length,
    )


def arm(name):
    return ArmExport(
        deployment="supported", reasons=(), folder=f"export/{name}", command=("x",), map_digest=SHA, bits=8, bytes_per_token=10
    )


class FakeClient:
    """Answers item n with the text "n" (right), unless n is in `wrong`, `empty` or `failing`. Its next token has probability p.

    A document asked for in fewer than 5 tokens is rounded by `rounding`. dies_after: requests until the engine is gone.
    """

    def __init__(self, p=0.6, wrong=(), empty=(), failing=(), rounding=0.0, dies_after=None, no_logprobs=False):
        self.p, self.rounding, self.no_logprobs = p, rounding, no_logprobs
        self.wrong, self.empty, self.failing, self.dies_after = set(wrong), set(empty), set(failing), dies_after
        self.completed, self.documents = [], []

    @property
    def dead(self):
        return self.dies_after is not None and len(self.completed) + len(self.documents) >= self.dies_after

    async def health(self):
        return not self.dead

    async def complete(self, prompt, max_tokens, *, stop=(), stream=True):
        number = prompt[0] - 1
        if self.dead or number in self.failing:
            return SimpleNamespace(text="", error="the server answered 500", finish_reason=None, output_tokens=0)
        self.completed.append(list(prompt))
        text = "" if number in self.empty else "nothing" if number in self.wrong else f" {number}"
        return SimpleNamespace(text=text, error=None, finish_reason="stop" if number % 2 else "length", output_tokens=2)

    async def prompt_logprobs(self, prompt, top_k):
        if self.dead or self.no_logprobs:
            raise EngineError("no prompt log-probabilities")
        self.documents.append(list(prompt))
        p = self.p + (self.rounding if len(prompt) < 5 else 0)
        return [None, *[{0: math.log(p), 1: math.log(1 - p)}] * (len(prompt) - 1)]


class Counter:
    """A progress that remembers totals and what was advanced."""

    def __init__(self):
        self.steps = []

    def step(self, title, total):
        self.steps.append([re.sub(r"\W.*", "", title), total, 0])
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None

    def advance(self, amount=1):
        self.steps[-1][2] += amount

    def note(self, text):
        return None


def clients(**changes):
    """Native and map answer all rightly, uniform loses item 3 and one nat-hundredth, the canary is broken."""
    everything = {*range(8), *range(100, 116)}
    return {
        "native": FakeClient(),
        "uniform": FakeClient(p=0.55, wrong={3}),
        "map": FakeClient(p=0.58),
        "canary": FakeClient(p=0.1, wrong=everything),
    } | changes
