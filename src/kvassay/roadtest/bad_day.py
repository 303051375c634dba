"""The checks that need servers of their own. Nothing is measured against the clock here, so they run side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed

from kvassay.errors import EngineError
from kvassay.records.roadtest import Check
from kvassay.roadtest.bench import Bench
from kvassay.roadtest.exhaustion import exhaustion
from kvassay.roadtest.fallback import fallback
from kvassay.roadtest.fresh import clear_scratch
from kvassay.roadtest.identity import number
from kvassay.roadtest.restart import restart
from kvassay.roadtest.shortage import shortage
from kvassay.roadtest.wrong_restart import wrong_restart
from kvassay.store import Run

MAX_SERVERS = 4
MEMORY_SHARE = 0.7
MAX_TEXT_CHARACTERS = 500


def bad_day(bench: Bench) -> None:
    """Run the checks that are not finished; each becomes a row as soon as it ends."""
    state = bench.ledger.of("state", "map")[-1]["state"]
    short = shortage(bench.trace.requests, round(number(state, "bytes_per_token")))
    every: Mapping[str, Callable[[], Check]] = {
        "fallback": lambda: fallback(bench, short),
        "restart": lambda: restart(bench),
        "exhaustion": lambda: exhaustion(bench, short),
        "wrong_restart": lambda: wrong_restart(bench),
    }
    todo = {name: check for name, check in every.items() if bench.ledger.check(name) is None}
    if not todo:
        return
    clear_scratch(bench.stage.run)
    try:
        with bench.stage.progress.step("road test: the bad day", len(todo)) as step, ThreadPoolExecutor(servers_at_once(bench)) as pool:
            running = {pool.submit(failed_on_engine_error, check): name for name, check in todo.items()}
            for future in as_completed(running):
                bench.ledger.add_check(running[future], tidy(future.result(), bench.stage.run))
                step.advance()
    finally:
        clear_scratch(bench.stage.run)


def failed_on_engine_error(check: Callable[[], Check]) -> Check:
    """A server that does not start, or cannot tell its state, fails the check: that is a finding, not a fault of the run."""
    try:
        return check()
    except EngineError as error:
        return Check(verdict="failed", reason=str(error), evidence={})


def tidy(check: Check, run: Run) -> Check:
    """Texts bounded, and paths in them made relative to the run: a moved run folder stays valid."""

    def relative(text: str) -> str:
        for root in (run.folder, run.folder.resolve()):
            text = text.replace(f"{root}/", "")
        return text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[:MAX_TEXT_CHARACTERS]} …"

    evidence = {key: relative(value) if isinstance(value, str) else value for key, value in check.evidence.items()}
    return Check(verdict=check.verdict, reason=relative(check.reason), evidence=evidence)


def servers_at_once(bench: Bench) -> int:
    """How many servers the machine's free memory holds, from 1 to MAX_SERVERS, by the largest process peak measured."""
    import psutil

    peak_bytes = max((row.memory.peak_bytes for name in bench.arms for row in bench.ledger.requests(name).values()), default=0)
    free_bytes = int(MEMORY_SHARE * psutil.virtual_memory().available)
    return max(1, min(MAX_SERVERS, free_bytes // max(1, peak_bytes)))
