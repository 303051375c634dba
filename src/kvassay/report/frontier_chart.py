"""The frontier: predicted curve, measured maps and uniform pairs, budget, and the chosen points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvassay.card.wording import nats, significant
from kvassay.records import Frontier, FrozenMap, Ladder
from kvassay.records.frontier import FrontierPoint
from kvassay.records.ladder import Rung
from kvassay.report.svg import LogScale, circle, image, line, path, square, text

BIT_TICKS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32)


@dataclass(frozen=True)
class Frame:
    """Size of the picture and of its margins, in its own units."""

    width: float
    height: float
    left: float = 58
    right: float = 16
    top: float = 22
    bottom: float = 44
    class_: str = "chart"


WIDE = Frame(860, 380, class_="chart wide-only")
NARROW = Frame(390, 330, left=50, right=8, class_="chart narrow-only")


def frontier_chart(frontier: Frontier, ladder: Ladder, frozen: FrozenMap, native_bits: float, frame: Frame) -> str:
    """Inline SVG. x: effective bits per element (log), y: joint KL in nats per token (log); lower left is better."""
    last_bits = reach_bits(frontier, ladder, native_bits)
    shown = [each for each in frontier.points if each.bits <= last_bits]
    losses = [each.predicted_kl_nats for each in shown] + [end for rung in ladder.rungs for end in (rung.kl_nats, rung.kl_interval.high)]
    losses = [loss for loss in losses if loss > 0] or [1e-3]
    bits = [each.bits for each in shown] + [rung.bits for rung in ladder.rungs] + [frontier.budget_bits, last_bits]
    x = LogScale(min(bits) * 0.97, max(bits) * 1.03, frame.left, frame.width - frame.right)
    y = LogScale(max(min(losses) / 1.6, max(losses) / 1e5), max(losses) * 1.35, frame.height - frame.bottom, frame.top)
    parts = [*axes(x, y, frame), *budget_line(x, frontier.budget_bits, frame), *curve(x, y, shown)]
    parts += [mark for rung in ladder.rungs for mark in measured(x, y, rung)]
    parts += chosen_marks(x, y, ladder, frozen, frame)
    parts += native_mark(x, native_bits, frame)
    return image(frame.width, frame.height, description(frontier, ladder, frozen), parts, frame.class_)


def axes(x: LogScale, y: LogScale, frame: Frame) -> list[str]:
    base, right = frame.height - frame.bottom, frame.width - frame.right
    parts = []
    for tick in y.ticks():
        parts.append(line(frame.left, y(tick), right, y(tick), "grid"))
        parts.append(text(frame.left - 8, y(tick) + 4, significant(tick, 1), "tick", "end"))
    shown = [tick for tick in BIT_TICKS if 10**x.low <= tick <= 10**x.high]
    for tick in shown:
        parts.append(line(x(tick), base, x(tick), base + 5, "axis"))
        if tick != 7 or frame.width > 500:
            parts.append(text(x(tick), base + 18, f"{tick}", "tick", "middle"))
    parts.append(line(frame.left, base, right, base, "axis"))
    parts.append(text((frame.left + right) / 2, frame.height - 6, "effective bits per cached element", "label", "middle"))
    parts.append(text(4, 13, "KL from native, nats per token", "label"))
    return parts


def budget_line(x: LogScale, budget_bits: float, frame: Frame) -> list[str]:
    at = x(budget_bits)
    near_end = at > frame.width - 120
    return [
        line(at, frame.top, at, frame.height - frame.bottom, "budget"),
        text(at + (-6 if near_end else 6), frame.top + 11, f"budget {budget_bits:.3g} bits", "label", "end" if near_end else "start"),
    ]


def curve(x: LogScale, y: LogScale, shown: Sequence[FrontierPoint]) -> list[str]:
    points = [(x(each.bits), y(each.predicted_kl_nats)) for each in shown if each.predicted_kl_nats > 0]
    return [path(points, "predicted")] if len(points) > 1 else []


def measured(x: LogScale, y: LogScale, rung: Rung) -> list[str]:
    at, mark = x(rung.bits), circle if rung.kind == "mixed" else square
    spread = line(at, y(max(rung.kl_interval.low, 1e-300)), at, y(rung.kl_interval.high), f"spread {rung.kind}")
    return [spread, mark(at, y(rung.kl_nats), 4.5, rung.kind)]


def chosen_marks(x: LogScale, y: LogScale, ladder: Ladder, frozen: FrozenMap, frame: Frame) -> list[str]:
    """Rings and names for the map, the best uniform pair, and uniform FP8 where it was measured."""
    above: dict[str, str] = {}
    fp8 = next(
        (rung for rung in ladder.rungs if rung.kind == "uniform" and {(p.k, p.v) for p in rung.pairs} == {("fp8_e4m3", "fp8_e4m3")}), None
    )
    if fp8:
        above[fp8.name] = "FP8"
    if frozen.uniform_provenance:
        above[frozen.uniform_provenance.chosen_from] = "best uniform"
    parts = []
    for rung in ladder.rungs:
        at = x(rung.bits)
        name_at = min(max(at, frame.left + 40), frame.width - frame.right - 40)
        if rung.name in above:
            parts += [
                circle(at, y(rung.kl_nats), 9, "ring"),
                text(name_at, y(rung.kl_interval.high) - 8, above[rung.name], "name", "middle"),
            ]
        if rung.name == frozen.provenance.chosen_from:
            below = max(y(max(rung.kl_interval.low, 1e-300)), y(rung.kl_nats) + 9)
            parts += [circle(at, y(rung.kl_nats), 9, "ring"), text(name_at, below + 15, "map", "name", "middle")]
    return parts


def native_mark(x: LogScale, native_bits: float, frame: Frame) -> list[str]:
    """On the axis where native lies inside the picture, an arrow to the right where it lies outside: its KL is 0 by definition."""
    base, right = frame.height - frame.bottom, frame.width - frame.right
    inside = native_bits <= 10**x.high
    at = x(native_bits) if inside else right
    words = f"native, {native_bits:.3g} bits: 0 by definition" + ("" if inside else " →")
    return [*([circle(at, base, 4.5, "native")] if inside else []), text(at, base - 10, words, "label", "end")]


def reach_bits(frontier: Frontier, ladder: Ladder, native_bits: float) -> float:
    """How far right the picture goes: a little past what was measured, so that the choice is not pressed into a corner."""
    measured_to = max([rung.bits for rung in ladder.rungs] + [frontier.budget_bits])
    return min(measured_to * 1.15, max(native_bits, measured_to))


def description(frontier: Frontier, ladder: Ladder, frozen: FrozenMap) -> str:
    """What the picture shows, for who cannot see it."""
    parts = [
        f"Joint KL against bits per element: {len(frontier.points)} predicted maps, {len(ladder.rungs)} measured.",
        f"Budget {frontier.budget_bits:.3g} bits.",
        f"The map has {frozen.bits:.3g} bits and a measured KL of {nats(frozen.provenance.measured_kl_nats)}.",
    ]
    if frozen.uniform and frozen.uniform_provenance:
        parts.append(f"The best uniform pair has {frozen.uniform.bits:.3g} bits and {nats(frozen.uniform_provenance.measured_kl_nats)}.")
    return " ".join(parts)
