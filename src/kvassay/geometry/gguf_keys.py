"""GGUF metadata under the names that transformers gives the same facts."""

from __future__ import annotations

from kvassay.errors import BadInput
from kvassay.geometry.gguf_header import Header, Unkept
from kvassay.geometry.keys import Keys

ARCHITECTURE = "general.architecture"
SAME_FACT = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "context_length": "max_position_embeddings",
    "feed_forward_length": "intermediate_size",
    "vocab_size": "vocab_size",
}
MODEL_TYPES = {
    "qwen2moe": "qwen2_moe",
    "qwen3moe": "qwen3_moe",
    "command-r": "cohere",
    "phi3": "phi3",
    "ernie4_5": "ernie4_5",
    "seed_oss": "seed_oss",
}


def gguf_keys(header: Header, where: str) -> Keys:
    """Keys of a GGUF header. The architecture's other keys stay under their own names, so that an unread layout is refused.

    Raises BadInput when the architecture is not named, is not a language model, or K and V differ in width.
    """
    architecture = header.values.get(ARCHITECTURE)
    if not isinstance(architecture, str) or not architecture:
        raise BadInput(f"{where}: {ARCHITECTURE}: missing, so this GGUF does not say what it holds")
    prefix = f"{architecture}."
    own = {key.removeprefix(prefix): value for key, value in header.values.items() if key.startswith(prefix)}
    values: dict[str, object] = {"model_type": MODEL_TYPES.get(architecture, architecture)}
    spelled = {"model_type": ARCHITECTURE}
    for name, value in own.items():
        key = SAME_FACT.get(name, name)
        values[key] = _one_for_all(value) if key == "num_key_value_heads" else value
        spelled[key] = prefix + name
    for name, key in SAME_FACT.items():
        spelled.setdefault(key, prefix + name)
    if own.get("attention.value_length") == own.get("attention.key_length"):
        values.pop("attention.value_length", None)
    tokens = header.values.get("tokenizer.ggml.tokens")
    if isinstance(tokens, Unkept):
        values.setdefault("vocab_size", tokens.items)
    return Keys(values, where, spelled)


def _one_for_all(value: object) -> object:
    """A list of equal numbers stands for the number; a list of different ones stays a list, and is refused as not read yet."""
    return value[0] if isinstance(value, list) and value and all(each == value[0] for each in value) else value
