"""How many requests fit beside the weights, natively and in each uniform format, and how long one may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvassay.errors import BadInput
from kvassay.formats import FORMATS, NATIVE, law
from kvassay.geometry.configuration.keys import MOST_TOKENS
from kvassay.geometry.engine.alike import bytes_of_tokens
from kvassay.geometry.price import request_parts
from kvassay.geometry.storage import PLAIN_STORAGE, Storage
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry


@dataclass(frozen=True)
class FormatCapacity:
    """One uniform format. requests: whole requests of the asked context that fit.

    longest_context_tokens: tokens of the longest single request that fits, at most the model's own longest context.
    """

    format: str
    bytes_per_request: int
    requests: int
    longest_context_tokens: int


@dataclass(frozen=True)
class Capacity:
    """What a memory holds beside the weights: native first, then the uniform formats."""

    memory_bytes: int
    weights_bytes: int
    context_tokens: int
    formats: tuple[FormatCapacity, ...]

    @property
    def free_bytes(self) -> int:
        """What the weights leave."""
        return self.memory_bytes - self.weights_bytes

    @property
    def longest_context_tokens(self) -> int:
        """Of one native request."""
        return self.formats[0].longest_context_tokens

    @property
    def requests(self) -> dict[str, int]:
        """Whole requests of `context_tokens` tokens by format."""
        return {each.format: each.requests for each in self.formats}


def capacity(
    geometry: Geometry,
    context_tokens: int,
    memory_bytes: int,
    weights_bytes: int,
    storage: Storage = PLAIN_STORAGE,
    formats: Sequence[str] = tuple(FORMATS),
) -> Capacity:
    """What fits into `memory_bytes` − `weights_bytes`, natively and in each of `formats` that is legal for K and V of every owner.

    For tensor parallelism give the geometry and the bytes of one rank. Raises BadInput when the weights leave nothing, or a request
    holds nothing.
    """
    free = memory_bytes - weights_bytes
    if memory_bytes < 1:
        raise BadInput("--memory: must be more than 0 bytes")
    if free <= 0:
        raise BadInput(f"--weights: {weights_bytes:,} bytes of weights leave nothing of {memory_bytes:,} bytes (--memory) for a cache")
    names = [NATIVE, *(name for name in formats if geometry.owners and name != NATIVE and _is_legal(geometry, name))]
    each = tuple(_capacity(geometry, name, context_tokens, free, storage) for name in names)
    return Capacity(memory_bytes, weights_bytes, context_tokens, each)


def longest_context(geometry: Geometry, pairs: Sequence[Pair], free_bytes: int, storage: Storage = PLAIN_STORAGE) -> int:
    """Tokens of the longest request of at most `free_bytes`, 0 when none fits.

    At most the model's own longest context, or 2^40 for a model that names none.
    """
    total = bytes_of_tokens(geometry, pairs, storage)
    most = geometry.max_position_embeddings or MOST_TOKENS
    if total(most) <= free_bytes:
        return most
    fits, too_long = 0, most
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        fits, too_long = (middle, too_long) if total(middle) <= free_bytes else (fits, middle)
    return fits


def _capacity(geometry: Geometry, name: str, context_tokens: int, free_bytes: int, storage: Storage) -> FormatCapacity:
    pairs = (Pair(k=name, v=name),) * len(geometry.owners)
    parts = request_parts(geometry, pairs, context_tokens, storage)
    held = parts.payload + parts.scales + parts.padding
    if not held:
        raise BadInput(f"--memory: {geometry.model_type} holds no cache of {context_tokens:,} tokens, so no memory bounds its requests")
    return FormatCapacity(name, held, free_bytes // held, longest_context(geometry, pairs, free_bytes, storage))


def _is_legal(geometry: Geometry, name: str) -> bool:
    its = law(name, geometry.native_dtype)
    return all(not its.why_illegal(dim) for layer in geometry.owners for dim in (layer.k_dim, layer.v_dim) if dim)
