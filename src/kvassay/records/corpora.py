"""corpora.json: which text each split holds. Text itself is never stored: documents are named by source and digest."""

from __future__ import annotations

from typing import ClassVar, Literal

from kvassay.records.base import Fraction, Frozen, NonNegativeInt, Record, Sha256

SplitName = Literal["scoring", "choice", "heldout"]


class Document(Frozen):
    """`tokens` tokens of `source`, from token `start`; `sha256` is over the token ids as little-endian 32-bit."""

    source: str
    kind: str
    start: NonNegativeInt
    tokens: NonNegativeInt
    sha256: Sha256


class Split(Frozen):
    """Documents of one split; every document has `row_tokens` tokens."""

    documents: tuple[Document, ...]
    row_tokens: NonNegativeInt
    total_tokens: NonNegativeInt
    mix: dict[str, Fraction]


class Corpora(Record):
    """Three splits, disjoint by source file and by 13-token runs."""

    artifact: ClassVar[str] = "corpora.json"
    schema_id: ClassVar[str] = "kvassay.corpora/1"

    tokenizer_sha256: Sha256
    seed: int
    overlap_tokens: NonNegativeInt
    sources: dict[str, Sha256]
    splits: dict[SplitName, Split]
