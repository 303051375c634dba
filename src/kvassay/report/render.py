"""The page from a card and the artifacts of its run."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from kvassay.card import wording
from kvassay.card.evidence import RunRecords, title
from kvassay.card.limits import context_words, limits_by_figure
from kvassay.records.card import Card, CardArm
from kvassay.report.answers import answers
from kvassay.report.bars import interval_bar, range_bar
from kvassay.report.frontier_chart import NARROW, WIDE, frontier_chart
from kvassay.report.headlines import headlines
from kvassay.report.strip import heat_strip
from kvassay.version import TOOL_VERSION

VERDICT_MEANS = {
    "approve": "Every gate of the plan is met.",
    "reject": "At least one gate is missed: what was measured speaks against this arm.",
    "abstain": "No gate is missed, but not every gate could be decided: what was measured is not enough to say yes.",
}
SCOPE_MEANS = {
    "simulated": "from arithmetic alone; no server was asked",
    "reference": "from kvassay's own one-sequence server; it cannot be approved for production",
    "engine": "from the engine that would serve",
}


def render_report(card: Card, records: RunRecords) -> str:
    """One self-contained HTML page: no script, no request, no absolute path."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["capitalize_first"] = lambda words: words[:1].upper() + words[1:]
    environment.globals |= {name: getattr(wording, name) for name in WORDS} | {"title": title, "context_words": context_words}
    return environment.from_string(source("template.html")).render(**context(card, records))


WORDS = (
    "NONE",
    "byte_count",
    "count",
    "interval",
    "milliseconds",
    "nats",
    "percent",
    "points",
    "ratio",
    "signed_points",
    "significant",
    "whole_bytes",
)


def source(name: str) -> str:
    """A file that lies beside this module, also inside a zip."""
    return (files("kvassay.report") / name).read_text(encoding="utf-8")


def drawn(markup: str) -> Any:
    """Our own style sheet and pictures, which escape every text they hold: the template takes them as they are."""
    from markupsafe import Markup

    return Markup(markup)  # noqa: S704 - nothing of a run reaches this unescaped, see kvassay.report.svg


def context(card: Card, records: RunRecords) -> dict[str, Any]:
    """Everything the template names; markup of our own is marked, all other text is escaped by the template."""
    arms = {name: arm for name, arm in card.arms.items() if arm is not None}
    native_bits = arms["native"].bits if "native" in arms else 16.0
    charts = [drawn(frontier_chart(records.frontier, records.ladder, records.frozen, native_bits, frame)) for frame in (WIDE, NARROW)]
    reach = interval_reach(arms)
    figures = headlines(card)
    grounds = {f"{each.limit.build}; {each.limit.hardware}" for each in figures}
    return {
        "card": card,
        "records": records,
        "style": drawn(source("style.css")),
        "tool_version": TOOL_VERSION,
        "verdict_means": VERDICT_MEANS[card.decision.verdict],
        "scope_means": SCOPE_MEANS[card.decision.scope],
        "reasons": [gate for outcome in ("missed", "undecided") for gate in card.decision.gates if gate.outcome == outcome],
        "headlines": figures,
        "shared_ground": grounds.pop() if len(grounds) == 1 else None,
        "answers": answers(card, records.frozen, records.frontier),
        "arms": arms,
        "tasks": list(dict.fromkeys(task for arm in arms.values() for task in arm.tasks)),
        "strip": heat_strip(records.frozen, records.geometry, records.scores),
        "frontier_charts": charts,
        "limits": limits_by_figure(card.limits),
        "interval_bars": {
            (task, name): drawn(interval_bar(figure.comparison, reach))
            for name, arm in arms.items()
            for task, figure in arm.tasks.items()
            if figure.comparison
        },
        "reach": reach,
        "range_bars": {
            (kind, name): drawn(range_bar(getattr(arm, kind), longest(arms, kind)))
            for kind in ("ttft_ms", "tpot_ms")
            for name, arm in arms.items()
        },
        "shares": {name: memory_shares(arm, max(each.memory.process_peak_bytes for each in arms.values())) for name, arm in arms.items()},
        "road": records.roadtest.arms,
    }


def interval_reach(arms: dict[str, CardArm]) -> float:
    """Half width of the task pictures: far enough for every interval, in steps of 10 points."""
    ends = [
        abs(end)
        for arm in arms.values()
        for task in arm.tasks.values()
        if task.comparison
        for end in (task.comparison.interval.low, task.comparison.interval.high)
    ]
    return min(1.0, -(-max(ends, default=0.1) * 10 // 1) / 10)


def longest(arms: dict[str, CardArm], kind: str) -> float:
    figures = [getattr(arm, kind) for arm in arms.values()]
    return max((value for each in figures for value in (each.p50, each.p90) if value is not None), default=1.0)


def memory_shares(arm: CardArm, largest_bytes: int) -> dict[str, float]:
    """Percent of the largest peak: weights, cache held at its peak, and everything else in the process."""
    memory = arm.memory
    weights = min(memory.weights_bytes, memory.process_peak_bytes)
    cache = min(memory.kv_peak_bytes, memory.process_peak_bytes - weights)
    rest = memory.process_peak_bytes - weights - cache
    return {name: round(100 * value / max(1, largest_bytes), 3) for name, value in (("weights", weights), ("cache", cache), ("rest", rest))}
