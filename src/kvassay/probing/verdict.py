"""The verdict over one arm: pure, each branch with its reason."""

from __future__ import annotations

from kvassay.probing.observed import MIN_DOCUMENTS, Expected, Loss, Shown
from kvassay.records.probe import ProbeVerdict

CONFORMS_WITHIN = 1.5
BROKEN_ABOVE_NATS = 1.0
BROKEN_ABOVE_PREDICTED = 3.0
# A prediction below this many floors is drowned by the noise of the served model's own arithmetic.
FLOORS_NEEDED = 3.0
# Agreement with native on the next token below this is gibberish, whatever the KL estimate says.
GIBBERISH_TOP1 = 0.1
BYTES_TOLERANCE = 0.01
CAPACITY_TOLERANCE = 0.02


def judge(expected: Expected, shown: Shown, loss: Loss | None) -> tuple[ProbeVerdict, tuple[str, ...]]:
    """Verdict and reasons of an arm that started.

    Order: a cache that is not engaged, or one that breaks the model, is named even where the loss could not be compared; a loss
    that fits proves nothing about formats or bytes that do not.
    """
    if why := _not_engaged(expected, shown, loss):
        return "not_engaged", why
    if loss is not None and (why := _broken(loss, shown)):
        return "broken", why
    wrong = _wrong_layout(expected, shown)
    if not expected.quantized:
        return ("degraded", wrong) if wrong else ("conforms", ("native cache in every layer, bytes as priced; the baseline of every KL",))
    why = _cannot_tell(expected, shown, loss)
    if why or loss is None or loss.ratio is None:
        return ("degraded", wrong) if wrong else ("unknown", why)
    if wrong or not 1 / CONFORMS_WITHIN <= loss.ratio <= CONFORMS_WITHIN:
        return "degraded", (*wrong, _ratio(loss))
    return "conforms", (_ratio(loss),)


def _not_engaged(expected: Expected, shown: Shown, loss: Loss | None) -> tuple[str, ...]:
    if not expected.quantized:
        return ()
    reasons = []
    grown = shown.capacity_ratio
    if grown is not None and expected.capacity_ratio > 1 + 2 * CAPACITY_TOLERANCE and grown < 1 + CAPACITY_TOLERANCE:
        reasons.append(f"capacity is {grown:.2f} times native's, priced at {expected.capacity_ratio:.2f}: it did not change")
    if loss is not None and loss.served_nats == 0:
        reasons.append("served KL is exactly 0 although quantization was asked for")
    elif loss is not None and _told_apart(loss) and loss.served_nats <= loss.floor_nats:
        reasons.append(
            f"served KL {loss.served_nats:.2g} nats is at the floor of {loss.floor_nats:.2g}, {loss.predicted_nats:.2g} was predicted"
        )
    return tuple(reasons)


def _broken(loss: Loss, shown: Shown) -> tuple[str, ...]:
    if shown.top1_agreement is not None and shown.top1_agreement < GIBBERISH_TOP1 and loss.documents >= MIN_DOCUMENTS:
        return (f"gibberish: {shown.top1_agreement:.1%} of next tokens agree with native's",)
    if loss.served_nats <= BROKEN_ABOVE_NATS:
        return ()
    if loss.predicted_nats is None:
        return (f"served KL {loss.served_nats:.2f} nats, and no prediction explains it",)
    if loss.served_nats > BROKEN_ABOVE_PREDICTED * loss.predicted_nats:
        return (f"served KL {loss.served_nats:.2f} nats, {loss.served_nats / max(loss.predicted_nats, 1e-12):.1f} times the predicted",)
    return ()


def _wrong_layout(expected: Expected, shown: Shown) -> tuple[str, ...]:
    reasons = list(shown.formats_differ)
    measured = shown.bytes_per_token
    if measured is None:
        reasons.append("the engine does not tell its bytes per token")
    elif abs(measured / expected.bytes_per_token - 1) > BYTES_TOLERANCE:
        reasons.append(f"{measured:,.0f} bytes per token are stored, {expected.bytes_per_token:,} were priced")
    grown = shown.capacity_ratio
    if grown is not None and abs(grown / expected.capacity_ratio - 1) > CAPACITY_TOLERANCE:
        reasons.append(f"capacity is {grown:.2f} times native's, priced at {expected.capacity_ratio:.2f}")
    return tuple(reasons)


def _cannot_tell(expected: Expected, shown: Shown, loss: Loss | None) -> tuple[str, ...]:
    """Why served and predicted loss cannot be compared; empty when they can."""
    if loss is None:
        return (shown.why_not_served or "nothing was served",)
    if loss.documents < MIN_DOCUMENTS:
        return (f"{loss.documents} documents, {MIN_DOCUMENTS} are needed for an interval",)
    if loss.predicted_nats is None:
        return (expected.why_no_prediction or "no prediction for this map",)
    if not _told_apart(loss):
        return (
            f"the predicted {loss.predicted_nats:.2g} nats are below {FLOORS_NEEDED:g} floors of {loss.floor_nats:.2g}: "
            "the served model's own rounding drowns it",
        )
    if loss.ratio is None:
        return ("served and predicted KL are not over the same documents",)
    return ()


def _told_apart(loss: Loss) -> bool:
    return loss.predicted_nats is not None and loss.predicted_nats >= FLOORS_NEEDED * loss.floor_nats and loss.predicted_nats > 0


def _ratio(loss: Loss) -> str:
    interval = f" [{loss.ratio_interval.low:.2f}, {loss.ratio_interval.high:.2f}]" if loss.ratio_interval else ""
    compared = f"served KL is {loss.ratio:.2f} times the predicted{interval}"
    return f"{compared} over {loss.documents} documents, floor {loss.floor_nats:.2g} nats removed"
