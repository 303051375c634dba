"""Which layer keeps what: the kind of each layer, from a list in the file or from the rule of its family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from kvassay.geometry.configuration.keys import MOST_LAYERS, Keys, shown

# What one layer keeps: K and V of all tokens, of a window or of a chunk, those plus a fixed state ("hybrid"), a state alone, or nothing.
# "indexed" is full attention with an indexer's key beside each row; "cross" attends to an encoder's rows only.
Kind = Literal[
    "full", "sliding", "chunked", "indexed", "recurrent", "hybrid", "hybrid_sliding", "cross", "none", "compressed", "heavily_compressed"
]
KindRule = Callable[[Keys, int], Sequence[Kind]]

WRITTEN: dict[str, Kind] = {
    "full_attention": "full",
    "attention": "full",
    "global": "full",
    "sliding_attention": "sliding",
    "local": "sliding",
    "chunked_attention": "chunked",
    "indexed_attention": "indexed",
    "deepseek_sparse_attention": "indexed",
    "qwen_sparse_attention": "indexed",
    "minimax_m3_sparse": "indexed",
    "linear_attention": "recurrent",
    "mamba": "recurrent",
    "mamba2": "recurrent",
    "recurrent": "recurrent",
    "conv": "recurrent",
    "hybrid": "hybrid",
    "hybrid_sliding": "hybrid_sliding",
    "moe": "none",
    "mlp": "none",
    "compressed_sparse_attention": "compressed",
    "heavily_compressed_attention": "heavily_compressed",
}
LISTS = ("layer_types", "layers_block_type", "layer_block_types", "block_types")


def layer_count(keys: Keys) -> int:
    """Number of decoder layers; the length of a list with an entry per layer where the file has no number. Raises BadInput."""
    if keys.get("num_hidden_layers") is None:
        for key in (*LISTS[:2], "num_key_value_heads"):
            if isinstance(keys.values.get(key), list):
                return len(keys.listing(key))
    return keys.whole("num_hidden_layers", MOST_LAYERS)


def written_kinds(keys: Keys, key: str, layers: int) -> list[Kind]:
    """The kinds that the list at `key` names, one per layer. Raises BadInput for an unknown kind or another length."""
    kinds: list[Kind] = []
    for index, kind in enumerate(keys.listing(key, layers)):
        if not isinstance(kind, str) or kind not in WRITTEN:
            raise keys.refusal(key, f"layer {index} is {shown(kind)}, which is no known kind of layer; known: {', '.join(WRITTEN)}")
        kinds.append(WRITTEN[kind])
    return kinds


def kinds_of(keys: Keys, layers: int, rule: KindRule, full_means_indexed: bool = False) -> list[Kind]:
    """The kind of every layer: `layer_types` where the file has it, else by the family's rule. Raises BadInput.

    full_means_indexed: in this family a written "full_attention" has an indexer beside it.
    """
    for key in LISTS[:2]:
        if keys.has(key):
            written = written_kinds(_without_prediction(keys, key, layers), key, layers)
            return ["indexed" if kind == "full" and full_means_indexed else kind for kind in written]
    kinds = list(rule(keys, layers))
    if len(kinds) != layers:
        raise keys.refusal("num_hidden_layers", f"{layers} layers, but the family's rule names {len(kinds)}")
    return kinds


def _without_prediction(keys: Keys, key: str, layers: int) -> Keys:
    """The keys, with the list at `key` cut to the model's layers where it also names the prediction layers behind them (Step-3.5)."""
    named = keys.listing(key)
    more = keys.values.get("num_nextn_predict_layers")
    return keys.with_values({key: named[:layers]}) if type(more) is int and more > 0 and len(named) == layers + more else keys


def same(kind: Kind) -> KindRule:
    """Every layer alike."""
    return lambda keys, layers: [kind] * layers


def all_full(keys: Keys, layers: int) -> list[Kind]:
    """Every layer keeps every token."""
    return ["full"] * layers


