"""How an engine lays a cache out, where the model leaves it open: what of it is payload, and what it pads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kvassay.records.geometry import Layer

# One FP32 scale for every 128 FP8 elements of an indexer's key (DeepSeek V3.2 reference code, vLLM, SGLang).
INDEXER_GROUP, INDEXER_SCALE_BYTES = 128, 4


@dataclass(frozen=True)
class Storage:
    """windows: whether windowed layers drop what they no longer read. head_align: elements to whose multiple a head is padded.

    block_tokens: rows to whose multiple each layer's cache is padded.
    """

    windows: Literal["window", "full"] = "window"
    head_align: int = 1
    block_tokens: int = 1

    def rows(self, layer: Layer, tokens: int) -> int:
        """Rows that one request of `tokens` tokens holds in `layer`."""
        if layer.encoder_tokens is not None:
            return layer.encoder_tokens
        if layer.window is not None and self.windows == "window":
            return min(tokens, layer.window)
        return tokens // layer.tokens_per_entry

    def allocated_rows(self, layer: Layer, tokens: int) -> int:
        """`rows` in whole blocks."""
        return rounded_up(self.rows(layer, tokens), self.block_tokens)

    def allocated_width(self, elements: int) -> int:
        """Elements of a head as the engine pads them."""
        return rounded_up(elements, self.head_align)


PLAIN_STORAGE = Storage()


def rounded_up(count: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is at least `count`."""
    return -(-count // multiple) * multiple


def indexer_scale_bytes(layer: Layer) -> int:
    """Bytes of scales beside one indexer key of `layer`; its elements take one byte each."""
    return INDEXER_SCALE_BYTES * -(-layer.indexer_dim // INDEXER_GROUP)
