"""Small pictures that stand in a table row: an interval against a margin, and a range from p50 to p90."""

from __future__ import annotations

from kvassay.card.wording import milliseconds, points, signed_points
from kvassay.records.evaluation import Comparison
from kvassay.records.roadtest import Percentiles
from kvassay.report.svg import LinearScale, circle, image, line, tag

WIDTH, HEIGHT, PAD = 190.0, 22.0, 6.0


def interval_bar(comparison: Comparison, reach: float) -> str:
    """Difference from native with its interval; dashed at the margin, solid at no difference. `reach`: fraction at both ends."""
    x = LinearScale(-reach, reach, PAD, WIDTH - PAD)
    middle = HEIGHT / 2
    low, high = comparison.interval.low, comparison.interval.high
    ends = f"from {signed_points(low)} to {signed_points(high)}"
    label = f"{signed_points(comparison.difference)} points, {ends}; margin {points(comparison.margin)}"
    parts = [
        line(x(0), 1, x(0), HEIGHT - 1, "axis"),
        line(x(-comparison.margin), 1, x(-comparison.margin), HEIGHT - 1, "budget"),
        line(x(low), middle, x(high), middle, f"interval {comparison.verdict}"),
        circle(x(comparison.difference), middle, 4.5, f"dot {comparison.verdict}"),
    ]
    return image(WIDTH, HEIGHT, label, parts, "bar")


def range_bar(figures: Percentiles, longest_ms: float) -> str:
    """Dot at p50, bar to p90, on a scale from 0 to `longest_ms`."""
    if figures.p50 is None:
        return ""
    x = LinearScale(0, longest_ms, PAD, WIDTH - PAD)
    middle, end = HEIGHT / 2, figures.p90 if figures.p90 is not None else figures.p50
    parts = [
        line(x(0), middle, x(longest_ms), middle, "grid"),
        tag("rect", x=x(figures.p50), y=middle - 3, width=max(0.0, x(end) - x(figures.p50)), height=6, rx=3, class_="range"),
        circle(x(figures.p50), middle, 5, "dot"),
    ]
    return image(WIDTH, HEIGHT, f"p50 {milliseconds(figures.p50)}, p90 {milliseconds(figures.p90)}", parts, "bar")
