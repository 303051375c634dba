"""Rows to figures. Pure: the card can be rebuilt from requests.jsonl with these functions alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from kvassay.records.roadtest import Latencies, Percentiles, RequestCounts
from kvassay.roadtest.rows import RequestRow
from kvassay.statistics.quantiles import P99_NEEDS, percentile, percentiles

Clock = Literal["scheduled", "sent"]


def counts(rows: Sequence[RequestRow]) -> RequestCounts:
    """total = ok + failed + empty."""
    found = [row.outcome for row in rows]
    return RequestCounts(total=len(rows), ok=found.count("ok"), failed=found.count("failed"), empty=found.count("empty"))


def latencies(rows: Sequence[RequestRow], clock: Clock) -> Latencies:
    """Latencies of good answers, counted from the scheduled arrival or from the send. TPOT has no start, so both clocks agree on it."""
    ttft, e2e = [], []
    for row in good(rows):
        start_s = row.scheduled_s if clock == "scheduled" else row.sent_s
        if row.first_s is not None and row.last_s is not None:
            ttft.append(1e3 * max(0.0, row.first_s - start_s))
            e2e.append(1e3 * max(0.0, row.last_s - start_s))
    tpot = [row.tpot_ms for row in good(rows) if row.tpot_ms is not None]
    return Latencies(ttft_ms=percentiles(ttft), tpot_ms=percentiles(tpot), e2e_ms=percentiles(e2e))


def inter_token(rows: Sequence[RequestRow]) -> Percentiles:
    """Inter-token latency: gaps between arrivals of good answers, pooled over requests.

    Where chunks carry several tokens, each gap is divided by the mean number of tokens per later chunk. Gaps of one request are
    not independent, so p99 needs 1,000 requests, not 1,000 gaps.
    """
    gaps = []
    for row in good(rows):
        times = row.token_times_s
        if len(times) < 2 or row.output_tokens < 2:
            continue
        share = (len(times) - 1) / (row.output_tokens - 1)
        gaps += [1e3 * share * max(0.0, later - earlier) for earlier, later in pairwise(times)]
    found = percentiles(gaps)
    requests = len(good(rows))
    if found.p99 is None or requests >= P99_NEEDS:
        return found
    return found.model_copy(update={"p99": None, "p99_reason": f"{requests} requests; a 99th percentile is quoted from {P99_NEEDS:,} on"})


def decode_rate_p50(rows: Sequence[RequestRow]) -> float | None:
    """Median over requests of tokens per second after the first token; None when no answer has two tokens."""
    rates = sorted(1e3 / row.tpot_ms for row in good(rows) if row.tpot_ms)
    return percentile(rates, 50) if rates else None


def wall_s(rows: Sequence[RequestRow]) -> float:
    """Seconds of replay: per segment from the first schedule to the last end, summed over segments."""
    total = 0.0
    for segment in sorted({row.segment for row in rows}):
        inside = [row for row in rows if row.segment == segment]
        total += max(row.done_s for row in inside) - min(row.scheduled_s for row in inside)
    return total


def output_tokens(rows: Sequence[RequestRow]) -> int:
    """Tokens of good answers; those of failed ones earn no throughput."""
    return sum(row.output_tokens for row in good(rows))


def good(rows: Sequence[RequestRow]) -> list[RequestRow]:
    return [row for row in rows if row.outcome == "ok"]
