"""Facts that single GGUF architectures write in a way of their own: latents, indexers, shared caches, heads of windowed layers."""

from __future__ import annotations

from collections.abc import Callable

from kvassay.geometry.configuration.keys import MOST_HEADS, MOST_LAYERS, MOST_TOKENS, MOST_WIDTH, shown
from kvassay.geometry.gguf.architectures import EXPANDED, GLM_SHARED_FROM_CONTEXT, INDEXED, LATENT, ONE_KV_HEAD_PER_HEAD
from kvassay.geometry.gguf.kinds import FULL, RATIOS, per_layer
from kvassay.geometry.gguf.translation import HEADS, K_WIDTH, KV_HEADS, V_WIDTH, Translation

RANK, ROPE, TYPES, SHARED = "attention.kv_lora_rank", "rope.dimension_count", "attention.indexer.types", "attention.shared_kv_layers"
SIGMOID = 2  # llama.cpp's number for DeepSeek V3's gate, by which its GGUF differs from V2's.


def own_rules(made: Translation) -> None:
    """Carry over what only this architecture says. Raises BadInput naming the GGUF key."""
    if made.architecture in LATENT:
        _latent(made)
    if made.architecture in INDEXED or made.architecture == "deepseek4":
        _indexer(made)
    if made.architecture in ("gemma3n", "gemma4"):
        _shared_caches(made)
    if made.architecture in ONE_KV_HEAD_PER_HEAD and made.values.get("num_key_value_heads") != made.values.get("num_attention_heads"):
        kv_heads, heads = (shown(made.values.get(key)) for key in ("num_key_value_heads", "num_attention_heads"))
        raise made.raw.refusal(KV_HEADS, f"{kv_heads}, but {made.architecture} has as many KV heads as heads, {heads}")
    if rule := SINGLE.get(made.architecture):
        rule(made)
    _same_in_windows(made)


def _latent(made: Translation) -> None:
    """Widths of MLA. With `key_length_mla` the plain lengths are the latent's; older files have the heads' own in their place."""
    raw = made.raw
    rank, rope = raw.whole(RANK, MOST_WIDTH), raw.whole(ROPE, MOST_HEADS)
    split = raw.has(f"{K_WIDTH}_mla")
    k_name, v_name = (f"{name}_mla" if split else name for name in (K_WIDTH, V_WIDTH))
    k_width = raw.whole(k_name, MOST_HEADS)
    v_width = raw.whole(v_name, MOST_HEADS) if split or raw.has(V_WIDTH) else made.values.get("v_head_dim")
    if k_width <= rope:
        raise raw.refusal(k_name, f"{k_width} leaves nothing beside the {rope} rotary elements of {raw.name(ROPE)}")
    if split and raw.maybe(K_WIDTH, MOST_WIDTH) not in (None, rank + rope):
        raise raw.refusal(K_WIDTH, f"{raw.values[K_WIDTH]} contradicts {raw.name(RANK)} {rank} + {raw.name(ROPE)} {rope}")
    made.put("kv_lora_rank", rank, RANK)
    made.put("qk_rope_head_dim", rope, ROPE)
    made.put("qk_nope_head_dim", k_width - rope, k_name)
    made.put("v_head_dim", v_width, v_name)
    made.values.pop("head_dim", None)
    # A file that keeps the latent counts it as one KV head, and zero heads mark linear layers; the model has all of them.
    made.values["num_key_value_heads"] = made.values.get("num_attention_heads")
    if made.architecture in EXPANDED or not split:
        raw.note(f"{raw.name(RANK)} {rank}: llama.cpp stores this file's heads expanded, not the latent")
    if made.architecture == "deepseek2" and raw.values.get("expert_gating_func") == SIGMOID:
        made.values["model_type"] = "deepseek_v3"


def _indexer(made: Translation) -> None:
    raw = made.raw
    for part, key in (("key_length", "index_head_dim"), ("top_k", "index_topk")):
        name = f"attention.indexer.{part}"
        made.put(key, raw.whole(name), name)
    if made.architecture == "deepseek4":
        made.used.add(RATIOS)
    elif raw.has(TYPES):
        owners = per_layer(raw, TYPES, made.layers, most=1)
        made.put("indexer_types", ["full" if own else "shared" for own in owners], TYPES)
    elif made.architecture == "glm-dsa" and (raw.maybe("context_length", MOST_TOKENS) or 0) >= GLM_SHARED_FROM_CONTEXT:
        made.values["indexer_types"] = ["full" if index < 2 or index % 4 == 2 else "shared" for index in range(made.layers)]
    else:
        made.values["indexer_types"] = ["full"] * made.layers


