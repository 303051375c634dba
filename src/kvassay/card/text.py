"""The card on a terminal: decision first, then arms, checks, map, and where the report is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from kvassay.card.wording import NONE, byte_count, count, percent, significant
from kvassay.records.card import Card, CardArm

WIDTH = 118


def render_text(card: Card, run_folder: Path) -> str:
    """A compact summary; `run_folder` is printed as given, so that the paths in it can be copied."""
    blocks = (decision_lines(card), arm_lines(card), check_lines(card), closing_lines(card, run_folder))
    return "\n\n".join("\n".join(block) for block in blocks)


def decision_lines(card: Card) -> list[str]:
    decision = card.decision
    lines = [f"{decision.verdict.upper()}  arm {decision.arm}, scope {decision.scope}, {card.target.name} {card.target.version}"]
    lines += [f"recommended: {decision.recommended_arm} - {decision.recommended_reason}"] if decision.recommended_reason else []
    for gate in (gate for outcome in ("missed", "undecided") for gate in decision.gates if gate.outcome == outcome):
        lines += bullet(f"  {gate.outcome:<10} ", gate.sentence)
    met = [gate.name for gate in decision.gates if gate.outcome == "met"]
    if met:
        lines += bullet(f"  {'met':<10} ", ", ".join(met))
    for other in decision.other_arms:
        lines += bullet(f"  {other.arm:<10} ", f"the same gates say {other.verdict}")
    return lines


def arm_lines(card: Card) -> list[str]:
    tasks = sorted({task for arm in card.arms.values() if arm for task in arm.tasks})
    header = ["arm", "bits", "B/token", "saved", "peak memory", "TTFT p50", "decode", "served KL, nats [interval]", *tasks]
    rows = [[name, *arm_row(arm, tasks)] for name, arm in card.arms.items() if arm]
    lines = table([header, *rows])
    lines += [
        line for name, arm in card.arms.items() if arm is None for line in bullet(f"{name}: ", card.arms_reason.get(name, "no reason"))
    ]
    return lines


def arm_row(arm: CardArm, tasks: Sequence[str]) -> list[str]:
    kl = arm.kl_nats
    decode = arm.decode_tokens_per_s.p50
    return [
        significant(arm.bits, 3),
        f"{arm.payload_bytes_per_token:,}",
        percent(arm.payload_saving) if arm.payload_saving else NONE,
        byte_count(arm.memory.process_peak_bytes),
        NONE if arm.ttft_ms.p50 is None else f"{arm.ttft_ms.p50:,.0f} ms",
        NONE if decode is None else f"{decode:.1f} tok/s",
        NONE
        if kl is None
        else f"{significant(kl.mean, 2)} [{significant(kl.mean_interval.low, 2)}, {significant(kl.mean_interval.high, 2)}]",
        *(f"{arm.tasks[task].score:.2f} (n {arm.tasks[task].n})" if task in arm.tasks else NONE for task in tasks),
    ]


def check_lines(card: Card) -> list[str]:
    width = max(map(len, card.checks), default=0)
    lines = []
    for name, check in card.checks.items():
        lines += bullet(f"{name:<{width}}  {check.verdict:<8}  ", check.reason or "")
    return lines


def closing_lines(card: Card, run_folder: Path) -> list[str]:
    lines = []
    decided = card.arms.get(card.decision.arm)
    if decided:
        lines += bullet("map      ", f"{decided.formats} ({card.map_digest[:12]})")
    envelope = card.envelope
    contexts = f"context up to {count(envelope.longest_context_tokens, 'token')}, KL text {envelope.longest_kl_tokens}"
    load = f"{count(envelope.requests_per_arm, 'request')} per arm, {envelope.concurrency} at a time"
    lines += bullet("tested   ", f"{contexts}, {load}, on {card.hardware.gpu or card.hardware.cpu}")
    lines.append(f"card     {run_folder / card.artifact}")
    lines += [f"report   {run_folder / side.path}" for side in card.side_files if side.path.endswith(".html")]
    return lines


def bullet(head: str, text: str) -> list[str]:
    """`text` after `head`, wrapped under itself."""
    pieces = wrap(text, max(20, WIDTH - len(head))) or [""]
    return [f"{head}{pieces[0]}".rstrip(), *(f"{' ' * len(head)}{piece}" for piece in pieces[1:])]


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns aligned: the first to the left, figures to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
