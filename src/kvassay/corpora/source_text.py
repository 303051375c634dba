"""One source of text: a file, or a topic of CPython's documentation."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class SourceText:
    """`name` is stable on every machine ("stdlib:json/decoder.py"), `kind` groups sources in the mix."""

    name: str
    kind: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()
