"""Heads and widths of K and V, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from kvassay.geometry.configuration.keys import MOST_HEADS, MOST_LAYERS, MOST_WIDTH, Keys, shown
from kvassay.geometry.layouts.kinds import Kind


@dataclass(frozen=True)
class Shape:
    """K and V of one token in one layer: heads, and elements per head."""

    kv_heads: int
    k_dim: int
    v_dim: int


# Shape of one layer, by its index and kind.
ShapeRule = Callable[[Keys, int, Kind], Shape]


def grouped(keys: Keys, index: int, kind: Kind) -> Shape:
    """Multi-head, grouped and multi-query attention; V as wide as K unless `v_head_dim` says otherwise."""
    head_dim = _head_dim(keys)
    # Small files of DeepSeek-VL2 and DeepSeek-OCR switch the latent off and say 0 for its widths.
    apart = keys.owns("v_head_dim") and not (keys.values.get("use_mla") is False and keys.get("v_head_dim") == 0)
    return Shape(_kv_heads(keys, index), head_dim, keys.whole("v_head_dim", MOST_HEADS) if apart else head_dim)


def as_wide_as_hidden(keys: Keys, index: int, kind: Kind) -> Shape:
    """As `grouped`, where the model takes hidden / heads whatever head_dim says."""
    return grouped(keys.with_values({"head_dim": None}), index, kind)


def sliding_apart(keys: Keys, index: int, kind: Kind) -> Shape:
    """As `grouped`; windowed layers have heads and widths of their own (`swa_…`) where the file says so."""
    shape = grouped(keys, index, kind)
    if kind not in ("sliding", "hybrid_sliding"):
        return shape
    k_dim = keys.maybe("swa_head_dim", MOST_HEADS) or shape.k_dim
    v_dim = keys.maybe("swa_v_head_dim", MOST_HEADS) or (shape.v_dim if shape.v_dim != shape.k_dim else k_dim)
    return Shape(keys.maybe("swa_num_key_value_heads", MOST_HEADS) or shape.kv_heads, k_dim, v_dim)


def twice_the_heads(keys: Keys, index: int, kind: Kind) -> Shape:
    """As `sliding_apart`, where windowed layers have twice the KV heads unless the file says how many (MiMo V2)."""
    shape = sliding_apart(keys, index, kind)
    return replace(shape, kv_heads=2 * shape.kv_heads) if kind == "sliding" and not keys.has("swa_num_key_value_heads") else shape


def global_apart(keys: Keys, index: int, kind: Kind) -> Shape:
    """As `grouped`; full layers are wider (`global_head_dim`), and `num_global_key_value_heads` counts only with `attention_k_eq_v`.

    That switch shares the projection; K and V still differ after norm and rotation, so both are stored (Gemma 4).
    """
    shape = grouped(keys, index, kind)
    if kind != "full" or keys.has("per_layer_config"):
        return shape
    width = keys.maybe("global_head_dim", MOST_HEADS) or shape.k_dim
    # Classes of the same kin that do not have the switch take the heads whenever they are written.
    gated = (keys.own is None or "attention_k_eq_v" in keys.own) and not keys.flag("attention_k_eq_v")
    heads = keys.maybe("num_global_key_value_heads", MOST_HEADS)
    return Shape(heads if heads and not gated else shape.kv_heads, width, width)


def multi_query(keys: Keys, index: int, kind: Kind) -> Shape:
    """One KV head with the switch `multi_query`, else as many as query heads (StarCoder; GPT-2 files of SantaCoder say it in words)."""
    heads = keys.whole("num_attention_heads", MOST_HEADS)
    shared = keys.flag("multi_query") or (keys.has("attention_head_type") and keys.text("attention_head_type") == "multiquery")
    if shared and keys.has("num_key_value_heads") and (written := keys.whole("num_key_value_heads", MOST_HEADS)) != 1:
        raise keys.refusal("multi_query", f"true contradicts {keys.name('num_key_value_heads')} {written}")
    return Shape(1 if shared else heads, *(_head_dim(keys),) * 2)


def falcon(keys: Keys, index: int, kind: Kind) -> Shape:
    """num_kv_heads counts only with `new_decoder_architecture`; else one head with `multi_query`, else as many as query heads."""
    if keys.flag("new_decoder_architecture"):
        return grouped(keys.with_values({"multi_query": None}), index, kind)
    return multi_query(keys.with_values({"num_key_value_heads": None}), index, kind)


def multi_head(keys: Keys, index: int, kind: Kind) -> Shape:
    """As many KV heads as query heads, whatever else stands in the file."""
    return Shape(keys.whole("num_attention_heads", MOST_HEADS), *(_head_dim(keys),) * 2)


def kv_channels(keys: Keys, index: int, kind: Kind) -> Shape:
    """KV heads and their width under names of their own (JetMoE)."""
    return Shape(keys.whole("num_key_value_heads", MOST_HEADS), *(keys.whole("kv_channels", MOST_HEADS),) * 2)


def grouped_by_switch(keys: Keys, index: int, kind: Kind) -> Shape:
    """`multi_query_group_num` KV heads with the switch `multi_query_attention`, else as many as query heads (ChatGLM)."""
    heads, width = keys.whole("num_attention_heads", MOST_HEADS), keys.whole("kv_channels", MOST_HEADS)
    return Shape(keys.whole("multi_query_group_num", MOST_HEADS) if keys.flag("multi_query_attention") else heads, width, width)


def twice_as_wide(keys: Keys, index: int, kind: Kind) -> Shape:
    """Heads over twice the hidden size: attention reads the layer's input beside the embeddings (Zamba)."""
    heads = keys.whole("num_attention_heads", MOST_HEADS)
    width = keys.maybe("head_dim", MOST_HEADS) or share_of_hidden(keys, heads, 2)
    return Shape(keys.maybe("num_key_value_heads", MOST_HEADS) or heads, width, width)


