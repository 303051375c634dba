"""Map or uniform: the map is recommended only where its measured advantage is not noise."""

from __future__ import annotations

from typing import Literal

from kvassay.errors import BadInput
from kvassay.records.ladder import Rung
from kvassay.statistics.bootstrap import bootstrap_mean_interval

LEVEL = 0.95


def recommend(chosen: Rung, uniform: Rung | None, seed: int) -> tuple[Literal["map", "uniform"], str]:
    """The arm to serve, and why: a paired bootstrap over documents of uniform's KL minus the map's.

    Raises BadInput when the two were not measured on the same documents.
    """
    if uniform is None:
        return "map", "there is no uniform pair to compare with"
    if len(chosen.per_document_nats) != len(uniform.per_document_nats):
        raise BadInput(f"ladder.json: {chosen.name} and {uniform.name} were measured on different documents; run measure again")
    figures = f"{chosen.name} loses {chosen.kl_nats:.4g} nats, {uniform.name} {uniform.kl_nats:.4g}"
    gains = [u - m for u, m in zip(uniform.per_document_nats, chosen.per_document_nats, strict=True)]
    if len(gains) < 2:
        return "uniform", f"{figures}; one document cannot show a difference"
    low, high = bootstrap_mean_interval(gains, seed, level=LEVEL)
    interval = f"gain {sum(gains) / len(gains):.4g} nats, {LEVEL:.0%} interval {low:.4g} to {high:.4g} over {len(gains)} documents"
    if low > 0:
        return "map", f"{figures}; {interval}"
    return "uniform", f"{figures}; {interval}, so the map's advantage is not shown"
