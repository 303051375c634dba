"""Plain dense attention: every layer keeps K and V of every token (multi-head, grouped and multi-query)."""

from __future__ import annotations

from kvassay.formats import NATIVE_DTYPES
from kvassay.geometry.keys import Keys, shown
from kvassay.geometry.price import priced
from kvassay.geometry.unread import refuse_unread
from kvassay.records.geometry import Geometry, Layer

MOST_LAYERS, MOST_HEADS, MOST_WIDTH, MOST_TOKENS = 4096, 65_536, 2**24, 2**40
CONTEXT_WITHOUT_LIMIT_TOKENS = 32_768

STANDARD = frozenset({
    "llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3",
    "phi", "phi3", "phimoe", "olmo", "olmo2", "olmoe", "granite", "granitemoe",
    "stablelm", "starcoder2", "cohere", "gemma", "helium", "ernie4_5", "seed_oss", "arcee",
    "apertus", "glm", "glm4", "glm4_moe", "hunyuan_v1_dense", "minimax_m2", "bitnet",
})  # fmt: skip

# What transformers 5.19 puts in when the key is absent, where that is a number and not "as many as query heads" or "hidden / heads".
KV_HEADS_BY_DEFAULT = {
    "mistral": 8, "ministral3": 8, "mixtral": 8, "qwen2": 32, "qwen2_moe": 16, "qwen3": 32, "qwen3_moe": 4, "smollm3": 4, "phimoe": 8,
    "stablelm": 32, "starcoder2": 2, "gemma": 16, "helium": 20, "ernie4_5": 2, "seed_oss": 8, "glm": 2, "glm4": 2, "glm4_moe": 8,
    "minimax_m2": 8, "bitnet": 5,
}  # fmt: skip
HEAD_DIM_BY_DEFAULT = {
    "qwen3": 128, "gemma": 256, "helium": 128, "ernie4_5": 128, "seed_oss": 128, "glm": 128, "glm4": 128, "minimax_m2": 128,
}  # fmt: skip


def dense_geometry(keys: Keys, context_tokens: int | None = None) -> Geometry:
    """The geometry of a dense model, priced natively at `context_tokens`.

    An unknown model_type with the standard keys is read, and the assumption said. Raises BadInput naming the key.
    """
    assumptions: list[str] = []
    model_type = _model_type(keys, assumptions)
    layers = keys.whole("num_hidden_layers", MOST_LAYERS)
    refuse_unread(keys, model_type, layers)
    kv_heads = _kv_heads(keys, model_type, assumptions)
    head_dim = _head_dim(keys, model_type)
    native_dtype = _native_dtype(keys, assumptions)
    longest = keys.whole("max_position_embeddings", MOST_TOKENS) if keys.has("max_position_embeddings") else None
    if context_tokens is None and longest is None:
        assumptions.append(f"max_position_embeddings is absent: priced at {CONTEXT_WITHOUT_LIMIT_TOKENS:,} tokens")
    context = Keys({"context": context_tokens or longest or CONTEXT_WITHOUT_LIMIT_TOKENS}, keys.where).whole("context", MOST_TOKENS)
    return priced(
        model_type=model_type,
        native_dtype=native_dtype,
        assumptions=tuple(assumptions),
        max_position_embeddings=longest,
        layers=tuple(_layer(index, kv_heads, head_dim) for index in range(layers)),
        context_tokens=context,
    )


def _layer(index: int, kv_heads: int, head_dim: int) -> Layer:
    return Layer(
        index=index,
        kind="full",
        owner=True,
        reads_from=None,
        kv_heads=kv_heads,
        k_dim=head_dim,
        v_dim=head_dim,
        window=None,
        module=f"model.layers.{index}.self_attn",
    )


def _model_type(keys: Keys, assumptions: list[str]) -> str:
    if not keys.has("model_type"):
        assumptions.append("model_type is absent: standard layout assumed")
        return "unknown"
    model_type = keys.text("model_type")
    if model_type not in STANDARD:
        assumptions.append(f"model_type {model_type} is not known here: standard layout assumed")
    return model_type


def _kv_heads(keys: Keys, model_type: str, assumptions: list[str]) -> int:
    if keys.has("num_key_value_heads"):
        kv_heads = keys.whole("num_key_value_heads", MOST_HEADS)
        if keys.has("num_attention_heads"):
            heads = keys.whole("num_attention_heads", MOST_HEADS)
            if heads % kv_heads:
                raise keys.refusal("num_key_value_heads", f"{kv_heads} does not divide num_attention_heads {heads}")
        return kv_heads
    heads = keys.whole("num_attention_heads", MOST_HEADS)
    filled_in = KV_HEADS_BY_DEFAULT.get(model_type, heads)
    if "num_key_value_heads" not in keys.values and filled_in != heads:
        raise keys.refusal(
            "num_key_value_heads",
            f"missing; transformers gives {model_type} {filled_in} then, MHA would be {heads}; write the number",
        )
    assumptions.append(f"num_key_value_heads is absent: MHA assumed ({heads} KV heads)")
    return heads


def _head_dim(keys: Keys, model_type: str) -> int:
    if keys.has("head_dim"):
        return keys.whole("head_dim", MOST_HEADS)
    heads, hidden = keys.whole("num_attention_heads", MOST_HEADS), keys.whole("hidden_size", MOST_WIDTH)
    if hidden % heads:
        raise keys.refusal("head_dim", f"missing, and hidden_size {hidden} is not a multiple of num_attention_heads {heads}")
    filled_in = HEAD_DIM_BY_DEFAULT.get(model_type, hidden // heads)
    if "head_dim" not in keys.values and filled_in != hidden // heads:
        raise keys.refusal(
            "head_dim",
            f"missing; transformers gives {model_type} {filled_in} then, hidden_size / heads is {hidden // heads}; write the number",
        )
    return hidden // heads


def _native_dtype(keys: Keys, assumptions: list[str]) -> str:
    named = {key: keys.text(key).removeprefix("torch.") for key in ("dtype", "torch_dtype") if keys.has(key)}
    if not named:
        assumptions.append("dtype is absent: bfloat16 assumed")
        return "bfloat16"
    key, dtype = next(iter(named.items()))
    if len(set(named.values())) > 1:
        raise keys.refusal("dtype", f"{shown(named['dtype'])} contradicts torch_dtype {shown(named['torch_dtype'])}")
    if dtype not in NATIVE_DTYPES:
        raise keys.refusal(key, f"{shown(dtype)} is no cache dtype; known: {', '.join(NATIVE_DTYPES)}")
    return dtype
