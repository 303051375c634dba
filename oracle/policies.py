"""Where a cache of transformers differs from the price, layer by layer and to the byte: policies of that library, not of the models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kvassay.geometry.price import NATIVE_PAIR, layer_bytes_per_token
from kvassay.geometry.storage import PLAIN_STORAGE, indexer_scale_bytes
from kvassay.records.geometry import STATE_BYTES, Geometry, Layer

KERNELS = (
    "conv_kernel",
    "mamba_d_conv",
    "linear_conv_kernel_dim",
    "short_conv_kernel_size",
    "conv_L_cache",
    "conv_kernel_size",
)


# Rows that a model puts in front of every request's tokens: the key that says how many.
PROMPTS = {"cpmant": "prompt_length", "musicgen_melody": "chroma_length"}
NEVER_DROP = ("gpt_neo",)


@dataclass(frozen=True)
class Priced:
    """A priced geometry at the tokens in the cache. config, language: of the whole model and of its language model, defaults included."""

    geometry: Geometry
    tokens: int
    config: Mapping[str, Any]
    language: Mapping[str, Any]

    @property
    def language_type(self) -> str:
        return str(self.language["model_type"])

    @property
    def kernel(self) -> int:
        """Columns that a convolution of the language model reads, 0 without one."""
        holders = (self.language, self.language.get("linear_attn_config") or {})
        return next((holder[name] for holder in holders for name in KERNELS if isinstance(holder.get(name), int)), 0)

    @property
    def element_bytes(self) -> int:
        return STATE_BYTES[self.geometry.native_dtype]

    def row_bytes(self, layer: Layer) -> int:
        return layer_bytes_per_token(layer, NATIVE_PAIR, self.geometry.native_dtype) if layer.owner else 0

    def rows(self, layer: Layer) -> int:
        return PLAIN_STORAGE.rows(layer, self.tokens) if layer.owner else 0


def ring(priced: Priced, layer: Layer) -> int:
    """`DynamicSlidingWindowLayer` slices to window - 1 tokens: the next one completes the window."""
    full = layer.owner and layer.window is not None and priced.tokens >= layer.window
    return -priced.row_bytes(layer) if full and priced.language_type not in NEVER_DROP else 0


def never_dropped(priced: Priced, layer: Layer) -> int:
    """The cache has no window where the class names it otherwise than `sliding_window`."""
    if priced.language_type not in NEVER_DROP or layer.window is None:
        return 0
    return (priced.tokens - priced.rows(layer)) * priced.row_bytes(layer)


def columns(priced: Priced, layer: Layer) -> int:
    """`LinearAttentionLayer` keeps `kernel` columns of a convolution."""
    convolutions = [state for state in layer.states if state.name.startswith("conv") and priced.kernel > 1]
    return sum(state.bytes // (priced.kernel - 1) for state in convolutions)


def convolutions_in_model_dtype(priced: Priced, layer: Layer) -> int:
    """Convolutions of Kimi Delta Attention are priced in FP32."""
    convolutions = [state for state in layer.states if state.name == "conv" and state.dtype == "float32" and priced.kernel > 1]
    return -sum(priced.kernel * state.bytes // (priced.kernel - 1) // 2 for state in convolutions)


def indexer_keys(priced: Priced, layer: Layer) -> int:
    """Keys of an indexer are priced as FP8 and a scale, as engines keep them."""
    width = layer.indexer_dim
    return priced.rows(layer) * (width * (priced.element_bytes - 1) - indexer_scale_bytes(layer)) if width else 0


def open_windows(priced: Priced, layer: Layer) -> int:
    """A compressor's buffers hold the rows of the open window, not all that it has room for; an overlap is there once one has closed."""
    if not any(state.name == "compressor" for state in layer.states):
        return 0
    ratio, width = layer.tokens_per_entry, layer.k_dim + layer.indexer_dim
    rows = ratio - 1 - priced.tokens % ratio
    if layer.indexer_dim:
        rows = rows * 2 + (ratio if priced.tokens < ratio else 0)
    return -2 * width * priced.element_bytes * rows


def k_beside_itself(priced: Priced, layer: Layer) -> int:
    """A layer of DeepSeek V4 that compresses nothing gives its one vector to a plain ring, as K and as V."""
    alone = sum(each.index == layer.index for each in priced.geometry.layers) == 1
    if priced.language_type != "deepseek_v4" or not alone:
        return 0
    return (priced.rows(layer) * priced.row_bytes(layer)) + ring(priced, layer)


def prompt(priced: Priced, layer: Layer) -> int:
    """Rows in front of the tokens of a request are not counted among them."""
    key = PROMPTS.get(priced.geometry.model_type)
    return priced.config[key] * priced.row_bytes(layer) if key and layer.encoder_tokens is None else 0


POLICIES: dict[str, Callable[[Priced, Layer], int]] = {
    "a ring keeps one token less than its window": ring,
    "GPT-Neo drops nothing from its local layers": never_dropped,
    "a convolution keeps `kernel` columns, engines kernel - 1": columns,
    "KDA convolutions in the model's dtype": convolutions_in_model_dtype,
    "indexer keys in the model's dtype, engines FP8 and a scale": indexer_keys,
    "a compressor's buffers hold only the window that is open": open_windows,
    "layers of DeepSeek V4 that only keep a window keep it as K and as V": k_beside_itself,
    "a prompt of the model's own stands in front of the tokens": prompt,
}
POSITIONS = "positions of all tokens stand beside the cache"
POSITION_BYTES = 3 * 8  # on three axes
KEEPS_POSITIONS = ("qwen4_exp_text",)


def adjustments(priced: Priced) -> list[tuple[str, int | None, int]]:
    """Name, index of the layer (None: of no layer), and bytes held beyond the price, of every policy that says something here."""
    found: list[tuple[str, int | None, int]] = [
        (name, layer.index, policy(priced, layer)) for name, policy in POLICIES.items() for layer in priced.geometry.layers
    ]
    if priced.language_type in KEEPS_POSITIONS:
        found.append((POSITIONS, None, POSITION_BYTES * priced.tokens))
    return [each for each in found if each[2]]
