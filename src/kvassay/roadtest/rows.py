"""requests.jsonl: one row per finished thing of the road test, so that a killed run loses and repeats nothing.

kinds: `request` (one replayed request), `second_ask` (the same request once more, unhurried), `memory` (end of a segment),
`state` (the engine's own /kv_state after a replay), `closed` (how the server ended), `check` (a finished bad-day check).
A segment is one server process: an interrupted arm goes on in a new segment, and its clock starts at zero again.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Literal

from pydantic import ValidationError

from kvassay.errors import DamagedArtifact
from kvassay.records.base import Frozen, NonNegativeFloat, NonNegativeInt
from kvassay.records.roadtest import Check
from kvassay.roadtest.asking import Answer, Outcome
from kvassay.store import Rows, first_problem


class MemoryReading(Frozen):
    """Memory of the server's process tree so far in this segment; PSS, or RSS where the system does not tell PSS."""

    peak_bytes: NonNegativeInt
    start_bytes: NonNegativeInt
    samples: NonNegativeInt
    measure: Literal["pss", "rss"]


class RequestRow(Frozen):
    """One replayed request. Times are seconds since the segment's start; latencies in ms count from the send.

    why_null says why latencies are null: the failure, or an answer under two tokens. kv_peak_bytes: cache bytes by the engine's
    own account, read after requests longer than any before them, else null.
    """

    kind: Literal["request"] = "request"
    arm: str
    request: NonNegativeInt
    segment: NonNegativeInt
    input_tokens: NonNegativeInt
    asked_tokens: NonNegativeInt
    output_tokens: NonNegativeInt
    outcome: Outcome
    error: str | None
    scheduled_s: NonNegativeFloat
    sent_s: NonNegativeFloat
    first_s: NonNegativeFloat | None
    last_s: NonNegativeFloat | None
    done_s: NonNegativeFloat
    token_times_s: tuple[NonNegativeFloat, ...]
    ttft_ms: NonNegativeFloat | None
    tpot_ms: NonNegativeFloat | None
    e2e_ms: NonNegativeFloat | None
    why_null: str | None
    answer_sha256: str | None
    memory: MemoryReading
    kv_peak_bytes: NonNegativeInt | None


def request_row(
    arm: str,
    request: int,
    segment: int,
    sizes: tuple[int, int],
    answer: Answer,
    scheduled_s: float,
    start_s: float,
    memory: MemoryReading,
    kv_peak_bytes: int | None,
) -> RequestRow:
    """`sizes`: input and asked output tokens. `scheduled_s` and the answer's times are monotonic; `start_s` is the segment's zero."""

    def since(moment: float | None) -> float | None:
        return None if moment is None else round(max(0.0, moment - start_s), 6)

    ttft = tpot = e2e = None
    if answer.ok and answer.first_s is not None and answer.last_s is not None:
        ttft, e2e = 1e3 * (answer.first_s - answer.sent_s), 1e3 * (answer.last_s - answer.sent_s)
        tpot = tpot_ms(answer.first_s, answer.last_s, answer.output_tokens)
    return RequestRow(
        arm=arm,
        request=request,
        segment=segment,
        input_tokens=sizes[0],
        asked_tokens=sizes[1],
        output_tokens=answer.output_tokens,
        outcome=answer.outcome,
        error=answer.error,
        scheduled_s=since(scheduled_s) or 0.0,
        sent_s=since(answer.sent_s) or 0.0,
        first_s=since(answer.first_s),
        last_s=since(answer.last_s),
        done_s=since(answer.done_s) or 0.0,
        token_times_s=tuple(since(moment) or 0.0 for moment in answer.token_times_s),
        ttft_ms=ttft,
        tpot_ms=tpot,
        e2e_ms=e2e,
        why_null=answer.error or (None if tpot is not None else "under 2 tokens"),
        answer_sha256=answer.sha256,
        memory=memory,
        kv_peak_bytes=kv_peak_bytes,
    )


def tpot_ms(first_s: float, last_s: float, tokens: int) -> float | None:
    """Time per output token after the first: (last − first token time) ÷ (tokens − 1); None under 2 tokens."""
    return 1e3 * (last_s - first_s) / (tokens - 1) if tokens >= 2 else None


class Ledger:
    """The finished rows of one road test, in memory and on disk. Safe to use from several threads."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self._lock = rows, Lock()
        self._found = rows.load()

    def add(self, kind: str, **values: Any) -> None:
        """One more finished row, durable when this returns."""
        row = {"kind": kind, **values}
        with self._lock:
            self._rows.append(row)
            self._found.append(row)

    def add_request(self, row: RequestRow) -> None:
        values = row.model_dump(mode="json")
        self.add(values.pop("kind"), **values)

    def of(self, kind: str, arm: str) -> list[dict[str, Any]]:
        """Rows of `kind` for `arm`, oldest first."""
        with self._lock:
            return [row for row in self._found if row.get("kind") == kind and row.get("arm") == arm]

    def requests(self, arm: str) -> dict[int, RequestRow]:
        """Replayed requests of `arm` by number. Raises DamagedArtifact for a row that is none."""
        try:
            found = [RequestRow.model_validate(row) for row in self.of("request", arm)]
        except ValidationError as error:
            raise DamagedArtifact(f"{self._rows.path}: {first_problem(error)}; delete the file to start this stage again") from None
        return {row.request: row for row in found}

    def check(self, name: str) -> Check | None:
        """The finished check `name`, if it is finished."""
        with self._lock:
            rows = [row for row in self._found if row.get("kind") == "check" and row.get("name") == name]
        return Check.model_validate(rows[-1]["check"]) if rows else None

    def add_check(self, name: str, check: Check) -> Check:
        self.add("check", name=name, check=check.model_dump(mode="json"))
        return check
