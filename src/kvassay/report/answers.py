"""Five questions a reader has first, answered from the records."""

from __future__ import annotations

from kvassay.card.wording import count, nats, percent, points, ranges, signed_points
from kvassay.records import Frontier, FrozenMap
from kvassay.records.card import Card

MORE_BUDGET = 1.1


def answers(card: Card, frozen: FrozenMap, frontier: Frontier) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Question and the lines of its answer."""
    return (
        ("Which layers have which format?", which_layers(frozen)),
        ("What was the worst task?", (worst_task(card),)),
        ("At which context was it tested?", (tested_context(card),)),
        ("What would 10 % more budget buy?", (more_budget(frontier),)),
        (
            "When does it expire?",
            ("A card permits nothing and does not expire. A signed approval over it would do both; this page holds none.",),
        ),
    )


def which_layers(frozen: FrozenMap) -> tuple[str, ...]:
    lines = []
    for tensor in ("k", "v"):
        names = [getattr(layer, tensor) for layer in frozen.layers]
        parts = []
        for name in sorted(set(names), key=lambda each: (-names.count(each), each)):
            layers = [layer.index for layer, own in zip(frozen.layers, names, strict=True) if own == name]
            where = "in all layers" if len(layers) == len(frozen.layers) else f"in {ranges(layers)}"
            parts.append(f"{name} {where}")
        lines.append(f"{tensor.upper()}: {'; '.join(parts)}")
    return tuple(lines)


def worst_task(card: Card) -> str:
    arm = card.arms.get(card.decision.arm)
    compared = [(name, task.comparison) for name, task in arm.tasks.items() if task.comparison] if arm else []
    if not compared:
        return "No task was compared with native."
    name, worst = min(compared, key=lambda pair: pair[1].difference)
    low, high = signed_points(worst.interval.low), signed_points(worst.interval.high)
    needed = f"{worst.items_needed:,} items would be needed to show a loss under {points(worst.margin)}"
    return (
        f"{name.capitalize()}: {signed_points(worst.difference)} points against native, 90 % interval {low} to {high}, "
        f"{count(worst.n, 'item')}; {needed}."
    )


def tested_context(card: Card) -> str:
    envelope = card.envelope
    return (
        f"Tasks and requests up to {count(envelope.longest_context_tokens, 'token')}, of which the workload up to "
        f"{envelope.longest_request_tokens:,}; KL on rows of {count(envelope.longest_kl_tokens, 'token')}. Nothing longer was tested."
    )


def more_budget(frontier: Frontier) -> str:
    """The best predicted map, mixed or uniform, at the budget and at 1.1 times the budget; predictions, not measurements."""
    every = (*frontier.points, *frontier.uniform)
    now = [point for point in every if point.bits <= frontier.budget_bits]
    then = [point for point in every if point.bits <= frontier.budget_bits * MORE_BUDGET]
    if not now:
        return "No predicted map fits the budget."
    best, better = (min(group, key=lambda point: point.predicted_kl_nats) for group in (now, then))
    if better.name == best.name or best.predicted_kl_nats == 0:
        return "Nothing that the search predicts: no map of up to 10 % more bits is predicted to lose less."
    saved = 1 - better.predicted_kl_nats / best.predicted_kl_nats
    return (
        f"A predicted KL of {nats(better.predicted_kl_nats)} instead of {nats(best.predicted_kl_nats)} ({percent(saved)} less), "
        f"at {better.bits:.2f} bits instead of {best.bits:.2f}. Modelled, not measured."
    )
