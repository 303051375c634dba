"""Where a cache of transformers differs from the price, and by how many bytes: policies of that library, not of the models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvassay.geometry.price import NATIVE_PAIR, layer_bytes_per_token
from kvassay.geometry.storage import PLAIN_STORAGE, indexer_scale_bytes
from kvassay.records.geometry import Geometry

KERNELS = (
    "conv_kernel",
    "mamba_d_conv",
    "linear_conv_kernel_dim",
    "short_conv_kernel_size",
    "conv_L_cache",
    "conv1d_width",
    "conv_kernel_size",
)
NATIVE_BYTES = 2


def adjustments(geometry: Geometry, config: Mapping[str, Any], tokens: int) -> Iterator[tuple[str, int]]:
    """Named differences, held less priced, of one request of `tokens` tokens."""
    yield "a ring keeps one token less than its window", _rings(geometry, tokens)
    yield "a convolution keeps `kernel` columns, engines kernel - 1", _columns(geometry, _kernel(config))
    yield "KDA convolutions in the model's dtype", _delta_convolutions(geometry, _kernel(config))
    yield "GPT-Neo drops nothing from its local layers", _undropped(geometry, tokens) if geometry.model_type == "gpt_neo" else 0
    yield "a compressor's buffers hold only the window that is open", -_unfilled_buffers(geometry, tokens)
    yield "indexer keys in the model's dtype, engines FP8 and a scale", _indexers(geometry, tokens)


def _rings(geometry: Geometry, tokens: int) -> int:
    if geometry.model_type == "gpt_neo":
        return 0
    windowed = [layer for layer in geometry.owners if layer.window is not None and tokens >= layer.window]
    return -sum(layer_bytes_per_token(layer, NATIVE_PAIR, geometry.native_dtype) for layer in windowed)


def _undropped(geometry: Geometry, tokens: int) -> int:
    windowed = [layer for layer in geometry.owners if layer.window is not None]
    return sum(
        (tokens - PLAIN_STORAGE.rows(layer, tokens)) * layer_bytes_per_token(layer, NATIVE_PAIR, geometry.native_dtype)
        for layer in windowed
    )


def _unfilled_buffers(geometry: Geometry, tokens: int) -> int:
    """K and gate rows that a buffer has room for and does not hold; an overlap is there once the first window has closed."""
    missing = 0
    for layer in geometry.owners:
        ratio, width = layer.tokens_per_entry, layer.k_dim + layer.indexer_dim
        if layer.states and layer.states[0].name == "compressor":
            rows = ratio - 1 - tokens % ratio
            overlapping = layer.indexer_dim > 0
            missing += 2 * width * NATIVE_BYTES * (rows * 2 + (ratio if tokens < ratio else 0) if overlapping else rows)
    return missing


def _columns(geometry: Geometry, kernel: int) -> int:
    convolutions = [state for layer in geometry.layers for state in layer.states if state.name.startswith("conv") and kernel > 1]
    return sum(state.bytes // (kernel - 1) for state in convolutions)


def _delta_convolutions(geometry: Geometry, kernel: int) -> int:
    convolutions = [state for layer in geometry.layers for state in layer.states if state.name == "conv" and state.dtype == "float32"]
    return -sum(kernel * state.bytes // (kernel - 1) // 2 for state in convolutions if kernel > 1)


def _indexers(geometry: Geometry, tokens: int) -> int:
    return sum(
        PLAIN_STORAGE.rows(layer, tokens) * (layer.indexer_dim * (NATIVE_BYTES - 1) - indexer_scale_bytes(layer))
        for layer in geometry.owners
        if layer.indexer_dim
    )


def _kernel(config: Mapping[str, Any]) -> int:
    for holder in (config, *(value for value in config.values() if isinstance(value, dict))):
        for name in KERNELS:
            if isinstance(holder.get(name), int):
                return int(holder[name])
    return 0
