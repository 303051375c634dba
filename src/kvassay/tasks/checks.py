"""How an answer is judged: a check is plain data, scoring is a pure function of it and the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Check:
    """`accepted` answers, any of which will do. begins_with: as the first words; contains: anywhere. Whole words, any case."""

    kind: Literal["begins_with", "contains"]
    accepted: tuple[str, ...]


def is_correct(check: Check, answer: str) -> bool:
    """Whether `answer` passes `check`. Leading spaces and quotation marks do not count; a longer word or number is another one."""
    text = answer.lstrip(" \t\r\n\"'`*“‘").casefold()
    return any(_found(check.kind, accepted.casefold(), text) for accepted in check.accepted)


def _found(kind: str, accepted: str, text: str) -> bool:
    pattern = rf"(?<!\w){re.escape(accepted)}(?!\w)"
    return (re.match(pattern, text) if kind == "begins_with" else re.search(pattern, text)) is not None
