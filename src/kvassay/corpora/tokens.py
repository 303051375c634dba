"""Text to token ids of the run's model, and their digests."""

from __future__ import annotations

import array
import hashlib
import sys
from collections.abc import Callable, Sequence

from kvassay.errors import BadInput
from kvassay.records.model import Model
from kvassay.store import Run

Encode = Callable[[str], list[int]]
Decode = Callable[[Sequence[int]], str]


def tokenizer_functions(run: Run, model: Model) -> tuple[Encode, Decode]:
    """encode (no special tokens added) and decode of the prepared model's tokenizer, read by `tokenizers` alone.

    Raises BadInput naming the file when it is missing or no tokenizer.
    """
    from tokenizers import Tokenizer

    path = run.path(model.folder, "tokenizer.json")
    try:
        fast = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise BadInput(f"{path}: no tokenizer ({error}); prepare the model again") from error
    fast.no_truncation()
    fast.no_padding()
    return (
        lambda text: fast.encode(text, add_special_tokens=False).ids,
        lambda ids: str(fast.decode(list(ids), skip_special_tokens=False)),
    )


def ids_digest(ids: Sequence[int]) -> str:
    """SHA-256 (hex) over token ids as little-endian 32-bit integers."""
    packed = array.array("I", ids)
    if sys.byteorder == "big":
        packed.byteswap()
    return hashlib.sha256(packed.tobytes()).hexdigest()