def last_of_every(period: int | str, far: Kind = "full", near: Kind = "sliding") -> KindRule:
    """`far` in the last layer of every `period` (a number, or the key that holds it), `near` in the others."""

    def rule(keys: Keys, layers: int) -> list[Kind]:
        length = period if isinstance(period, int) else keys.whole(period, MOST_LAYERS)
        return [near if (index + 1) % length else far for index in range(layers)]

    return rule


def first_of_every(period: int | str, far: Kind = "full", near: Kind = "sliding") -> KindRule:
    """`far` in the first layer of every `period` (a number, or the key that holds it), `near` in the others."""

    def rule(keys: Keys, layers: int) -> list[Kind]:
        length = period if isinstance(period, int) else keys.whole(period, MOST_LAYERS)
        return [near if index % length else far for index in range(layers)]

    return rule


def ending_full(rule: KindRule) -> KindRule:
    """As `rule`, with the last layer always full."""
    return lambda keys, layers: [*list(rule(keys, layers))[:-1], "full"]


def offset_of_every(period: str, offset: str, far: Kind = "full", near: Kind = "recurrent") -> KindRule:
    """`far` where index modulo the number at `period` is the number at `offset`."""

    def rule(keys: Keys, layers: int) -> list[Kind]:
        length, at = keys.whole(period, MOST_LAYERS), keys.whole(offset, MOST_LAYERS, least=0)
        return [far if index % length == at else near for index in range(layers)]

    return rule


def listed(key: str, far: Kind, near: Kind, first: int = 0) -> KindRule:
    """`far` in the layers that the list at `key` names (counted from `first`), `near` in the others; all `far` where it is absent."""

    def rule(keys: Keys, layers: int) -> list[Kind]:
        if keys.get(key) is None:
            return [far] * layers
        named = set(keys.wholes(key, most=layers - 1 + first, least=first))
        return [far if index + first in named else near for index in range(layers)]

    return rule


def indexed_if_asked(keys: Keys, layers: int) -> list[Kind]:
    """Full attention, sparse where the file has an indexer's `index_topk` (files of DeepSeek V3.2 that call themselves V3)."""
    return ["indexed" if keys.get("index_topk") is not None else "full"] * layers


def repeated(key: str) -> KindRule:
    """The short list of kinds at `key`, over and over; its attention keeps a window."""

    def rule(keys: Keys, layers: int) -> list[Kind]:
        unit = written_kinds(keys, key, len(keys.listing(key)))
        if not unit:
            raise keys.refusal(key, "an empty list names no kind of layer")
        return ["sliding" if kind == "full" else kind for kind in (unit * (layers // len(unit) + 1))[:layers]]

    return rule


def numbered(key: str, kinds: Sequence[Kind]) -> KindRule:
    """A list of small numbers, one per layer, each the index of a kind in `kinds`."""

    def rule(keys: Keys, layers: int) -> list[Kind]:
        return [kinds[number] for number in keys.wholes(key, layers, most=len(kinds) - 1)]

    return rule


def window_everywhere(keys: Keys, layers: int) -> list[Kind]:
    """Every layer keeps a window where `sliding_window` says so, as transformers' cache does without a list of kinds."""
    return ["sliding" if window_on(keys) else "full"] * layers


def window_after(keys: Keys, layers: int) -> list[Kind]:
    """Layers from `max_window_layers` on keep a window, behind the switch `use_sliding_window` (Qwen2 and its kin)."""
    if not window_on(keys):
        return ["full"] * layers
    first = keys.whole("max_window_layers", MOST_LAYERS, least=0)
    return ["sliding" if index >= first else "full" for index in range(layers)]


def window_on(keys: Keys) -> bool:
    """Whether a sliding window is set and not switched off."""
    switched = "use_sliding_window" in keys.values or "use_sliding_window" in keys.defaults
    keys.has("sliding_window")  # counts as read, also behind a switch that is off
    return (not switched or keys.flag("use_sliding_window")) and keys.get("sliding_window") not in (None, 0)
