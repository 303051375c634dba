"""Text for the prompts of a speed run: CPython's documentation topics, in the model's own tokens.

Its answers are never used for quality, so it may overlap with any split.
"""

from __future__ import annotations

from pathlib import Path

from kvassay.errors import BadInput

MAX_CHARACTERS = 400_000


def topics_text() -> str:
    """Documentation topics of the running Python, in the order of their names."""
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics))[:MAX_CHARACTERS]


def text_pool(model_folder: Path, trust_remote_code: bool = False) -> list[int]:
    """Token ids of the text. Raises BadInput when the folder holds no tokenizer that loads."""
    path = model_folder / "tokenizer.json"
    if path.is_file():
        from tokenizers import Tokenizer

        try:
            return list(Tokenizer.from_file(str(path)).encode(topics_text(), add_special_tokens=False).ids)
        except Exception as error:  # tokenizers raises bare Exception
            raise BadInput(f"{path}: cannot be used as a tokenizer ({error}); prepare the model again") from error
    from kvassay.models.loading import load_tokenizer

    return list(load_tokenizer(model_folder, trust_remote_code)(topics_text(), add_special_tokens=False)["input_ids"])
