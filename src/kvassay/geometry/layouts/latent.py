"""Multi-head latent attention: one latent in place of K and V, and the indexer that some models keep beside it."""

from __future__ import annotations

from typing import Literal

from kvassay.geometry.configuration.keys import MOST_HEADS, MOST_LAYERS, MOST_TOKENS, MOST_WIDTH, Keys, shown
from kvassay.geometry.layouts.attention import Shape

Latent = Literal["latent", "expanded"]


def has_latent(keys: Keys) -> bool:
    """Whether the model projects K and V from one compressed latent: it has a rank, and no `use_mla` that is false."""
    return keys.owns("kv_lora_rank") and keys.values.get("use_mla") is not False


def latent_shape(keys: Keys, storage: Latent) -> Shape:
    """What an engine stores per token: the latent with its rotary part, once; or all heads, which some engines expand it to."""
    rank, rope = keys.whole("kv_lora_rank", MOST_WIDTH), keys.whole("qk_rope_head_dim", MOST_HEADS, least=0)
    # Both widths are checked where they stand, whether this storage needs them or not.
    nope, v_dim = keys.maybe("qk_nope_head_dim", MOST_HEADS, least=0), keys.maybe("v_head_dim", MOST_HEADS)
    if storage == "latent":
        return Shape(1, rank + rope, 0)
    for key, width in (("qk_nope_head_dim", nope), ("v_head_dim", v_dim)):
        if width is None:
            raise keys.refusal(key, "missing, and an expanded latent needs it")
    return Shape(keys.whole("num_attention_heads", MOST_HEADS), (nope or 0) + rope, v_dim or 0)


def indexer_dims(keys: Keys, layers: int) -> list[int]:
    """Elements of the key that each layer's indexer stores; 0 where it reads another layer's, or there is none. Raises BadInput."""
    keys.maybe("index_topk", MOST_TOKENS)
    if keys.get("index_head_dim") is None and keys.own is not None and "indexer_head_dim" in keys.own:
        # Qwen4-Exp has an indexer only where the file sizes one.
        return [0] * layers
    width = keys.whole("index_head_dim", MOST_HEADS)
    if keys.maybe("index_kpool", MOST_TOKENS) is not None:
        # Keys are pooled on reading, so each row keeps its key, its gate and whether it counts (GLM-5.3-Flash).
        width = 2 * width + 1
    return [width if own else 0 for own in _own_indexers(keys, layers)]


def _own_indexers(keys: Keys, layers: int) -> list[bool]:
    if keys.has("indexer_types"):
        kinds = keys.listing("indexer_types", layers)
    elif keys.has("index_topk_pattern"):
        pattern = keys.get("index_topk_pattern")
        letters = list(pattern) if isinstance(pattern, str) else keys.listing("index_topk_pattern")
        if len(letters) != layers:
            raise keys.refusal("index_topk_pattern", f"must name each of the {layers} layers, it has {len(letters):,}")
        kinds = ["full" if letter == "F" else "shared" if letter == "S" else letter for letter in letters]
    else:
        period, first = keys.maybe("index_topk_freq", MOST_LAYERS) or 1, keys.maybe("index_skip_topk_offset", MOST_LAYERS, least=0)
        offset = 2 if first is None else first
        return [max(index - offset + 1, 0) % period == 0 for index in range(layers)]
    for index, kind in enumerate(kinds):
        if kind not in ("full", "shared"):
            raise keys.refusal("indexer_types", f"layer {index} is {shown(kind)}; known: full, shared")
    return [kind == "full" for kind in kinds]
