"""From a language model's keys to its layers: kinds, shapes, sharing, states and indexers put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvassay.geometry.configuration.keys import MOST_TOKENS, MOST_WIDTH, Keys
from kvassay.geometry.configuration.language_model import LanguageModel
from kvassay.geometry.configuration.unread import DROPS_TOKENS, PATTERNS, refuse_foreign, refuse_recurrent_name, refuse_unread
from kvassay.geometry.layouts import kinds as kind_rules
from kvassay.geometry.layouts import states
from kvassay.geometry.layouts.attention import Shape, by_blocks, keys_by_layer
from kvassay.geometry.layouts.cross import cross_layers
from kvassay.geometry.layouts.encoder_decoder import encoder_decoder_layers, is_encoder_decoder
from kvassay.geometry.layouts.families import FAMILIES, Family, kimi_kinds, nemotron_h_kinds
from kvassay.geometry.layouts.kinds import Kind, KindRule, kinds_of, layer_count
from kvassay.geometry.layouts.latent import Latent, has_latent, indexer_dims, latent_shape
from kvassay.geometry.layouts.sharing import readers_of
from kvassay.geometry.layouts.states import StateRule
from kvassay.records.geometry import Layer, LayerKind, State

LAYER_KINDS: dict[Kind, LayerKind] = {"sliding": "sliding", "hybrid_sliding": "sliding", "chunked": "chunked"}
WINDOWS = ("sliding", "hybrid_sliding", "chunked")
KEEPS_STATE = ("recurrent", "hybrid", "hybrid_sliding")
COMPRESSION = {"compressed": "compressed_sparse_attention", "heavily_compressed": "heavily_compressed_attention"}
COMPRESSION_BY_DEFAULT = {"compressed": 4, "heavily_compressed": 128}


# Where a multimodal model of transformers keeps its language model, if not under model.language_model.
NESTED_MODULES = {
    "llama4": "language_model.model.",
    "idefics2": "model.text_model.",
    "idefics3": "model.text_model.",
    "smolvlm": "model.text_model.",
    "kosmos-2.5": "text_model.model.",
    "qwen2_5_omni_thinker": "model.",
    "qwen3_omni_moe_thinker": "model.",
}


@dataclass(frozen=True)
class Choice:
    """What a configuration leaves to whoever serves it. encoder_tokens: rows of cross caches, None for the configuration's own limit."""

    mla: Latent = "latent"
    encoder_tokens: int | None = None


def read_layers(model: LanguageModel, dtype: str, choice: Choice) -> tuple[Layer, ...]:
    """Every cache of the model, in the order of its layers. Raises BadInput naming the key."""
    keys = model.keys
    _refuse_wrong_types(keys)
    if is_encoder_decoder(model):
        return encoder_decoder_layers(model, choice.encoder_tokens)
    family = FAMILIES.get(keys.model_type)
    if family is None:
        keys.note(
            f"model_type {keys.model_type} is not known here: standard layout assumed"
            if keys.has("model_type")
            else f"{keys.name('model_type')} is absent: standard layout assumed"
        )
        family = _by_its_keys(keys)
    layers = layer_count(keys) * family.attentions_per_layer
    if keys.owns("cross_attention_layers"):
        own = cross_layers(model, layers, choice.encoder_tokens)
    else:
        own = _layers(keys.with_values({"num_hidden_layers": layers}), layers, family, dtype, choice)
    if keys.model_type in FAMILIES:
        refuse_foreign(keys)
        if keys.own is None and family.kinds is kind_rules.all_full:
            refuse_unread(keys, DROPS_TOKENS)
    else:
        refuse_unread(keys)
        refuse_recurrent_name(keys, any(layer.states for layer in own))
    if not model.outer:
        return tuple(own)
    prefix = NESTED_MODULES.get(model.model_type, "model.language_model.")
    return tuple(layer.model_copy(update={"module": prefix + layer.module.removeprefix("model.")}) for layer in own)


