"""Price of a cache: the one place where layers and formats become bytes. The reference engine allocates by it too."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from kvassay.errors import BadInput
from kvassay.formats import NATIVE, law
from kvassay.geometry.storage import PLAIN_STORAGE, Storage, indexer_scale_bytes
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


def with_price(geometry: Geometry, pairs: Sequence[Pair], context_tokens: int, storage: Storage = PLAIN_STORAGE) -> Geometry:
    """The same layers priced with other formats (`pairs` in the order of the owners), at another context, or laid out otherwise."""
    parts = request_parts(geometry, pairs, context_tokens, storage)
    update = {
        "bytes": cache_bytes(geometry, pairs, storage),
        "context_tokens": context_tokens,
        "total_bytes": parts.payload + parts.scales + parts.padding,
        "parts": parts,
    }
    return geometry.model_copy(update=update)


def native_pairs(geometry: Geometry) -> tuple[Pair, ...]:
    """Native K and V for every owner layer."""
    return (NATIVE_PAIR,) * len(geometry.owners)


def layer_bytes_per_token(layer: Layer, pair: Pair, native_dtype: str) -> int:
    """Bytes of one row of one cache, K and V of all heads, scales included: one token, unless rows stand for several."""
    return sum(_row_parts(layer, pair, native_dtype))


def allocated_row_bytes(layer: Layer, pair: Pair, native_dtype: str, storage: Storage) -> int:
    """Bytes of one row as an engine allocates it, heads padded."""
    widths = {"k_dim": storage.allocated_width(layer.k_dim), "v_dim": storage.allocated_width(layer.v_dim)}
    return layer_bytes_per_token(layer.model_copy(update=widths), pair, native_dtype)


def allocated_growth_per_token(geometry: Geometry, pairs: Sequence[Pair], storage: Storage) -> int:
    """`growth_per_token` with heads padded as the engine pads them."""
    growth = Fraction(0)
    for layer, pair in zip_owners(geometry, pairs):
        if layer.encoder_tokens is None and (layer.window is None or storage.windows == "full"):
            growth += Fraction(allocated_row_bytes(layer, pair, geometry.native_dtype, storage), layer.tokens_per_entry)
    return ceil(growth)


def _row_parts(layer: Layer, pair: Pair, native_dtype: str) -> tuple[int, int]:
    """Bytes of elements and of scales in one row."""
    payload = scales = 0
    for name, width in ((pair.k, layer.k_dim), (pair.v, layer.v_dim)):
        if width:
            its = law(name, native_dtype)
            payload += layer.kv_heads * its.payload_bytes(width)
            scales += layer.kv_heads * its.row_scale_bytes(width)
    return payload, scales


def bytes_per_token(geometry: Geometry, pairs: Sequence[Pair]) -> int:
    """Bytes one token takes in all owner layers; `pairs` in their order. Raises BadInput when the counts differ."""
    return sum(layer_bytes_per_token(layer, pair, geometry.native_dtype) for layer, pair in zip_owners(geometry, pairs))


def effective_bits(geometry: Geometry, pairs: Sequence[Pair]) -> float:
    """Bits per cached element over all owner layers, block scales included."""
    return 8 * bytes_per_token(geometry, pairs) / cached_elements(geometry)


def cached_elements(geometry: Geometry) -> int:
    """Elements of K and V that one token adds over all owner layers."""
    return sum(layer.kv_heads * (layer.k_dim + layer.v_dim) for layer in geometry.owners)


def cache_bytes(geometry: Geometry, pairs: Sequence[Pair], storage: Storage = PLAIN_STORAGE) -> CacheBytes:
    """Growth, all-tokens, window, fixed and indexer bytes of one request with these formats, nothing padded."""
    growth = every = indexer = Fraction(0)
    window = 0
    fixed = sum(state.bytes for layer in geometry.layers for state in layer.states)
    with_own_tokens = {layer.index for layer in geometry.owners if layer.encoder_tokens is None}
    for layer, pair in zip_owners(geometry, pairs):
        row = layer_bytes_per_token(layer, pair, geometry.native_dtype)
        per_token = Fraction(row, layer.tokens_per_entry)
        if layer.encoder_tokens is not None:
            fixed += row * layer.encoder_tokens
            every += 0 if layer.index in with_own_tokens else per_token
            continue
        every += per_token
        if layer.window is None or storage.windows == "full":
            growth += per_token
        else:
            window += row * layer.window
        indexer += Fraction(_indexer_row_bytes(layer), layer.tokens_per_entry)
    return CacheBytes(
        growth_per_token=ceil(growth),
        all_tokens_per_token=ceil(every),
        window_bytes=window,
        fixed_per_request=fixed,
        indexer_per_token=ceil(indexer),
    )


def request_parts(geometry: Geometry, pairs: Sequence[Pair], context_tokens: int, storage: Storage = PLAIN_STORAGE) -> ByteParts:
    """Bytes of one request of `context_tokens` tokens: elements and fixed states, scales, and what heads and blocks are padded by."""
    payload = sum(state.bytes for layer in geometry.layers for state in layer.states)
    scales = padding = 0
    for layer, pair in zip_owners(geometry, pairs):
        rows, allocated_rows = storage.rows(layer, context_tokens), storage.allocated_rows(layer, context_tokens)
        elements, its_scales = _row_parts(layer, pair, geometry.native_dtype)
        payload += rows * (elements + layer.indexer_dim)
        scales += rows * (its_scales + indexer_scale_bytes(layer))
        allocated = allocated_row_bytes(layer, pair, geometry.native_dtype, storage) + _indexer_row_bytes(layer)
        padding += allocated_rows * allocated - rows * (elements + its_scales + _indexer_row_bytes(layer))
    return ByteParts(payload=payload, scales=scales, padding=padding)


def _indexer_row_bytes(layer: Layer) -> int:
    return layer.indexer_dim + indexer_scale_bytes(layer)


def zip_owners(geometry: Geometry, pairs: Sequence[Pair]) -> list[tuple[Layer, Pair]]:
    """Owner layers beside their formats, each checked against its head size."""
    owners = geometry.owners
    if len(owners) != len(pairs):
        raise BadInput(f"map has {len(pairs)} layers, the model has {len(owners)} layers that own a cache")
    for layer, pair in zip(owners, pairs, strict=True):
        for name, dim in ((pair.k, layer.k_dim), (pair.v, layer.v_dim)):
            its = law(name, geometry.native_dtype)
            if dim and (why := its.why_illegal(dim)):
                raise BadInput(f"layer {layer.index}: {why}")
    return list(zip(owners, pairs, strict=True))
