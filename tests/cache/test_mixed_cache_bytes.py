"""The bytes of the storage are the price, for every format and pair; and what cannot be stored is refused."""

import pytest
import torch

from kvassay.cache import MixedCache
from kvassay.errors import BadInput
from kvassay.formats import FORMATS, NATIVE
from kvassay.geometry.price import bytes_per_token, cache_bytes
from kvassay.records.frontier import Pair
from support.tiny_llama import HEAD_DIM, KV_HEADS, LAYERS, tiny_geometry, uniform

CAPACITY = 37


def new_tokens(
    tokens: int, k_dim: int = HEAD_DIM, v_dim: int = HEAD_DIM, dtype: torch.dtype = torch.bfloat16
) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(13)
    k = torch.randn(1, KV_HEADS, tokens, k_dim, generator=generator)
    return k.to(dtype), torch.randn(1, KV_HEADS, tokens, v_dim, generator=generator).to(dtype)


def real_bytes(cache: MixedCache) -> int:
    """Counted apart from the cache's own bookkeeping: the storage behind every tensor of every layer, once."""
    storages = {}
    for layer in cache.layers:
        for side in (layer.k, layer.v):
            for part in side.storage:
                storages[part.untyped_storage().data_ptr()] = part.untyped_storage().nbytes()
    return sum(storages.values())


@pytest.mark.parametrize("v", [NATIVE, *FORMATS])
@pytest.mark.parametrize("k", [NATIVE, "fp8_e4m3", "nvfp4", "int3_g32", "int6_g128"])
def test_allocated_and_held_bytes_are_the_price(k: str, v: str) -> None:
    geometry = tiny_geometry(torch.bfloat16)
    pairs = [Pair(k=k, v=v), Pair(k=v, v=k)]
    cache = MixedCache(pairs, geometry, CAPACITY, torch.bfloat16, "cpu")
    price = bytes_per_token(geometry, pairs)
    assert price == cache_bytes(geometry, pairs).growth_per_token
    assert cache.bytes_allocated == real_bytes(cache) == price * CAPACITY
    assert cache.bytes_held == cache.tokens_held == 0
    for index in range(LAYERS):
        cache.update(*new_tokens(5), index)
        cache.update(*new_tokens(1), index)
    assert cache.tokens_held == 6
    assert cache.bytes_held == 6 * price
    assert real_bytes(cache) == price * CAPACITY


def test_unequal_k_and_v_dims() -> None:
    geometry = tiny_geometry(torch.float32, k_dim=96, v_dim=64)
    pairs = uniform("int5_g32", "int3_g64")
    cache = MixedCache(pairs, geometry, CAPACITY, torch.float32)
    k, v = cache.update(*new_tokens(7, 96, 64, torch.float32), 0)
    assert (k.shape, v.shape) == ((1, KV_HEADS, 7, 96), (1, KV_HEADS, 7, 64))
    assert cache.bytes_allocated == CAPACITY * bytes_per_token(geometry, pairs)


def test_past_capacity_is_a_clear_error_and_nothing_is_lost() -> None:
    cache = MixedCache(uniform("fp8_e4m3", "int4_g64"), tiny_geometry(torch.bfloat16), 10, torch.bfloat16)
    before, _ = cache.update(*new_tokens(8), 0)
    with pytest.raises(BadInput, match=r"full: layer 0 holds 8 tokens and 3 more were asked, its capacity is 10 tokens"):
        cache.update(*new_tokens(3), 0)
    after, _ = cache.update(*new_tokens(2), 0)
    assert torch.equal(after[:, :, :8], before)
    assert cache.tokens_held == 10 == cache.get_max_length()


def test_truncate_crop_and_reset_forget_from_the_end() -> None:
    cache = MixedCache(uniform("int4_g32", "nvfp4"), tiny_geometry(torch.bfloat16), 16, torch.bfloat16)
    k, v = new_tokens(12)
    full = [cache.update(k, v, index) for index in range(LAYERS)]
    cache.truncate(9)
    cache.crop(-2)
    assert cache.tokens_held == 7
    assert cache.get_mask_sizes(3, 1) == (10, 0)
    again = [cache.update(k[:, :, 7:], v[:, :, 7:], index) for index in range(LAYERS)]
    assert all(torch.equal(old, new) for before, after in zip(full, again, strict=True) for old, new in zip(before, after, strict=True))
    cache.reset()
    assert cache.tokens_held == cache.bytes_held == 0
    for call in (lambda: cache.truncate(1), lambda: cache.crop(3), lambda: cache.reorder_cache(torch.tensor([0]))):
        with pytest.raises(BadInput):
            call()


@pytest.mark.parametrize(
    ("pairs", "geometry", "capacity", "why"),
    [
        (uniform("fp8_e4m3", "native")[:1], tiny_geometry(torch.bfloat16), 8, "map has 1 layers, the model has 2"),
        (uniform("int4_g64", "native"), tiny_geometry(torch.bfloat16, k_dim=96), 8, "group 64 does not divide head_dim 96"),
        (uniform("int7", "native"), tiny_geometry(torch.bfloat16), 8, "unknown"),
        (uniform("native", "native"), tiny_geometry(torch.bfloat16, kind="sliding"), 8, "keeps a cache of kind sliding"),
        (uniform("native", "native"), tiny_geometry(torch.bfloat16, first=3), 8, "layer 3 is number 0"),
        (uniform("native", "native"), tiny_geometry(torch.bfloat16), 0, "at least one token"),
    ],
)
def test_what_it_cannot_hold_is_refused(pairs: list[Pair], geometry: object, capacity: int, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        MixedCache(pairs, geometry, capacity, torch.bfloat16)


@pytest.mark.parametrize("shape", [(2, KV_HEADS, 1, HEAD_DIM), (1, KV_HEADS + 1, 1, HEAD_DIM), (1, KV_HEADS, 1, 64)])
def test_states_of_another_model_or_batch_are_refused(shape: tuple[int, ...]) -> None:
    cache = MixedCache(uniform("native", "native"), tiny_geometry(torch.bfloat16), 8, torch.bfloat16)
    with pytest.raises(BadInput, match="layer 1: K of shape"):
        cache.update(torch.zeros(shape), torch.zeros(shape), 1)