def _refuse_wrong_types(keys: Keys) -> None:
    """Raise BadInput where a size that this layout may not even need is no number: such a file is damaged."""
    for key in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"):
        value = keys.values.get(key)
        if value is not None and not isinstance(value, list):
            keys.checked(key, value, MOST_WIDTH, least=0)


def _by_its_keys(keys: Keys) -> Family:
    """The family that the keys of an unknown model_type speak of; plain attention where they speak of none."""
    rule: KindRule = kind_rules.all_full
    shape = Family().shape
    if keys.has("block_configs"):
        shape = by_blocks
    if keys.has("hybrid_override_pattern"):
        rule = nemotron_h_kinds
    elif keys.has("linear_attn_config"):
        rule = kimi_kinds
    elif keys.has("attn_layer_period"):
        rule = kind_rules.offset_of_every("attn_layer_period", "attn_layer_offset")
    elif keys.has("full_attention_interval"):
        rule = kind_rules.last_of_every("full_attention_interval", near="recurrent")
    elif keys.has("index_topk"):
        rule = kind_rules.same("indexed")
    elif kind_rules.window_on(keys) and isinstance(keys.get("sliding_window_pattern"), int):
        rule = kind_rules.last_of_every("sliding_window_pattern")
    elif kind_rules.window_on(keys) and keys.has("max_window_layers"):
        rule = kind_rules.window_after
    elif kind_rules.window_on(keys) and _as_long_as_the_context(keys):
        rule = kind_rules.window_everywhere
    elif kind_rules.window_on(keys) and not any(keys.has(key) for key in kind_rules.LISTS):
        raise keys.refusal("sliding_window", "set, but no key says which layers keep a window; add layer_types, or null for none")
    return Family(kinds=rule, shape=shape, state=states.by_keys(keys))


def _as_long_as_the_context(keys: Keys) -> bool:
    """Whether the window drops nothing in whichever layers it stands."""
    longest = _stated_context(keys)
    return longest is not None and keys.whole("sliding_window", MOST_TOKENS) >= longest


def _stated_context(keys: Keys) -> int | None:
    """The longest context that the file itself states, in tokens: one that a class fills in says nothing about the file's windows."""
    return keys.maybe("max_position_embeddings", MOST_TOKENS) if keys.has("max_position_embeddings") else None


def _layers(keys: Keys, layers: int, family: Family, dtype: str, choice: Choice) -> list[Layer]:
    kinds = kinds_of(keys, layers, family.kinds, family.full_means_indexed)
    _refuse_mixed_compression(keys, kinds, family)
    readers = readers_of(keys, kinds)
    latent = has_latent(keys)
    indexers = indexer_dims(keys, layers) if "indexed" in kinds else [0] * layers
    state = _state_rule(keys, kinds, family)
    made: list[Layer] = []
    for index, (kind, its) in enumerate(zip(kinds, keys_by_layer(keys, layers), strict=True)):
        shape: Shape | None = None
        if kind not in ("recurrent", "none"):
            shape = latent_shape(its, choice.mla) if latent else family.shape(its, index, kind)
            if family.k_is_v:
                made += _compressed(its, index, kind, shape, family, dtype)
                continue
            window = _window(its, index, kind, family)
            if window is None and kind in WINDOWS:
                kind = "hybrid" if kind == "hybrid_sliding" else "full"
            indexer = indexers[index] if kind == "indexed" else 0
            made.append(
                _attention(index, "mla" if latent else LAYER_KINDS.get(kind, "full"), shape, window, family, readers[index], indexer)
            )
        if state is not None and kind in KEEPS_STATE:
            made.append(_without_cache(index, "recurrent", family.state_module, state(its, dtype, shape)))
        elif kind == "none":
            made.append(_without_cache(index, "none", family.module, ()))
    owners = {layer.index for layer in made if layer.owner}
    if lost := next((layer for layer in made if layer.reads_from is not None and layer.reads_from not in owners), None):
        raise keys.refusal("num_key_value_heads", f"layer {lost.index} reads the cache of layer {lost.reads_from}, which keeps none")
    return made


