"""Price of a cache: the one place where layers and formats become bytes. The reference engine allocates by it too."""

from __future__ import annotations

from collections.abc import Sequence

from kvassay.errors import BadInput
from kvassay.formats import NATIVE, law
from kvassay.records.frontier import Pair
from kvassay.records.geometry import ByteParts, CacheBytes, Geometry, Layer

NOT_PRICED = CacheBytes(growth_per_token=0, all_tokens_per_token=0, window_bytes=0, fixed_per_request=0)
NATIVE_PAIR = Pair(k=NATIVE, v=NATIVE)


def priced(
    *,
    model_type: str,
    native_dtype: str,
    assumptions: tuple[str, ...],
    max_position_embeddings: int | None,
    layers: tuple[Layer, ...],
    context_tokens: int,
) -> Geometry:
    """The Geometry of these layers, priced natively for one request of `context_tokens` tokens."""
    bare = Geometry(
        model_type=model_type,
        native_dtype=native_dtype,
        assumptions=assumptions,
        max_position_embeddings=max_position_embeddings,
        layers=layers,
        bytes=NOT_PRICED,
        context_tokens=context_tokens,
        total_bytes=0,
        parts=ByteParts(payload=0, scales=0, padding=0),
    )
    return with_price(bare, native_pairs(bare), context_tokens)


def with_price(geometry: Geometry, pairs: Sequence[Pair], context_tokens: int) -> Geometry:
    """The same layers priced with other formats (`pairs` in the order of the owners) or at another context."""
    parts = request_parts(geometry, pairs, context_tokens)
    priced_bytes = cache_bytes(geometry, pairs)
    total = parts.payload + parts.scales + parts.padding + priced_bytes.fixed_per_request
    return geometry.model_copy(update={"bytes": priced_bytes, "context_tokens": context_tokens, "total_bytes": total, "parts": parts})


def native_pairs(geometry: Geometry) -> tuple[Pair, ...]:
    """Native K and V for every owner layer."""
    return (NATIVE_PAIR,) * len(geometry.owners)


def layer_bytes_per_token(layer: Layer, pair: Pair, native_dtype: str) -> int:
    """Bytes one token takes in one owner layer, K and V together, scales included."""
    k_row = law(pair.k, native_dtype).row_bytes(layer.k_dim)
    v_row = law(pair.v, native_dtype).row_bytes(layer.v_dim)
    return layer.kv_heads * (k_row + v_row)


def bytes_per_token(geometry: Geometry, pairs: Sequence[Pair]) -> int:
    """Bytes one token takes in all owner layers; `pairs` in their order. Raises BadInput when the counts differ."""
    return sum(layer_bytes_per_token(layer, pair, geometry.native_dtype) for layer, pair in zip_owners(geometry, pairs))


def effective_bits(geometry: Geometry, pairs: Sequence[Pair]) -> float:
    """Bits per cached element over all owner layers, block scales included."""
    return 8 * bytes_per_token(geometry, pairs) / cached_elements(geometry)


def cached_elements(geometry: Geometry) -> int:
    """Elements of K and V that one token adds over all owner layers."""
    return sum(layer.kv_heads * (layer.k_dim + layer.v_dim) for layer in geometry.owners)


def cache_bytes(geometry: Geometry, pairs: Sequence[Pair]) -> CacheBytes:
    """Growth, all-tokens, window and fixed bytes of one request with these formats."""
    growth = window = every = 0
    for layer, pair in zip_owners(geometry, pairs):
        per_token = layer_bytes_per_token(layer, pair, geometry.native_dtype)
        every += per_token
        if layer.window is None:
            growth += per_token
        else:
            window += per_token * layer.window
    return CacheBytes(growth_per_token=growth, all_tokens_per_token=every, window_bytes=window, fixed_per_request=0)


def request_parts(geometry: Geometry, pairs: Sequence[Pair], context_tokens: int) -> ByteParts:
    """Bytes of one request of `context_tokens` tokens, split into elements and scales; no padding."""
    payload = scales = 0
    for layer, pair in zip_owners(geometry, pairs):
        tokens = context_tokens if layer.window is None else min(context_tokens, layer.window)
        k, v = law(pair.k, geometry.native_dtype), law(pair.v, geometry.native_dtype)
        payload += tokens * layer.kv_heads * (k.payload_bytes(layer.k_dim) + v.payload_bytes(layer.v_dim))
        scales += tokens * layer.kv_heads * (k.row_scale_bytes(layer.k_dim) + v.row_scale_bytes(layer.v_dim))
    return ByteParts(payload=payload, scales=scales, padding=0)


def zip_owners(geometry: Geometry, pairs: Sequence[Pair]) -> list[tuple[Layer, Pair]]:
    """Owner layers beside their formats, each checked against its head size."""
    owners = geometry.owners
    if len(owners) != len(pairs):
        raise BadInput(f"map has {len(pairs)} layers, the model has {len(owners)} layers that own a cache")
    for layer, pair in zip(owners, pairs, strict=True):
        for name, dim in ((pair.k, layer.k_dim), (pair.v, layer.v_dim)):
            if why := law(name, geometry.native_dtype).why_illegal(dim):
                raise BadInput(f"layer {layer.index}: {why}")
    return list(zip(owners, pairs, strict=True))
