"""Progress on stderr: bars at a terminal, plain lines elsewhere. Reports go to stdout and never pass through here."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Step(Protocol):
    """A running step; `advance` says that `amount` more of its total is done."""

    def advance(self, amount: float = 1) -> None: ...


class Progress(Protocol):
    """Where a stage tells what it is doing."""

    def step(self, title: str, total: float) -> AbstractContextManager[Step]: ...

    def note(self, text: str) -> None: ...


class Silent:
    """Says nothing; for library use and tests."""

    @contextmanager
    def step(self, title: str, total: float) -> Iterator[Step]:
        yield self

    def note(self, text: str) -> None:
        return None

    def advance(self, amount: float = 1) -> None:
        return None


class PlainLines:
    """One line when a step starts, at each quarter, and when it ends."""

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    @contextmanager
    def step(self, title: str, total: float) -> Iterator[Step]:
        started = time.monotonic()
        step = _PlainStep(title, total)
        self.note(f"{title} …")
        yield step
        self.note(f"{title}: done in {time.monotonic() - started:.1f} s")


class _PlainStep:
    def __init__(self, title: str, total: float) -> None:
        self.title, self.total, self.done, self.quarter = title, total, 0.0, 0

    def advance(self, amount: float = 1) -> None:
        self.done += amount
        quarter = int(4 * self.done / self.total) if self.total else 4
        if self.quarter < quarter < 4:
            self.quarter = quarter
            print(f"{self.title}: {quarter * 25} %", file=sys.stderr, flush=True)


class Bars:
    """rich progress bars, one per step."""

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    @contextmanager
    def step(self, title: str, total: float) -> Iterator[Step]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with RichProgress(*columns, console=Console(stderr=True)) as bars:
            yield _BarStep(bars, bars.add_task(title, total=total))


class _BarStep:
    def __init__(self, bars: RichProgress, task: TaskID) -> None:
        self._bars, self._task = bars, task

    def advance(self, amount: float = 1) -> None:
        self._bars.advance(self._task, amount)


def for_stderr() -> Progress:
    """Bars when stderr is a terminal, plain lines otherwise."""
    return Bars() if sys.stderr.isatty() else PlainLines()
