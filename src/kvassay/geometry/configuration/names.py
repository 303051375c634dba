"""One name per fact: the spellings that configurations use, brought to the names of transformers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvassay.errors import BadInput
from kvassay.geometry.configuration.class_defaults import class_defaults
from kvassay.geometry.configuration.keys import Keys, shown

# Older and other spellings of the same fact.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers", "num_transformer_layers"),
    "hidden_size": ("n_embd", "n_embed", "d_model", "emb_dim", "model_dim"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "attention_heads"),
    "num_key_value_heads": (
        "num_kv_heads",
        "n_head_kv",
        "n_kv_heads",
        "num_attention_groups",
        "multi_query_group_num",
        "num_key_value_heads_per_layer",
        "num_multi_query_heads",
    ),
    "head_dim": ("attention_head_dim", "attention_head_size", "d_head", "dim_head", "d_kv"),
    "index_head_dim": ("indexer_head_dim",),
    "max_position_embeddings": ("n_positions", "max_seq_len", "max_sequence_length", "seq_length", "n_ctx", "model_max_length"),
}
# Facts on which the layout hangs: two spellings may not differ. A context length is only a limit.
LAYOUT_FACTS = frozenset(SPELLINGS) - {"max_position_embeddings"}
# Names that only one type uses, of types that transformers does not register.
OWN_NAMES = {
    "pangu_ultra_moe": {
        "kv_lora_rank": "attention_kv_lora_dim",
        "qk_nope_head_dim": "attention_qk_dim",
        "qk_rope_head_dim": "attention_qk_rope_dim",
        "v_head_dim": "attention_v_dim",
    },
    "smallthinker": {"sliding_window": "sliding_window_size"},
}
# Types whose key of such a name says something else.
NOT_A_SPELLING = {
    "mamba2": {"num_attention_heads", "head_dim"},
    "dbrx": {"num_key_value_heads"},
    "openelm": {"num_attention_heads"},
    "chatglm": {"num_key_value_heads"},
}
# The longest published configurations have some two hundred.
MOST_KEYS = 4096
NAMES_OF_ENCODER_DECODERS = frozenset({"num_hidden_layers", "num_attention_heads"})


def keys_of(values: Mapping[str, Any], where: str, *, nested_in: str = "", model_type: str | None = None) -> Keys:
    """Keys of one configuration object under one name each, with what transformers fills in for its type.

    nested_in: the key under which the object stands. model_type: what its holder makes of it where it names none itself.
    A class writes all of its own keys at the top, and inside another one only what differs from its defaults: so the size of a model
    is filled in for a nested object and never for a top one. Raises BadInput for two spellings with different values.
    """
    if len(values) > MOST_KEYS:
        many = f"{nested_in or 'the object'} has {len(values):,} keys, more than {MOST_KEYS:,}"
        raise BadInput(f"{where}: {many}, so it is not the configuration of a model")
    merged = dict(values)
    if model_type is not None and merged.get("model_type") is None:
        merged["model_type"] = model_type
    spelled: dict[str, str] = {}
    read: set[str] = set()
    keys = Keys(merged, where, spelled, nested_in)
    row = class_defaults(keys.model_type)
    names = row.names or OWN_NAMES.get(keys.model_type, {})
    # An encoder-decoder's canonical names are the encoder's; its own readers ask by the decoder's names.
    skipped = NOT_A_SPELLING.get(keys.model_type, set()) | (
        NAMES_OF_ENCODER_DECODERS if merged.get("is_encoder_decoder", row.values.get("is_encoder_decoder")) is True else set()
    )
    # Whisper's class takes the decoder's KV heads for the encoder's, and its decoder does not read them.
    skipped |= {fact for fact, name in names.items() if fact == "num_key_value_heads" and name.startswith("encoder_")}
    defaults = dict(row.values)
    for fact in {**SPELLINGS, **names}:
        if fact in skipped:
            continue
        others = (names.get(fact), *SPELLINGS.get(fact, ()))
        found = {name: merged[name] for name in (fact, *others) if name is not None and merged.get(name) is not None}
        if not found:
            if (own := names.get(fact)) in defaults:
                defaults.setdefault(fact, defaults[own])
                spelled.setdefault(fact, str(own))
            continue
        name, value = next(iter(found.items()))
        for other, its in found.items():
            if its != value and fact in LAYOUT_FACTS:
                raise keys.refusal(name, f"{shown(value)} contradicts {keys.name(other)} {shown(its)}")
        merged[fact] = value
        spelled[fact] = name
        read.update(found)
    if not nested_in:
        for fact in ("num_hidden_layers", "hidden_size", "num_attention_heads"):
            defaults.pop(fact, None)
            defaults.pop(names.get(fact, fact), None)
    return Keys(merged, where, spelled, nested_in, defaults, row.own, asked=read)
