"""Joint forward KL: a whole map at once, in one full forward through a cache that disturbs every layer."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kvassay.cache import DisturbingCache
from kvassay.errors import BadInput
from kvassay.records.base import Interval
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry
from kvassay.scoring.exact import grouped
from kvassay.scoring.kl import forward_kl
from kvassay.scoring.perturb import last_place_cache, untouched_cache
from kvassay.scoring.replay import refuse_broken
from kvassay.statistics.bootstrap import bootstrap_mean_interval

# Reference logits up to this size are kept between maps; beyond it they are computed again for every map.
KEPT_REFERENCE_BYTES = 2 * 2**30
LEVEL = 0.95


@dataclass(frozen=True)
class JointKL:
    """KL in nats per position: mean over documents, interval over documents, 99th percentile over positions."""

    mean_nats: float
    interval: Interval
    p99_nats: float
    per_document_nats: tuple[float, ...]
    positions: int


class JointMeter:
    """Measures maps on the same documents (token ids, all of one length) with one reference.

    Raises BadInput for fewer than two documents (an interval needs them), or when the model gives NaN or infinite logits.
    """

    def __init__(self, model: Any, geometry: Geometry, documents: Sequence[Sequence[int]], seed: int) -> None:
        self.model, self.geometry, self.seed = model, geometry, seed
        self.groups = grouped(documents, model.device)
        self.kept: dict[int, Tensor] = {}

    def measure(self, pairs: Sequence[Pair]) -> JointKL:
        """Joint KL of a map, `pairs` in the order of the owner layers. Raises BadInput when their number is wrong."""
        if len(pairs) != len(self.geometry.owners):
            raise BadInput(f"a map of {len(pairs)} layers for a model with {len(self.geometry.owners)} owner layers")
        return self._summary(
            [forward_kl(self._reference(n), self._logits(ids, DisturbingCache(pairs))) for n, (_, ids) in enumerate(self.groups)]
        )

    def floor_nats(self) -> float:
        """Mean KL when every K and V moves by one unit in the last place."""
        owners = len(self.geometry.owners)
        kl = [forward_kl(self._reference(n), self._logits(ids, last_place_cache(owners))) for n, (_, ids) in enumerate(self.groups)]
        return max(0.0, torch.cat(kl).double().mean().item())

    def _reference(self, number: int) -> Tensor:
        if number in self.kept:
            return self.kept[number]
        start, ids = self.groups[number]
        reference = self._logits(ids, untouched_cache(len(self.geometry.owners)))
        refuse_broken(reference, (), start)
        if sum(each.nbytes for each in self.kept.values()) + reference.nbytes <= KEPT_REFERENCE_BYTES:
            self.kept[number] = reference
        return reference

    def _logits(self, ids: Tensor, cache: Any) -> Tensor:
        with torch.inference_mode():
            logits: Tensor = self.model(ids, past_key_values=cache, use_cache=True).logits
            return logits.float()

    def _summary(self, groups: Sequence[Tensor]) -> JointKL:
        kl = torch.cat(list(groups)).double().cpu()
        if not torch.isfinite(kl).all():
            document, position = (int(x) for x in (~torch.isfinite(kl)).nonzero()[0])
            raise BadInput(
                f"this map gives NaN or infinite logits at position {position} of document {document}; leave out its smallest format"
            )
        per_document = [float(x) for x in kl.mean(-1)]
        low, high = bootstrap_mean_interval(per_document, self.seed, LEVEL)
        return JointKL(
            mean_nats=statistics.fmean(per_document),
            interval=Interval(low=low, high=high, level=LEVEL),
            p99_nats=kl.flatten().sort().values[max(0, -(-99 * kl.numel() // 100) - 1)].item(),
            per_document_nats=tuple(per_document),
            positions=kl.numel(),
        )