def _shared_caches(made: Translation) -> None:
    if made.raw.has(SHARED):
        made.put("num_kv_shared_layers", made.raw.whole(SHARED, MOST_LAYERS, least=0), SHARED)
    elif made.architecture == "gemma3n":
        # `src/models/gemma3n.cpp`: the first 20 layers own a cache, and no others.
        made.values["num_kv_shared_layers"] = max(made.layers - 20, 0)
    else:
        made.values["num_kv_shared_layers"] = 0


def _gemma4(made: Translation) -> None:
    """Transformers' head_dim is that of the windowed layers, GGUF's key_length that of the full ones. Values are as wide as keys."""
    raw, far, near = made.raw, made.values.get("head_dim"), made.raw.whole(f"{K_WIDTH}_swa", MOST_HEADS)
    for name, width in ((V_WIDTH, far), (f"{V_WIDTH}_swa", near)):
        if raw.maybe(name, MOST_HEADS) not in (None, width):
            raise raw.refusal(name, f"{raw.values[name]}, but Gemma 4 has values as wide as keys, {width}")
    made.put("global_head_dim", far, K_WIDTH)
    made.put("head_dim", near, f"{K_WIDTH}_swa")
    made.used.add(f"{V_WIDTH}_swa")
    made.values.pop("v_head_dim", None)


def _mimo(made: Translation) -> None:
    """Full and windowed layers each have one number of KV heads."""
    counts, kinds = per_layer(made.raw, KV_HEADS, made.layers), made.values["layer_types"]
    far, near = ({count for count, kind in zip(counts, kinds, strict=True) if (kind == FULL) is full} for full in (True, False))
    if len(far) > 1 or len(near) > 1:
        raise made.raw.refusal(KV_HEADS, "MiMo has one number for its full layers and one for its windowed ones, not several")
    made.put("swa_num_key_value_heads", max(near or far), KV_HEADS)
    made.put("num_key_value_heads", max(far or near), KV_HEADS)


def _starcoder(made: Translation) -> None:
    kv_heads, heads = made.values.get("num_key_value_heads"), made.values.get("num_attention_heads")
    if kv_heads not in (1, heads):
        raise made.raw.refusal(KV_HEADS, f"{shown(kv_heads)}, but StarCoder has 1 or as many as heads, {shown(heads)}")
    made.put("multi_query", kv_heads == 1, KV_HEADS)


def _falcon(made: Translation) -> None:
    """Only with this switch does transformers take the number of KV heads at its word."""
    made.values["new_decoder_architecture"] = True


def _cohere2(made: Translation) -> None:
    """Transformers takes hidden / heads whatever else is written, llama.cpp the length that is written."""
    width, heads, hidden = (
        made.values.get("head_dim"),
        made.values.get("num_attention_heads"),
        made.raw.maybe("embedding_length", MOST_WIDTH),
    )
    if isinstance(width, int) and isinstance(heads, int) and width * heads != hidden:
        raise made.raw.refusal(K_WIDTH, f"{width}, but Cohere 2 has heads of {made.raw.name('embedding_length')} / {made.raw.name(HEADS)}")


def _dbrx(made: Translation) -> None:
    made.put("attn_config", {"kv_n_heads": made.values.pop("num_key_value_heads", None)}, KV_HEADS)


def _deci(made: Translation) -> None:
    """Heads per layer as Nemotron NAS writes them; a layer without KV heads has no attention, or a linear one that keeps nothing."""
    counts = per_layer(made.raw, KV_HEADS, made.layers)
    heads = max(per_layer(made.raw, HEADS, made.layers))
    if uneven := next((count for count in counts if count and heads % count), None):
        raise made.raw.refusal(KV_HEADS, f"{uneven} does not divide {made.raw.name(HEADS)} {heads}")
    made.put("block_configs", [{"attention": {"n_heads_in_group": heads // n} if n else {"no_op": True}} for n in counts], KV_HEADS)
    made.values["num_attention_heads"] = heads


def _t5(made: Translation) -> None:
    blocks = "decoder_block_count"
    made.put("num_decoder_layers", made.raw.maybe(blocks, MOST_LAYERS) or made.layers, blocks)
    made.values["is_encoder_decoder"] = True


def _same_in_windows(made: Translation) -> None:
    """Widths of windowed layers that are those of the others need no word."""
    far = made.values.get("head_dim")
    for name, width in ((f"{K_WIDTH}_swa", far), (f"{V_WIDTH}_swa", made.values.get("v_head_dim", far))):
        if made.raw.has(name) and made.raw.values[name] == width:
            made.used.add(name)


SINGLE: dict[str, Callable[[Translation], None]] = {
    "gemma4": _gemma4,
    "mimo2": _mimo,
    "starcoder": _starcoder,
    "falcon": _falcon,
    "cohere2": _cohere2,
    "dbrx": _dbrx,
    "deci": _deci,
    "t5": _t5,
}
