"""Draw the documents of three splits: whole sources to splits first, then passages, then the overlap check across all three."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from kvassay.corpora.overlap import TokenRun, runs, shared_run
from kvassay.corpora.source_text import SourceText
from kvassay.corpora.tokens import Decode, Encode
from kvassay.corpora.user_files import KIND as USER_KIND
from kvassay.errors import BadInput
from kvassay.plan.schema import SplitSize
from kvassay.records.corpora import SplitName

TRIES_PER_DOCUMENT = 200
SPLITS: tuple[SplitName, ...] = ("scoring", "choice", "heldout")


@dataclass(frozen=True)
class Passage:
    """`ids` of `source` from token `start`."""

    source: SourceText
    start: int
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Drawing:
    """What drawing needs to know, and what it has tokenized so far."""

    encode: Encode
    decode: Decode
    seed: int
    overlap_tokens: int
    tokenized: dict[str, list[int]]

    def ids(self, source: SourceText) -> list[int]:
        if source.name not in self.tokenized:
            self.tokenized[source.name] = self.encode(source.text)
        return self.tokenized[source.name]


def deal(sources: Sequence[SourceText], wanted: dict[SplitName, int], seed: int) -> dict[SplitName, list[SourceText]]:
    """Give every source to exactly one split, about in proportion to the documents wanted. Raises BadInput when there are too few."""
    if len(sources) < len(SPLITS):
        kind = sources[0].kind if sources else "text"
        raise BadInput(
            f"corpora: {len(sources)} sources of {kind}; each of the {len(SPLITS)} splits needs its own, so give at least {len(SPLITS)}"
        )
    shuffled = sorted(sources, key=lambda source: source.name)
    random.Random(f"{seed}:{shuffled[0].kind}").shuffle(shuffled)  # noqa: S311  (repeatable, not secret)
    dealt: dict[SplitName, list[SourceText]] = {}
    total, taken = sum(wanted.values()), 0
    for place, name in enumerate(SPLITS):
        most = len(shuffled) - taken - (len(SPLITS) - 1 - place)
        share = most if place == len(SPLITS) - 1 else max(1, min(most, round(len(shuffled) * wanted[name] / total)))
        dealt[name] = shuffled[taken : taken + share]
        taken += share
    return dealt


def draw(drawing: Drawing, sources: Sequence[SourceText], sizes: dict[SplitName, SplitSize]) -> dict[SplitName, list[Passage]]:
    """Passages of exactly the wanted length for every split; kinds take turns.

    Raises BadInput when there is too little text, and, showing the passages, when the user's files overlap across splits.
    """
    kinds = sorted({source.kind for source in sources})
    wanted = {name: size.documents for name, size in sizes.items()}
    dealt = {kind: deal([source for source in sources if source.kind == kind], wanted, drawing.seed) for kind in kinds}
    drawn: dict[SplitName, dict[int, Passage]] = {name: {} for name in SPLITS}
    # The user's passages are fixed first; built-in ones then keep clear of them.
    for kind in sorted(kinds, key=lambda kind: kind != USER_KIND):
        for name in SPLITS:
            slots = [slot for slot in range(sizes[name].documents) if kinds[slot % len(kinds)] == kind]
            taken = {other: list(drawn[other].values()) for other in SPLITS}
            for slot, passage in zip(
                slots, _passages(drawing, dealt[kind][name], len(slots), sizes[name].tokens, taken, name), strict=True
            ):
                drawn[name][slot] = passage
    passages = {name: [drawn[name][slot] for slot in sorted(drawn[name])] for name in SPLITS}
    refuse_overlap(drawing, passages)
    return passages


def _passages(
    drawing: Drawing, sources: Sequence[SourceText], count: int, tokens: int, taken: dict[SplitName, list[Passage]], name: SplitName
) -> list[Passage]:
    """`count` passages of one kind for split `name`, taking the sources in turn."""
    length = drawing.overlap_tokens
    foreign = {run for other in SPLITS if other != name for passage in taken[other] for run in runs(passage.ids, length)}
    own: list[Passage] = list(taken[name])
    found: list[Passage] = []
    long_enough = [source for source in sources if len(source.text.encode()) >= tokens]
    for turn in range(count * 4 + len(long_enough)):
        if len(found) == count or not long_enough:
            break
        source = long_enough[turn % len(long_enough)]
        passage = _one(drawing, source, tokens, foreign, own, f"{name}:{turn}")
        if passage:
            found.append(passage)
            own.append(passage)
    if len(found) < count:
        kind = sources[0].kind
        raise BadInput(
            f"corpora.{name}: {len(sources)} sources of {kind} hold only {len(found)} passages of {tokens} tokens, {count} are wanted;"
            " give more text, or ask for fewer or shorter documents"
        )
    return found


def _one(drawing: Drawing, source: SourceText, tokens: int, foreign: set[TokenRun], own: list[Passage], label: str) -> Passage | None:
    """One passage of `source` beside those already drawn; built-in text also keeps clear of other splits."""
    ids = drawing.ids(source)
    if len(ids) < tokens:
        return None
    choose = random.Random(f"{drawing.seed}:{label}:{source.name}")  # noqa: S311  (repeatable, not secret)
    used = [(each.start, each.start + len(each.ids)) for each in own if each.source.name == source.name]
    for _ in range(TRIES_PER_DOCUMENT):
        start = choose.randrange(len(ids) - tokens + 1)
        if any(start < end and begin < start + tokens for begin, end in used):
            continue
        passage = tuple(ids[start : start + tokens])
        if source.kind == USER_KIND or foreign.isdisjoint(runs(passage, drawing.overlap_tokens)):
            return Passage(source, start, passage)
    return None


def refuse_overlap(drawing: Drawing, passages: dict[SplitName, list[Passage]]) -> None:
    """Raise BadInput that shows the text and its sources when two splits share a run of `overlap_tokens` tokens."""
    owners: dict[TokenRun, tuple[SplitName, Passage]] = {}
    for name in SPLITS:
        for passage in passages[name]:
            for run in runs(passage.ids, drawing.overlap_tokens):
                other, twin = owners.setdefault(run, (name, passage))
                if other != name:
                    shared = shared_run(twin.ids, passage.ids, drawing.overlap_tokens) or list(run)
                    raise BadInput(
                        f"corpora: {other} and {name} share {len(shared)} tokens of text: {drawing.decode(shared)!r} stands in"
                        f" {twin.source.name} (from token {twin.start}) and in {passage.source.name} (from token {passage.start});"
                        " remove one of the two, or change seeds.corpora"
                    )
