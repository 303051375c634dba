"""How a check becomes a row: a server that fails is a finding, texts are bounded, paths are relative."""

from __future__ import annotations

from collections.abc import Callable

from kvassay.errors import EngineError
from kvassay.records.roadtest import Check
from kvassay.store import Run

MAX_TEXT_CHARACTERS = 500


def checked(run: Run, check: Callable[[], Check]) -> Check:
    """The check's result. A server that does not start, dies, or cannot tell its state fails the check; it is no fault of the run."""
    try:
        return tidy(check(), run)
    except EngineError as error:
        return tidy(Check(verdict="failed", reason=str(error), evidence={}), run)


def tidy(check: Check, run: Run) -> Check:
    """Texts bounded, and paths in them made relative to the run: a moved run folder stays valid."""

    def relative(text: str) -> str:
        for root in (run.folder, run.folder.resolve()):
            text = text.replace(f"{root}/", "")
        return text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[:MAX_TEXT_CHARACTERS]} …"

    evidence = {key: relative(value) if isinstance(value, str) else value for key, value in check.evidence.items()}
    return Check(verdict=check.verdict, reason=relative(check.reason), evidence=evidence)