def nested_attention(keys: Keys, index: int, kind: Kind) -> Shape:
    """KV heads in `attn_config.kv_n_heads` (DBRX)."""
    inner = keys.inside("attn_config")
    heads, width = keys.whole("num_attention_heads", MOST_HEADS), _head_dim(keys)
    return Shape(inner.maybe("kv_n_heads", MOST_HEADS) or heads, width, width)


def by_blocks(keys: Keys, index: int, kind: Kind) -> Shape:
    """Heads per layer in `block_configs` (Nemotron NAS): `n_heads_in_group` query heads share one KV head; none without attention."""
    if not keys.has("block_configs"):
        return grouped(keys, index, kind)
    attention = _block_attention(keys, index)
    if not attention:
        return Shape(0, 0, 0)
    heads, group, width = keys.whole("num_attention_heads", MOST_HEADS), attention["n_heads_in_group"], _head_dim(keys)
    group = keys.checked("block_configs", group, MOST_HEADS)
    if heads % group:
        raise keys.refusal("block_configs", f"layer {index}: n_heads_in_group {group} does not divide num_attention_heads {heads}")
    return Shape(heads // group, width, width)


def _block_attention(keys: Keys, index: int) -> dict[str, object]:
    blocks = keys.listing("block_configs", keys.whole("num_hidden_layers", MOST_LAYERS))
    attention = blocks[index].get("attention") if isinstance(blocks[index], dict) else None
    if not isinstance(attention, dict):
        raise keys.refusal("block_configs", f"layer {index} does not say what its attention is")
    for switch in ("no_op", "replace_with_linear"):
        if (on := attention.get(switch)) is not None and not isinstance(on, bool):
            raise keys.refusal("block_configs", f"layer {index}: attention.{switch} must be true or false, not {shown(on)}")
        if on:
            return {}
    if "n_heads_in_group" not in attention:
        raise keys.refusal("block_configs", f"layer {index}: attention.n_heads_in_group is missing")
    return attention


def _kv_heads(keys: Keys, index: int) -> int:
    if isinstance(keys.values.get("num_key_value_heads"), list):
        # The one entry alone, for every layer comes here.
        its = keys.listing("num_key_value_heads", keys.whole("num_hidden_layers", MOST_LAYERS))[index]
        return _dividing(keys, keys.checked("num_key_value_heads", its, MOST_HEADS, least=0))
    if keys.owns("multi_query"):
        one = keys.flag("multi_query")
        if one and keys.has("num_key_value_heads") and keys.whole("num_key_value_heads", MOST_HEADS) != 1:
            raise keys.refusal("multi_query", f"true contradicts {keys.name('num_key_value_heads')} {keys.values['num_key_value_heads']}")
        if one:
            return 1
    written = keys.maybe("num_key_value_heads", MOST_HEADS)
    if written is None:
        heads = keys.whole("num_attention_heads", MOST_HEADS)
        keys.note(f"num_key_value_heads is absent: MHA assumed ({heads} KV heads)")
        return heads
    return _dividing(keys, written)


def _dividing(keys: Keys, kv_heads: int) -> int:
    """`kv_heads`, which share the query heads evenly; 0 says that a layer has none. Raises BadInput."""
    if kv_heads and keys.has("num_attention_heads") and not isinstance(keys.values["num_attention_heads"], list):
        heads = keys.whole("num_attention_heads", MOST_HEADS)
        if heads % kv_heads:
            raise keys.refusal("num_key_value_heads", f"{kv_heads} does not divide {keys.name('num_attention_heads')} {heads}")
    return kv_heads


def _head_dim(keys: Keys) -> int:
    written = keys.maybe("head_dim", MOST_HEADS)
    if written is not None:
        return written
    return share_of_hidden(keys, keys.whole("num_attention_heads", MOST_HEADS))


def share_of_hidden(keys: Keys, heads: int, times: int = 1) -> int:
    """The width of one of `heads` heads over `times` the hidden size. Raises BadInput when they do not divide it."""
    hidden = keys.whole("hidden_size", MOST_WIDTH)
    if times * hidden % heads:
        whole = f"{keys.name('hidden_size')} {hidden}" if times == 1 else f"{times} × {keys.name('hidden_size')} {hidden}"
        raise keys.refusal("head_dim", f"missing, and {whole} is not a multiple of {keys.name('num_attention_heads')} {heads}")
    return times * hidden // heads


def keys_by_layer(keys: Keys, layers: int) -> Iterator[Keys]:
    """The keys as each layer sees them: `per_layer_config` overrides what it names. Raises BadInput."""
    by_index: dict[int, Mapping[str, object]] = {}
    for name, values in keys.mapping("per_layer_config").items():
        if not (isinstance(name, str) and name.isascii() and name.isdecimal() and len(name) < 8):
            raise keys.refusal("per_layer_config", f"{shown(name)} is no layer index")
        if int(name) >= layers or int(name) in by_index:
            problem = "stands twice" if int(name) in by_index else f"is named, but there are {layers} layers"
            raise keys.refusal("per_layer_config", f"layer {int(name)} {problem}")
        if not isinstance(values, dict):
            raise keys.refusal("per_layer_config", f"layer {int(name)} must be a mapping, not {shown(values)}")
        by_index[int(name)] = {key: value for key, value in values.items() if value is not None}
    return (keys.with_values(by_index[index]) if by_index.get(index) else keys for index in range(layers))