def _refuse_mixed_compression(keys: Keys, kinds: Sequence[Kind], family: Family) -> None:
    """Raise BadInput where compressed layers stand in a family that has none, or other attention in one that has no other."""
    known = ("sliding", *COMPRESSION, "recurrent", "none") if family.k_is_v else set(kinds) - set(COMPRESSION)
    if odd := next((kind for kind in kinds if kind not in known), None):
        raise keys.refusal("layer_types", f"{odd} layers are not known in model_type {keys.model_type}; correct one of them")


def _window(keys: Keys, index: int, kind: Kind, family: Family) -> int | None:
    """Tokens that a windowed layer keeps, None where it never drops one. Raises BadInput when it does not say."""
    if kind not in WINDOWS:
        return None
    if keys.get(family.window) is None:
        raise keys.refusal(family.window, f"missing, but layer {index} keeps a window")
    window = keys.whole(family.window, MOST_TOKENS)
    longest = _stated_context(keys)
    if longest is None or window < longest:
        return window
    keys.note(f"{keys.name(family.window)} {window:,} is not shorter than the longest context of {longest:,} tokens: nothing is dropped")
    return None


def _state_rule(keys: Keys, kinds: Sequence[Kind], family: Family) -> StateRule | None:
    if not any(kind in KEEPS_STATE for kind in kinds):
        return None
    rule = family.state or states.by_keys(keys)
    if rule is None:
        key = next((key for key in (*kind_rules.LISTS, *PATTERNS) if keys.has(key)), "layer_types")
        raise keys.refusal(key, f"names recurrent layers, and what model_type {keys.model_type} keeps in them is not known here")
    return rule


def _attention(
    index: int, kind: LayerKind, shape: Shape, window: int | None, family: Family, reads_from: int | None, indexer: int
) -> Layer:
    if shape.kv_heads == 0:
        return _without_cache(index, "none", family.module, ())
    return Layer(
        index=index,
        kind=kind,
        owner=reads_from is None,
        reads_from=reads_from,
        kv_heads=shape.kv_heads,
        k_dim=shape.k_dim,
        v_dim=shape.v_dim,
        window=window,
        module=_module(family.module, index),
        indexer_dim=indexer,
    )


def _compressed(keys: Keys, index: int, kind: Kind, shape: Shape, family: Family, dtype: str) -> list[Layer]:
    """DeepSeek V4: K serves as V. A window of it, beside one row for every `ratio` tokens and the open window of the compressor."""
    near = _attention(index, "sliding", Shape(1, shape.k_dim, 0), keys.whole("sliding_window", MOST_TOKENS), family, None, 0)
    if kind == "sliding":
        return [near]
    rates = keys.inside("compress_rates")
    ratio = rates.maybe(COMPRESSION[kind], MOST_WIDTH, least=2) or COMPRESSION_BY_DEFAULT[kind]
    overlapping = kind == "compressed"
    indexer = keys.whole("index_head_dim") if overlapping and keys.get("index_topk") is not None else 0
    # K and gate of the open window; overlapping windows are twice as wide and carry half of the last one.
    rows = 2 * ((ratio - 1) * 2 + ratio) if overlapping else 2 * (ratio - 1)
    buffers = State(name="compressor", parts=1, elements_per_part=rows * (shape.k_dim + indexer), dtype=dtype)
    far = near.model_copy(update={"kind": "full", "window": None, "tokens_per_entry": ratio, "indexer_dim": indexer, "states": (buffers,)})
    return [near, far]


def _module(template: str, index: int) -> str:
    """The name of one layer's module; a layer of two attentions (LongCat) counts as two, so `half` and `odd` are also filled in."""
    return template.format(index, half=index // 2, odd=index % 2)


def _without_cache(index: int, kind: LayerKind, module: str, kept: tuple[State, ...]) -> Layer:
    bare = Layer(
        index=index, kind=kind, owner=False, reads_from=None, kv_heads=0, k_dim=0, v_dim=0, window=None, module=_module(module, index)
    )
    return bare.model_copy(update={"states": kept})
