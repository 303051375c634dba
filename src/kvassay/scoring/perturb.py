"""What stands in the cache's place while scoring: candidates of one tensor side by side, or one unit in the last place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin

from kvassay.numerics import disturb

TensorName = Literal["k", "v"]


@dataclass(frozen=True)
class Candidate:
    """One tensor of one owner layer in another format."""

    tensor: TensorName
    format: str


class Untouched(CacheLayerMixin):  # type: ignore[misc]
    """A layer that keeps nothing and gives K and V back as they come, or as `change` makes them."""

    is_sliding = False

    def __init__(self) -> None:
        super().__init__()
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing is stored."""

    def change(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """K and V as attention is to read them."""
        return k, v

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """What attention reads, [batch, kv_heads, tokens, dim]."""
        return self.change(key_states, value_states)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """(keys that `update` will return, offset of the first)."""
        return query_length, 0

    def get_seq_length(self) -> int:
        """Nothing is kept."""
        return 0

    def get_max_length(self) -> int:
        """No limit."""
        return -1


class SideBySide(Untouched):
    """Candidates one after another along the batch, each over `documents` rows."""

    def __init__(self, candidates: Sequence[Candidate], documents: int) -> None:
        super().__init__()
        self.candidates, self.documents = candidates, documents

    def change(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        parts = {"k": list(torch.split(k, self.documents)), "v": list(torch.split(v, self.documents))}
        for place, candidate in enumerate(self.candidates):
            part = parts[candidate.tensor]
            part[place] = disturb(candidate.format, part[place])
        return torch.cat(parts["k"]), torch.cat(parts["v"])


class LastPlace(Untouched):
    """Every element of K and V moved to the next representable number."""

    def change(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return _next_up(k), _next_up(v)


def _next_up(x: Tensor) -> Tensor:
    return torch.nextafter(x, torch.full_like(x, torch.inf))


def untouched_cache(owner_layers: int) -> Cache:
    """A cache that changes nothing."""
    return Cache(layers=[Untouched() for _ in range(owner_layers)])


def candidates_cache(owner_layers: int, position: int, candidates: Sequence[Candidate], documents: int) -> Cache:
    """A cache that changes only owner layer number `position`."""
    return Cache(layers=[SideBySide(candidates, documents) if place == position else Untouched() for place in range(owner_layers)])


def last_place_cache(owner_layers: int) -> Cache:
    """A cache that moves every K and V by one unit in the last place: the smallest disturbance there is."""
    return Cache(layers=[LastPlace() for _ in range(owner_layers)])
