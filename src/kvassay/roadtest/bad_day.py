"""The checks that need servers of their own. Nothing is measured against the clock here, so they run side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from kvassay.records.roadtest import Check
from kvassay.roadtest.bench import Bench
from kvassay.roadtest.checking import checked
from kvassay.roadtest.exhaustion import exhaustion
from kvassay.roadtest.fallback import fallback
from kvassay.roadtest.fresh import clear_scratch
from kvassay.roadtest.identity import number
from kvassay.roadtest.restart import restart
from kvassay.roadtest.room import servers_at_once
from kvassay.roadtest.shortage import shortage
from kvassay.roadtest.wrong_restart import wrong_restart


def bad_day(bench: Bench, ended: Future[None]) -> None:
    """Run the checks that are not finished; each becomes a row as soon as it ends. `ended`: the last replay's server is gone."""
    state = bench.ledger.of("state", "map")[-1]["state"]
    short = shortage(bench.trace.requests, round(number(state, "bytes_per_token")))

    def after_the_end(check: Callable[[Bench], Check]) -> Check:
        ended.result()
        return check(bench)

    # The longest first; a restart has a side before it, which must have ended.
    every: Mapping[str, Callable[[], Check]] = {
        "fallback": lambda: fallback(bench, short),
        "exhaustion": lambda: exhaustion(bench, short),
        "restart": lambda: after_the_end(restart),
        "wrong_restart": lambda: after_the_end(wrong_restart),
    }
    todo = {name: check for name, check in every.items() if bench.ledger.check(name) is None}
    if not todo:
        return
    clear_scratch(bench.stage.run)
    try:
        with bench.stage.progress.step("road test: the bad day", len(todo)) as step, ThreadPoolExecutor(servers_at_once(bench)) as pool:
            running = {pool.submit(checked, bench.stage.run, check): name for name, check in todo.items()}
            for future in as_completed(running):
                bench.ledger.add_check(running[future], future.result())
                step.advance()
    finally:
        clear_scratch(bench.stage.run)
