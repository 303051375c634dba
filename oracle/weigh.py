"""What lies in a cache object: every tensor once, the layer it belongs to, and the module that put it there."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

LAYER_IN_PATH = re.compile(r"(?:^|\.)(?:layers|linear_cache|rnn_state)\.(\d+)(?:\.|$)")


@dataclass(frozen=True)
class Tensor:
    """One tensor of the cache. path: attributes, keys and indices from the cache object on.

    layer: index of its layer, None where the cache is not kept by layers. cross: whether it holds the encoder's rows.
    kept_alive_bytes: of the memory behind it, more than its own where the library keeps a slice of something longer.
    """

    path: str
    layer: int | None
    cross: bool
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    kept_alive_bytes: int


def weigh(cache: Any) -> tuple[Tensor, ...]:
    """Every tensor in `cache`, each place in memory once. Numbers that a layer keeps about itself are no cache and not counted."""
    seen: dict[int, Tensor] = {}
    for path, tensor in _tensors(cache):
        if tensor.numel() and tensor.dim():
            found = LAYER_IN_PATH.search(path)
            seen.setdefault(
                tensor.data_ptr(),
                Tensor(
                    path=path,
                    layer=int(found.group(1)) if found else None,
                    cross="cross_attention_cache" in path,
                    shape=tuple(tensor.shape),
                    dtype=str(tensor.dtype).removeprefix("torch."),
                    bytes=tensor.numel() * tensor.element_size(),
                    kept_alive_bytes=tensor.untyped_storage().nbytes(),
                ),
            )
    return tuple(seen.values())


def _tensors(cache: Any) -> Iterator[tuple[str, Any]]:
    import torch

    return ((path, thing) for path, thing in _walk(cache, "", set()) if isinstance(thing, torch.Tensor))


def _walk(thing: Any, path: str, visited: set[int]) -> Iterator[tuple[str, Any]]:
    if id(thing) in visited or isinstance(thing, (str, bytes, int, float, bool, type(None))):
        return
    visited.add(id(thing))
    yield path, thing
    for name, inner in _inside(thing):
        yield from _walk(inner, f"{path}.{name}" if path else name, visited)


def _inside(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, dict):
        yield from ((str(key), value) for key, value in thing.items())
    elif isinstance(thing, (list, tuple)):
        yield from ((str(index), value) for index, value in enumerate(thing))
    elif type(thing).__module__.startswith("transformers") and not hasattr(thing, "forward") and not hasattr(thing, "to_json_string"):
        yield from vars(thing).items()


@contextmanager
def watching(model: Any) -> Iterator[Callable[[Any], dict[str, list[str]]]]:
    """While it runs, note which module of `model` updates which layer of a cache.

    Yields a function from a cache to {path of a layer and its method: names of the innermost module that called, several where shared}.
    """
    from transformers import cache_utils

    names: dict[int, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(id(module), []).append(name)
    writers: dict[tuple[int, str], list[str]] = {}
    alive: list[Any] = []  # so that no layer takes the id of another
    classes = _with_subclasses(cache_utils.CacheLayerMixin) | _with_subclasses(cache_utils.LinearAttentionCacheLayerMixin)
    originals = [(each, name, each.__dict__[name]) for each in classes for name in list(vars(each)) if name.startswith("update")]

    def noting(name: str, original: Any) -> Any:
        def update(self: Any, *arguments: Any, **named: Any) -> Any:
            alive.append(self)
            writers.setdefault((id(self), name), _calling_module(names))
            return original(self, *arguments, **named)

        return update

    def report(cache: Any) -> dict[str, list[str]]:
        layers = {id(thing): path for path, thing in _walk(cache, "", set())}
        return {f"{layers[layer]}.{name}": modules for (layer, name), modules in writers.items() if layer in layers}

    for each, name, original in originals:
        setattr(each, name, noting(name, original))
    try:
        yield report
    finally:
        for each, name, original in originals:
            setattr(each, name, original)


def _with_subclasses(base: Any) -> set[Any]:
    return {base}.union(*(_with_subclasses(each) for each in base.__subclasses__()))


def _calling_module(names: dict[int, list[str]]) -> list[str]:
    frame = sys._getframe(2)
    while frame is not None:
        if found := names.get(id(frame.f_locals.get("self"))):
            return found
        frame = frame.f_back
    return []
