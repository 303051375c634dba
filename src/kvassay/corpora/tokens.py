"""Text to token ids of the run's model, and their digests."""

from __future__ import annotations

import array
import hashlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from kvassay.errors import BadInput
from kvassay.records.model import Model
from kvassay.store import Run

Encode = Callable[[str], list[int]]
Decode = Callable[[Sequence[int]], str]


def tokenizer_functions(run: Run, model: Model) -> tuple[Encode, Decode]:
    """encode (no special tokens added) and decode of the prepared model's tokenizer.

    A fast tokenizer is read by `tokenizers` alone, so this needs transformers only for others.
    """
    path = run.path(model.folder, "tokenizer.json")
    if path.is_file():
        return _fast(path)
    from kvassay.models.loading import load_tokenizer

    slow = load_tokenizer(run.path(model.folder), model.trust_remote_code)
    return (lambda text: list(slow.encode(text, add_special_tokens=False))), (lambda ids: str(slow.decode(list(ids))))


def _fast(path: Path) -> tuple[Encode, Decode]:
    from tokenizers import Tokenizer

    try:
        fast = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise BadInput(f"{path}: not a tokenizer ({error}); prepare the model again") from error
    fast.no_truncation()
    fast.no_padding()
    return (lambda text: fast.encode(text, add_special_tokens=False).ids), (
        lambda ids: str(fast.decode(list(ids), skip_special_tokens=False))
    )


def ids_digest(ids: Sequence[int]) -> str:
    """SHA-256 (hex) over token ids as little-endian 32-bit integers."""
    packed = array.array("I", ids)
    if sys.byteorder == "big":
        packed.byteswap()
    return hashlib.sha256(packed.tobytes()).hexdigest()
