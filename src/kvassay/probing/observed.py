"""What a running server showed of one arm, and what was expected of it. Pure data for the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kvassay.records.base import Interval
from kvassay.statistics.bootstrap import bootstrap_ratio_interval

MIN_DOCUMENTS = 20
LEVEL = 0.95


@dataclass(frozen=True)
class Expected:
    """What the run says of an arm. quantized: some layer's format is not native. capacity_ratio: to native, by price.

    predicted_kl_nats: measured joint KL per document of the same map in the ladder, None (with why) when it holds no such map.
    """

    quantized: bool
    bytes_per_token: int
    capacity_ratio: float
    predicted_kl_nats: tuple[float, ...] | None
    why_no_prediction: str = ""


@dataclass(frozen=True)
class Shown:
    """What the server showed. formats_differ: layers whose format is not the map's, as text, empty when all match.

    served_kl_nats: per document, None (with why) when the engine gave no log-probabilities. top1_agreement: with native.
    """

    formats_differ: tuple[str, ...]
    bytes_per_token: float | None
    capacity_tokens: int | None
    capacity_ratio: float | None
    served_kl_nats: tuple[float, ...] | None
    why_not_served: str = ""
    top1_agreement: float | None = None


@dataclass(frozen=True)
class Loss:
    """Served beside predicted KL over the same documents: means in nats, ratio = (served − floor) ÷ predicted."""

    served_nats: float
    predicted_nats: float | None
    floor_nats: float
    documents: int
    ratio: float | None
    ratio_interval: Interval | None


def loss(expected: Expected, shown: Shown, floor_nats: float, seed: int) -> Loss | None:
    """None when nothing was served. `floor_nats`: mean KL of native against its own rerun.

    The floor is taken off the mean, not off each document: rounding noise is spread evenly, and a document below it is no gain.
    """
    if not shown.served_kl_nats:
        return None
    served, predicted = shown.served_kl_nats, expected.predicted_kl_nats
    mean_served = math.fsum(served) / len(served)
    mean_predicted = math.fsum(predicted) / len(predicted) if predicted else None
    if predicted is None or mean_predicted is None or mean_predicted <= 0 or len(predicted) != len(served) or len(served) < 2:
        return Loss(mean_served, mean_predicted, floor_nats, len(served), None, None)
    low, high = bootstrap_ratio_interval([each - floor_nats for each in served], predicted, seed, LEVEL)
    ratio = (mean_served - floor_nats) / mean_predicted
    return Loss(mean_served, mean_predicted, floor_nats, len(served), ratio, Interval(low=low, high=high, level=LEVEL))
