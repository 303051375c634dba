"""The model's tokenizer as tasks need it."""

from __future__ import annotations

from dataclasses import dataclass

from kvassay.corpora.tokens import Encode, tokenizer_functions
from kvassay.records.model import Model
from kvassay.store import Run


@dataclass(frozen=True)
class TaskTokenizer:
    """encode: text to ids without special tokens. start: ids that the model expects before every prompt, often none."""

    encode: Encode
    start: tuple[int, ...] = ()


def task_tokenizer(run: Run, model: Model) -> TaskTokenizer:
    """The tokenizer of the prepared model. Raises BadInput when it cannot be read."""
    encode, _ = tokenizer_functions(run, model)
    return TaskTokenizer(encode, _start_ids(run, model, tuple(encode("a"))))


def _start_ids(run: Run, model: Model, plain: tuple[int, ...]) -> tuple[int, ...]:
    """What the tokenizer itself puts before a text: the ids in front of those of the text."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(run.path(model.folder, "tokenizer.json")))
    marked = tuple(tokenizer.encode("a", add_special_tokens=True).ids)
    for at in range(len(marked) - len(plain) + 1):
        if marked[at : at + len(plain)] == plain:
            return marked[:at]
    return ()
