"""Counters and histograms of the face, as Prometheus text (exposition format 0.0.4)."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from kvassay.serving.protocol import KVState

OUTCOMES = ("ok", "bad_request", "does_not_fit", "overloaded", "cancelled", "failed")
TTFT_BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
INTER_TOKEN_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Histogram:
    """Counts of observed seconds per bucket; the last bucket has no upper bound."""

    def __init__(self, bounds_s: tuple[float, ...]) -> None:
        self.bounds_s = bounds_s
        self.counts = [0] * (len(bounds_s) + 1)
        self.sum_s = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds_s, seconds)] += 1
        self.sum_s += seconds

    def lines(self, name: str, says: str) -> list[str]:
        totals = list(accumulate(self.counts))
        bounds = [*(f"{bound:g}" for bound in self.bounds_s), "+Inf"]
        buckets = [f'{name}_bucket{{le="{bound}"}} {total}' for bound, total in zip(bounds, totals, strict=True)]
        return [*_head(name, says, "histogram"), *buckets, f"{name}_sum {self.sum_s:.6f}", f"{name}_count {totals[-1]}"]


class Metrics:
    """What the face counts. Tokens are observed in the engine thread, outcomes in the event loop; each field has one writer."""

    def __init__(self) -> None:
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.ttft_s = Histogram(TTFT_BOUNDS_S)
        self.inter_token_s = Histogram(INTER_TOKEN_BOUNDS_S)

    def text(self, state: KVState, running: int, waiting: int) -> str:
        held = state.tokens_held / state.capacity_tokens if state.capacity_tokens else 0.0
        lines = [
            *_one("kvassay_kv_bytes_held", "Bytes of KV-cache storage now.", "gauge", state.bytes_held),
            *_one("kvassay_kv_bytes_peak", "Largest bytes of KV-cache storage since the start.", "gauge", state.bytes_peak),
            *_one("kvassay_kv_capacity_tokens", "Tokens the KV memory can hold.", "gauge", state.capacity_tokens),
            *_one("kvassay_kv_usage_ratio", "Tokens held divided by capacity.", "gauge", round(held, 6)),
            *_one("kvassay_requests_running", "Requests in the engine; at most 1.", "gauge", running),
            *_one("kvassay_requests_waiting", "Requests waiting for the engine.", "gauge", waiting),
            *_head("kvassay_requests_total", "Requests by how they ended.", "counter"),
            *(f'kvassay_requests_total{{outcome="{outcome}"}} {count}' for outcome, count in self.outcomes.items()),
            *_one("kvassay_prompt_tokens_total", "Prompt tokens taken in.", "counter", self.prompt_tokens),
            *_one("kvassay_generation_tokens_total", "Tokens generated.", "counter", self.generation_tokens),
            *self.ttft_s.lines(
                "kvassay_time_to_first_token_seconds", "From the arrival of a request to its first token, waiting included."
            ),
            *self.inter_token_s.lines("kvassay_inter_token_seconds", "Between two tokens of a request, in the engine thread."),
        ]
        return "\n".join(lines) + "\n"


def _head(name: str, says: str, kind: str) -> list[str]:
    return [f"# HELP {name} {says}", f"# TYPE {name} {kind}"]


def _one(name: str, says: str, kind: str, value: float) -> list[str]:
    return [*_head(name, says, kind), f"{name} {value}"]
