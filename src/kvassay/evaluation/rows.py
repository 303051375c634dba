"""Finished work of an evaluation, on disk at once: answers in items.jsonl, KL by document in served_kl.jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from kvassay.corpora.tokens import ids_digest
from kvassay.errors import DamagedArtifact
from kvassay.records.base import Frozen, NonNegativeInt, Sha256
from kvassay.store import Rows, Run, first_problem
from kvassay.tasks.item import Item
from kvassay.tasks.served_kl import DocumentKL

ITEM_ROWS = "items.jsonl"
KL_ROWS = "served_kl.jsonl"

Row = TypeVar("Row", bound=Frozen)


class ItemRow(Frozen):
    """One answer. A failed request has an `error`, no digest, and counts as wrong."""

    task: str
    item: str
    arm: str
    correct: bool
    prompt_digest: Sha256
    cluster: str
    length: str
    finish_reason: str | None
    answer_sha256: Sha256 | None
    output_tokens: NonNegativeInt
    empty: bool
    error: str | None


class KLRow(Frozen):
    """One document under one arm against native; `error` when the arm gave no log-probabilities for it."""

    arm: str
    document: Sha256
    kl_nats: tuple[float, ...]
    top1_agrees: tuple[bool, ...]
    error: str | None


class Ledger:
    """What is done, by arm and question. Rows of other prompts are refused, never reused."""

    def __init__(self, run: Run, key: str, items: Iterable[Item]) -> None:
        self._items, self._kl = Rows(run.path(ITEM_ROWS), key), Rows(run.path(KL_ROWS), key)
        digests = {(item.task, item.item): item.prompt_digest for item in items}
        self.answers: dict[tuple[str, str, str], ItemRow] = {}
        self.documents: dict[tuple[str, str], KLRow] = {}
        for item_row in _parsed(self._items, ItemRow):
            if digests.get((item_row.task, item_row.item)) != item_row.prompt_digest:
                raise DamagedArtifact(
                    f"{self._items.path}: {item_row.task} {item_row.item} was asked with another prompt; delete the file to ask again"
                )
            self.answers[item_row.arm, item_row.task, item_row.item] = item_row
        for kl_row in _parsed(self._kl, KLRow):
            self.documents[kl_row.arm, kl_row.document] = kl_row

    def add_answer(self, row: ItemRow) -> None:
        self._items.append(row.model_dump(mode="json"))
        self.answers[row.arm, row.task, row.item] = row

    def add_kl(self, row: KLRow) -> None:
        self._kl.append(row.model_dump(mode="json"))
        self.documents[row.arm, row.document] = row

    def answered(self, arm: str, item: Item) -> ItemRow | None:
        return self.answers.get((arm, item.task, item.item))

    def measured(self, arm: str, documents: Sequence[Sequence[int]]) -> list[KLRow]:
        """Rows of `arm` for `documents`, in their order; missing ones are left out."""
        found = (self.documents.get((arm, ids_digest(document))) for document in documents)
        return [row for row in found if row is not None]


def document_kls(rows: Iterable[KLRow]) -> list[DocumentKL]:
    """The rows that hold a measurement."""
    return [DocumentKL(row.kl_nats, row.top1_agrees) for row in rows if row.error is None]


def _parsed(rows: Rows, kind: type[Row]) -> list[Row]:
    parsed = []
    for number, row in enumerate(rows.load(), start=2):
        try:
            parsed.append(kind.model_validate(_tuples(row)))
        except ValidationError as error:
            raise DamagedArtifact(f"{rows.path}, line {number}: {first_problem(error)}; delete the file to ask again") from None
    return parsed


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
