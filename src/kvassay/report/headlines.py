"""The figures that stand first, each with the limits that belong to it."""

from __future__ import annotations

from dataclasses import dataclass

from kvassay.card.limits import limits_by_figure
from kvassay.card.wording import NONE, byte_count, count, interval, milliseconds, percent, significant, whole_bytes
from kvassay.records.card import Card, CardArm, Limit


@dataclass(frozen=True)
class Headline:
    """`value` is that of the decided arm, `beside` that of native or the comparison; `limit` is never missing."""

    name: str
    value: str
    beside: str
    limit: Limit


def headlines(card: Card) -> tuple[Headline, ...]:
    """Headline figures of the decided arm; none when that arm has none."""
    arm, native = card.arms.get(card.decision.arm), card.arms.get("native")
    if arm is None or native is None:
        return ()
    limits = limits_by_figure(card.limits)
    rows = [
        Headline(
            "Cache saved per token",
            percent(arm.payload_saving),
            f"{whole_bytes(arm.payload_bytes_per_token)} of {whole_bytes(native.payload_bytes_per_token)}",
            limits["payload_bytes_per_token"],
        ),
        Headline("KL through the served cache", *kl_words(arm), limits["kl_nats"]),
    ]
    for name, task in arm.tasks.items():
        baseline = native.tasks.get(name)
        beside = f"native {baseline.score:.2f}, {count(task.n, 'item')}" if baseline else count(task.n, "item")
        rows.append(
            Headline(
                f"Task {name}",
                f"{task.score:.2f}",
                f"{beside}, {verdict_words(task.comparison.verdict if task.comparison else None)}",
                limits[f"tasks.{name}"],
            )
        )
    rows += [
        Headline(
            "Peak memory of the server",
            byte_count(arm.memory.process_peak_bytes),
            f"native {byte_count(native.memory.process_peak_bytes)}",
            limits["memory"],
        ),
        Headline("TTFT, median", milliseconds(arm.ttft_ms.p50), f"native {milliseconds(native.ttft_ms.p50)}", limits["ttft_ms"]),
        Headline("Decode rate, median", rate(arm), f"native {rate(native)}", limits["decode_tokens_per_s"]),
    ]
    return tuple(rows)


def kl_words(arm: CardArm) -> tuple[str, str]:
    if arm.kl_nats is None:
        return NONE, f"not measured: {arm.kl_nats_reason}"
    kl = arm.kl_nats
    return f"{significant(kl.mean, 2)} nats", f"{interval(kl.mean_interval)}, p99 {significant(kl.p99, 2)} nats per token"


def verdict_words(verdict: str | None) -> str:
    return {"no_worse": "no worse", "worse": "worse", "not_shown": "not shown"}.get(verdict or "", "not compared")


def rate(arm: CardArm) -> str:
    value = arm.decode_tokens_per_s.p50
    return NONE if value is None else f"{value:.1f} tokens/s"
