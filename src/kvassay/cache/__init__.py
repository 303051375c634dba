"""Caches for transformers models: packed by a map (`MixedCache`), or only disturbed as by one (`DisturbingCache`)."""

from kvassay.cache.disturbing import DisturbingCache
from kvassay.cache.mixed import MixedCache

__all__ = ["DisturbingCache", "MixedCache"]
