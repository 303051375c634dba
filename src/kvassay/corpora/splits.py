"""Token ids of a split, made again from the sources and checked against what corpora.json recorded."""

from __future__ import annotations

from kvassay.corpora.stage import all_sources
from kvassay.corpora.tokens import ids_digest, tokenizer_functions
from kvassay.errors import DamagedArtifact
from kvassay.plan.schema import Plan
from kvassay.records.corpora import Corpora, SplitName
from kvassay.records.model import Model
from kvassay.store import Run


def load_split(run: Run, plan: Plan, corpora: Corpora, name: SplitName) -> list[list[int]]:
    """Token ids of every document of split `name`, in the manifest's order.

    Raises DamagedArtifact naming the source when it is gone, has changed, or is tokenized differently now.
    """
    model = run.read(Model)
    if model.tokenizer_sha256 != corpora.tokenizer_sha256:
        raise DamagedArtifact(f"{run.path(corpora.artifact)}: made with another tokenizer; delete it to draw the text again")
    encode, _ = tokenizer_functions(run, model)
    sources = {source.name: source for source in all_sources(plan.corpora)}
    tokenized: dict[str, list[int]] = {}
    rows = []
    for document in corpora.splits[name].documents:
        source = sources.get(document.source)
        if source is None:
            raise DamagedArtifact(
                f"{run.path(corpora.artifact)}: source {document.source} is not on this machine; delete the file to draw the text again"
            )
        if source.sha256 != corpora.sources.get(document.source):
            raise DamagedArtifact(
                f"{run.path(corpora.artifact)}: source {document.source} has changed since; delete the file to draw the text again"
            )
        if document.source not in tokenized:
            tokenized[document.source] = encode(source.text)
        ids = tokenized[document.source][document.start : document.start + document.tokens]
        if ids_digest(ids) != document.sha256:
            raise DamagedArtifact(
                f"{run.path(corpora.artifact)}: {document.source} gives other tokens than recorded; delete the file to draw the text again"
            )
        rows.append(ids)
    return rows
