"""Rows of one arm to its record. Pure, given the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvassay.errors import DamagedArtifact
from kvassay.records.roadtest import ArmRoadtest, Memory
from kvassay.roadtest import metrics
from kvassay.roadtest.identity import number
from kvassay.roadtest.rows import Ledger, MemoryReading, RequestRow

CLOCKS_NOTE = (
    "closed loop: a request is scheduled in the moment the answer before it has ended, so from_schedule and from_send differ only by the "
    "client's own lag"
)


def arm_figures(ledger: Ledger, arm: str) -> ArmRoadtest:
    """Everything measured of one arm. Raises DamagedArtifact when its rows are not complete."""
    rows = [row for _, row in sorted(ledger.requests(arm).items())]
    states = [row["state"] for row in ledger.of("state", arm)]
    if not rows or not states:
        raise DamagedArtifact(f"requests.jsonl: rows of arm {arm} are not complete; run kvassay roadtest again")
    state = states[-1]
    second = ledger.of("second_ask", arm)
    first = {row.request: row.answer_sha256 for row in rows}
    matched = sum(row["outcome"] == "ok" and row["answer_sha256"] == first.get(row["request"]) for row in second)
    wall_s, tokens, rate = metrics.wall_s(rows), metrics.output_tokens(rows), metrics.decode_rate_p50(rows)
    return ArmRoadtest(
        requests=metrics.counts(rows),
        from_schedule=metrics.latencies(rows, "scheduled"),
        from_send=metrics.latencies(rows, "sent"),
        itl_ms=metrics.inter_token(rows),
        output_tokens=tokens,
        output_tokens_per_s=tokens / wall_s if wall_s else 0.0,
        requests_per_s=len(metrics.good(rows)) / wall_s if wall_s else 0.0,
        decode_tokens_per_s_p50=rate,
        decode_tokens_per_s_p50_reason=None if rate is not None else "no good answer has two tokens",
        wall_s=wall_s,
        memory=memory(ledger, arm, rows, states),
        payload_bytes_per_token=round(number(state, "bytes_per_token")),
        capacity_tokens=int(number(state, "capacity_tokens")),
        answers_checked=len(second),
        answers_matched=matched,
        answers_note=answers_note(len(second), matched),
    )


def memory(ledger: Ledger, arm: str, rows: list[RequestRow], states: list[dict[str, object]]) -> Memory:
    """Peaks and sample counts over all segments; the start is that of the first."""
    readings: dict[int, MemoryReading] = {}
    for row in rows:
        readings[row.segment] = larger(readings.get(row.segment), row.memory)
    for each in ledger.of("memory", arm):
        found = MemoryReading.model_validate({key: each[key] for key in MemoryReading.model_fields})
        readings[each["segment"]] = larger(readings.get(each["segment"]), found)
    kv_peaks = [row.kv_peak_bytes for row in rows if row.kv_peak_bytes is not None]
    return Memory(
        process_peak_bytes=max(reading.peak_bytes for reading in readings.values()),
        process_start_bytes=readings[min(readings)].start_bytes,
        samples=sum(reading.samples for reading in readings.values()),
        device_total_bytes=None,
        device_total_bytes_reason=f"this version does not read device memory; the engine ran on {device_of(states[-1])}",
        kv_pool_bytes=int(number(states[-1], "kv_memory_bytes")),
        kv_peak_bytes=max([*kv_peaks, *(int(number(state, "bytes_peak")) for state in states)]),
        weights_bytes=int(number(states[-1], "weights_bytes")),
    )


def device_of(state: Mapping[str, Any]) -> str:
    """What the engine says that it ran on."""
    extra = state.get("extra")
    return str(extra["device"]) if isinstance(extra, Mapping) and "device" in extra else "a device it does not name"


def larger(a: MemoryReading | None, b: MemoryReading) -> MemoryReading:
    """The later of two readings of one segment: peaks and counts only grow."""
    if a is None:
        return b
    return b.model_copy(update={"peak_bytes": max(a.peak_bytes, b.peak_bytes), "samples": max(a.samples, b.samples)})


def answers_note(checked: int, matched: int) -> str:
    """What the second ask showed."""
    if not checked:
        return "no good answer to ask again"
    if matched == checked:
        return f"{checked} requests asked again, unhurried: all greedy answers equal"
    return f"{checked} requests asked again, unhurried: {checked - matched} greedy answers differ, so this speed run is void"
