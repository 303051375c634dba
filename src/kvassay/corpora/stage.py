"""The corpora stage: plan and tokenizer to corpora.json. Text itself stays where it is."""

from __future__ import annotations

from collections.abc import Sequence

from kvassay.corpora.builtin import BUILTIN
from kvassay.corpora.draw import SPLITS, Drawing, Passage, draw
from kvassay.corpora.source_text import SourceText
from kvassay.corpora.tokens import ids_digest, tokenizer_functions
from kvassay.corpora.user_files import user_files
from kvassay.errors import BadInput
from kvassay.plan.schema import CorporaChoice, SplitSize
from kvassay.records.corpora import Corpora, Document, Split, SplitName
from kvassay.records.model import Model
from kvassay.stage import StageInput


def corpora(stage: StageInput) -> Corpora:
    """Three splits, disjoint by source and by token runs. Raises BadInput for unusable or overlapping text."""
    choice, model = stage.plan.corpora, stage.run.read(Model)
    sizes: dict[SplitName, SplitSize] = {"scoring": choice.scoring, "choice": choice.choice, "heldout": choice.heldout}
    for name, size in sizes.items():
        if size.tokens > model.max_position_embeddings:
            raise BadInput(f"corpora.{name}.tokens: {size.tokens} is beyond the model's context of {model.max_position_embeddings} tokens")
    with stage.progress.step("drawing text", 2) as step:
        sources = all_sources(choice)
        step.advance()
        encode, decode = tokenizer_functions(stage.run, model)
        drawing = Drawing(encode, decode, stage.plan.seeds.corpora, choice.overlap_tokens, {})
        passages = draw(drawing, sources, sizes)
        step.advance()
    used = {passage.source.name: passage.source for name in SPLITS for passage in passages[name]}
    return Corpora(
        tokenizer_sha256=model.tokenizer_sha256,
        seed=stage.plan.seeds.corpora,
        overlap_tokens=choice.overlap_tokens,
        sources={name: used[name].sha256 for name in sorted(used)},
        splits={name: split_record(passages[name], sizes[name].tokens) for name in SPLITS},
    )


def all_sources(choice: CorporaChoice) -> list[SourceText]:
    """Every source the plan names. Raises BadInput when it names none, or for a file that cannot be used."""
    sources = [source for name in dict.fromkeys(choice.builtin) for source in BUILTIN[name]()] + user_files(choice.files)
    if not sources:
        raise BadInput("corpora: no text; name builtin corpora or files in the plan")
    return sources


def split_record(passages: Sequence[Passage], row_tokens: int) -> Split:
    """The manifest of one split: no text, only names, places, digests and the share of tokens of each kind."""
    documents = tuple(
        Document(source=p.source.name, kind=p.source.kind, start=p.start, tokens=len(p.ids), sha256=ids_digest(p.ids)) for p in passages
    )
    total = sum(document.tokens for document in documents)
    by_kind: dict[str, int] = {}
    for document in documents:
        by_kind[document.kind] = by_kind.get(document.kind, 0) + document.tokens
    return Split(
        documents=documents, row_tokens=row_tokens, total_tokens=total, mix={kind: by_kind[kind] / total for kind in sorted(by_kind)}
    )
