"""Five questions a reader has first, answered from the records."""

from __future__ import annotations

from kvassay.card.wording import count, nats, percent, ranges, signed_points
from kvassay.records import Frontier, FrozenMap
from kvassay.records.card import Card

MORE_BUDGET = 1.1


def answers(card: Card, frozen: FrozenMap, frontier: Frontier) -> tuple[tuple[str, str], ...]:
    return (
        ("Which layers have which format?", which_layers(frozen)),
        ("What was the worst task?", worst_task(card)),
        ("At which context was it tested?", tested_context(card)),
        ("What would 10 % more budget buy?", more_budget(frontier)),
        (
            "When does it expire?",
            "A card does not expire and permits nothing: only a signed approval over it does both, and none is part of this page.",
        ),
    )


def which_layers(frozen: FrozenMap) -> str:
    parts = []
    for tensor in ("k", "v"):
        names = [getattr(layer, tensor) for layer in frozen.layers]
        for name in sorted(set(names), key=lambda each: (-names.count(each), each)):
            layers = [layer.index for layer, own in zip(frozen.layers, names, strict=True) if own == name]
            where = "all layers" if len(layers) == len(frozen.layers) else f"{'layer' if len(layers) == 1 else 'layers'} {ranges(layers)}"
            parts.append(f"{tensor.upper()} {name}: {where}")
    return "; ".join(parts) + "."


def worst_task(card: Card) -> str:
    arm = card.arms.get(card.decision.arm)
    compared = [(name, task.comparison) for name, task in arm.tasks.items() if task.comparison] if arm else []
    if not compared:
        return "No task was compared with native."
    name, worst = min(compared, key=lambda pair: pair[1].difference)
    low, high = signed_points(worst.interval.low), signed_points(worst.interval.high)
    start = "No task lost more than" if worst.difference == 0 else f"{name}, at"
    return (
        f"{start} {signed_points(worst.difference)} points against native (90 % interval {low} to {high}, {count(worst.n, 'item')}; "
        f"{worst.items_needed:,} items needed to show no loss of {100 * worst.margin:g} points)."
    )


def tested_context(card: Card) -> str:
    envelope = card.envelope
    return (
        f"Tasks and requests up to {count(envelope.longest_context_tokens, 'token')}, the workload up to {count(envelope.longest_request_tokens, 'token')}, "
        f"KL on rows of {count(envelope.longest_kl_tokens, 'token')}. Nothing longer was tested."
    )


def more_budget(frontier: Frontier) -> str:
    """The best predicted map at the budget and at 1.1 times the budget; predictions, not measurements."""
    now = [point for point in frontier.points if point.bits <= frontier.budget_bits]
    then = [point for point in frontier.points if point.bits <= frontier.budget_bits * MORE_BUDGET]
    if not now:
        return "No predicted map fits the budget."
    best, better = (min(group, key=lambda point: point.predicted_kl_nats) for group in (now, then))
    if better.name == best.name or best.predicted_kl_nats == 0:
        return "Nothing that the search predicts: no larger map lies within 10 % more."
    saved = 1 - better.predicted_kl_nats / best.predicted_kl_nats
    return (
        f"A predicted KL of {nats(better.predicted_kl_nats)} instead of {nats(best.predicted_kl_nats)} ({percent(saved)} less), at {better.bits:.2f} bits "
        f"instead of {best.bits:.2f}. Modelled, not measured."
    )
