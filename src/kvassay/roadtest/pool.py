"""Text for the prompts of a speed run: CPython's documentation topics, in the model's own tokens.

Its answers are never used for quality, so it may overlap with any split.
"""

from __future__ import annotations

from kvassay.corpora.tokens import tokenizer_functions
from kvassay.records.model import Model
from kvassay.store import Run

MAX_CHARACTERS = 400_000


def topics_text() -> str:
    """Documentation topics of the running Python, in the order of their names."""
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics))[:MAX_CHARACTERS]


def text_pool(run: Run, model: Model) -> list[int]:
    """Token ids of the text. Raises BadInput when the prepared model has no usable tokenizer."""
    encode, _ = tokenizer_functions(run, model)
    return encode(topics_text())
