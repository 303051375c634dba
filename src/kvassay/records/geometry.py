"""geometry.json: exactly what the cache of this model holds."""

from __future__ import annotations

from typing import ClassVar, Literal

from kvassay.records.base import Frozen, NonNegativeInt, Record

LayerKind = Literal["full", "sliding", "chunked", "mla", "cross", "recurrent", "none"]


class Layer(Frozen):
    """One decoder layer. `kv_heads`, and `k_dim` and `v_dim` in elements per head; `window` in tokens, None when it keeps all.

    `owner` says whether the layer stores a cache; a sharer has `reads_from` = the owner's index. `module` is the
    attention module's name in transformers.
    """

    index: NonNegativeInt
    kind: LayerKind
    owner: bool
    reads_from: int | None
    kv_heads: NonNegativeInt
    k_dim: NonNegativeInt
    v_dim: NonNegativeInt
    window: int | None
    module: str


class CacheBytes(Frozen):
    """Bytes of one request's cache: per further token, per token if nothing were dropped, of full windows, fixed."""

    growth_per_token: NonNegativeInt
    all_tokens_per_token: NonNegativeInt
    window_bytes: NonNegativeInt
    fixed_per_request: NonNegativeInt


class ByteParts(Frozen):
    """`total_bytes` split by what the bytes are."""

    payload: NonNegativeInt
    scales: NonNegativeInt
    padding: NonNegativeInt


class Geometry(Record):
    """Cache layout of one model and its native price at `context_tokens`."""

    artifact: ClassVar[str] = "geometry.json"
    schema_id: ClassVar[str] = "kvassay.geometry/1"

    model_type: str
    native_dtype: str
    assumptions: tuple[str, ...]
    max_position_embeddings: NonNegativeInt | None
    layers: tuple[Layer, ...]
    bytes: CacheBytes
    context_tokens: NonNegativeInt
    total_bytes: NonNegativeInt
    parts: ByteParts

    @property
    def owners(self) -> tuple[Layer, ...]:
        """Layers that store a cache, in order."""
        return tuple(layer for layer in self.layers if layer.owner)
