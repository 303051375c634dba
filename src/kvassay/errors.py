"""Errors that a user can act on. Each message says what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Sequence


class KvassayError(Exception):
    """Base of every error kvassay raises on purpose; `exit_code` is what the command ends with."""

    exit_code = 70


class BadInput(KvassayError):
    """Wrong use or bad input: a plan, model, trace, artifact or server answer that cannot be used."""

    exit_code = 2


class ManyProblems(BadInput):
    """Several problems of one file, a sentence each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class DamagedArtifact(BadInput):
    """A file of a run folder that is torn, altered, or made from another model or plan."""


class EngineError(BadInput):
    """An engine did not start, died, or gave an answer that cannot be used."""


def one_line(text: str) -> str:
    """`text` with everything escaped that breaks a line, that a terminal would obey, or that no encoding can write."""
    return text if text.isprintable() else "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
