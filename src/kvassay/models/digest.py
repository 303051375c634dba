"""Which weights and which tokenizer: digests over files."""

from __future__ import annotations

from pathlib import Path

from kvassay.errors import BadInput
from kvassay.store import file_digest, json_digest


def weights_digest(folder: Path) -> str:
    """SHA-256 over the names and digests of all safetensors files of `folder`. Raises BadInput when there are none."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise BadInput(f"{folder}: no safetensors weights; run kvassay prepare again")
    return json_digest({path.name: file_digest(path) for path in files})


def tokenizer_digest(folder: Path) -> str:
    """SHA-256 over tokenizer.json. Raises BadInput when it is missing."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise BadInput(f"{path}: missing; kvassay needs a fast tokenizer")
    return file_digest(path)
