"""Small parts of inline SVG. Colours and fonts come from the page's style sheet by class."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10


def tag(name: str, content: str = "", **attributes: str | float) -> str:
    """One element; underscores in attribute names become hyphens, `class_` becomes class, values are escaped."""
    parts = [
        f'{key.rstrip("_").replace("_", "-")}="{number(value) if not isinstance(value, str) else escape(value)}"'
        for key, value in attributes.items()
    ]
    head = " ".join((name, *parts))
    return f"<{head}>{content}</{name}>" if content else f"<{head}/>"


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def text(x: float, y: float, words: str, class_: str = "", anchor: str = "start") -> str:
    return tag("text", escape(words), x=x, y=y, class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def circle(x: float, y: float, r: float, class_: str) -> str:
    return tag("circle", cx=x, cy=y, r=r, class_=class_)


def square(x: float, y: float, r: float, class_: str) -> str:
    return tag("rect", x=x - r, y=y - r, width=2 * r, height=2 * r, class_=class_)


def path(points: Sequence[tuple[float, float]], class_: str) -> str:
    steps = " ".join(f"{'L' if i else 'M'}{number(x)} {number(y)}" for i, (x, y) in enumerate(points))
    return tag("path", d=steps, class_=class_)


def image(width: float, height: float, label: str, parts: Sequence[str], class_: str) -> str:
    """A whole picture with a text alternative; it scales with its container."""
    title = tag("title", escape(label))
    return tag("svg", title + "".join(parts), viewBox=f"0 0 {number(width)} {number(height)}", role="img", aria_label=label, class_=class_)


class LogScale:
    """Maps positive values to pixels by their logarithm. A range of no width is opened a little."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        if high <= low:
            low, high = low / 1.5, high * 1.5
        self.low, self.high, self.start, self.end = log10(low), log10(high), start, end

    def __call__(self, value: float) -> float:
        share = (log10(max(value, 1e-300)) - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def ticks(self, at_most: int = 7) -> list[float]:
        """Round numbers inside the range: 1, 2, 5 of each decade, decades alone when that is too many."""
        for digits in ((1, 2, 5), (1, 3), (1,)):
            found = [
                digit * 10.0**power
                for power in range(floor(self.low) - 1, ceil(self.high) + 1)
                for digit in digits
                if self.low - 1e-9 <= log10(digit * 10.0**power) <= self.high + 1e-9
            ]
            if len(found) <= at_most:
                return found
        return found[:: ceil(len(found) / at_most)]


class LinearScale:
    """Maps values to pixels; values outside stop at the ends."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.span, self.start, self.end = low, (high - low) or 1.0, start, end

    def __call__(self, value: float) -> float:
        return self.start + min(1.0, max(0.0, (value - self.low) / self.span)) * (self.end - self.start)
