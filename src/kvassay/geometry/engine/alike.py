"""Equal layers taken together, for prices that are asked often: a model of a hundred layers has two or three kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from kvassay.geometry.price import allocated_row_bytes, zip_owners
from kvassay.geometry.storage import PLAIN_STORAGE, Storage, indexer_scale_bytes
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry, Layer


def alike_owners(geometry: Geometry, pairs: Sequence[Pair]) -> Counter[tuple[Layer, Pair]]:
    """Owner layers counted by all that their bytes depend on; `pairs` in their order."""
    return Counter((layer.model_copy(update={"index": 0, "module": ""}), pair) for layer, pair in zip_owners(geometry, pairs))


def row_bytes(layer: Layer, pair: Pair, native_dtype: str, storage: Storage) -> int:
    """Bytes of one row as allocated, with the indexer's key beside it."""
    return allocated_row_bytes(layer, pair, native_dtype, storage) + layer.indexer_dim + indexer_scale_bytes(layer)


def bytes_of_tokens(geometry: Geometry, pairs: Sequence[Pair], storage: Storage = PLAIN_STORAGE) -> Callable[[int], int]:
    """`total_bytes` as a function of the context. It never falls."""
    per_row: Counter[Layer] = Counter()
    for (layer, pair), many in alike_owners(geometry, pairs).items():
        # What decides how many rows a layer has, and nothing else.
        shapeless = layer.model_copy(update={"kind": "full", "kv_heads": 0, "k_dim": 0, "v_dim": 0, "indexer_dim": 0, "states": ()})
        per_row[shapeless] += many * row_bytes(layer, pair, geometry.native_dtype, storage)
    fixed = state_bytes(geometry)
    return lambda tokens: fixed + sum(storage.allocated_rows(layer, tokens) * row for layer, row in per_row.items())


def state_bytes(geometry: Geometry) -> int:
    """Bytes of fixed states of one request."""
    return sum(state.bytes for layer in geometry.layers for state in layer.states)
