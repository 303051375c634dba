"""GGUF metadata under the names that transformers gives the same facts, so that one reader per family reads both files.

Keys that transformers has no name for stay under their own, and are refused where they speak of a layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kvassay.errors import BadInput
from kvassay.geometry.configuration.keys import MOST_HEADS, MOST_LAYERS, MOST_WIDTH, Keys, shown
from kvassay.geometry.configuration.names import SPELLINGS
from kvassay.geometry.configuration.unread import says_something, speaks_of
from kvassay.geometry.gguf.architectures import DRAFT_HEADS, HARMLESS, KNOWN, MODEL_TYPES, NO_CACHE, SAME_FACT, STATES
from kvassay.geometry.gguf.header import Header, Unkept
from kvassay.geometry.gguf.kinds import INTERVAL, PATTERN, RECURRENT, WINDOW, WINDOW_IGNORED, WINDOWS, layer_kinds, per_layer
from kvassay.geometry.gguf.own_rules import own_rules
from kvassay.geometry.gguf.translation import ARCHITECTURE, HEADS, K_WIDTH, KV_HEADS, V_WIDTH, Translation

INNER, RANK, NEXTN = "ssm.inner_size", "ssm.time_step_rank", "nextn_predict_layers"
MOST_NAME = 64
# Names of transformers that would stand in for what the GGUF says under its own.
OTHER_NAMES = {"model_type", *SAME_FACT.values(), *(name for names in SPELLINGS.values() for name in names)} - set(SAME_FACT)
WITHOUT_CACHE = ("linear_attention", "conv", "mlp")


def gguf_keys(header: Header, where: str) -> Keys:
    """Keys of a GGUF header under transformers' names. Raises BadInput, naming the GGUF key, for what is missing or contradicts itself.

    A file without an architecture, or of one that keeps no cache of its own, is refused.
    """
    architecture = _architecture(header, where)
    prefix = f"{architecture}."
    own = {key.removeprefix(prefix): value for key, value in header.values.items() if key.startswith(prefix)}
    tokens = header.values.get("tokenizer.ggml.tokens")
    if isinstance(tokens, Unkept):
        own.setdefault("vocab_size", tokens.items)
    raw = Keys(own, where, _Prefixed(prefix))
    made = Translation(raw, architecture, _layers(raw, architecture), set(HARMLESS))
    made.values["model_type"], made.spelled["model_type"] = MODEL_TYPES.get(architecture, architecture), ARCHITECTURE
    made.put("num_hidden_layers", made.layers, "block_count")
    _heads_and_widths(made)
    if architecture in KNOWN:
        if architecture != "t5":
            _kinds(made)
        _states(made)
        own_rules(made)
        _refuse_leftovers(made)
    for name, value in own.items():
        if name not in made.used:
            if name not in SAME_FACT and (name in made.values or name in OTHER_NAMES):
                raise raw.refusal(name, f"{shown(value)}: a key of config.json that no GGUF has; take it out")
            made.put(SAME_FACT.get(name, name), value, name)
    spelled = {key: prefix + name for name, key in SAME_FACT.items()} | made.spelled
    return Keys(made.values, where, spelled, notes=raw.notes)


class _Prefixed(Mapping[str, str]):
    """The file's own name of any key of its architecture, also of one that it lacks."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def __getitem__(self, key: str) -> str:
        return self.prefix + key

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _architecture(header: Header, where: str) -> str:
    architecture = header.values.get(ARCHITECTURE)
    if not isinstance(architecture, str) or not architecture:
        raise BadInput(f"{where}: {ARCHITECTURE}: missing, so this GGUF does not say what it holds; of a split file name the first part")
    if len(architecture) > MOST_NAME or not architecture.isprintable():
        raise BadInput(f"{where}: {ARCHITECTURE}: must be a short name, not {shown(architecture)}")
    if architecture in NO_CACHE:
        raise BadInput(f"{where}: {ARCHITECTURE}: {architecture} keeps no KV cache; name the GGUF of a language model")
    if architecture in DRAFT_HEADS:
        raise BadInput(f"{where}: {ARCHITECTURE}: {architecture} is a draft head that cannot run alone; name the GGUF of its target model")
    return architecture


def _layers(raw: Keys, architecture: str) -> int:
    """Layers without the prediction layers at their end, which `block_count` counts."""
    blocks, predicting = raw.whole("block_count", MOST_LAYERS), raw.maybe(NEXTN, MOST_LAYERS, least=0) or 0
    if predicting >= blocks:
        raise raw.refusal(NEXTN, f"{predicting} of {blocks} blocks: none is left to be the model")
    if predicting and architecture == "deepseek4":
        # llama.cpp looks for their tensors: a converter has left the blocks out and kept the key.
        raise raw.refusal(NEXTN, f"{predicting}, and whether block_count counts them is not in the header; read the model's config.json")
    return blocks - predicting


def _heads_and_widths(made: Translation) -> None:
    """llama.cpp: as many KV heads as heads, and heads of hidden / heads, where the file does not say."""
    heads = _heads(made, HEADS)
    kv_heads = _heads(made, KV_HEADS) if made.raw.has(KV_HEADS) else heads
    for key, value, name in (("num_attention_heads", heads, HEADS), ("num_key_value_heads", kv_heads, KV_HEADS)):
        made.used.add(name)
        if value:
            made.put(key, value, name)
    hidden = made.raw.maybe("embedding_length", MOST_WIDTH)
    even = hidden // heads if hidden and isinstance(heads, int) and heads and hidden % heads == 0 else None
    k_width, v_width = (made.raw.maybe(name, MOST_WIDTH) or even for name in (K_WIDTH, V_WIDTH))
    made.used.update((K_WIDTH, V_WIDTH))
    if k_width is not None:
        made.put("head_dim", k_width, K_WIDTH)
    if v_width is not None and v_width != k_width:
        made.put("v_head_dim", v_width, V_WIDTH)


def _heads(made: Translation, name: str) -> int | list[int] | None:
    """One number where all layers agree, else one for each; None where absent."""
    if not made.raw.has(name):
        return None
    counts = per_layer(made.raw, name, made.layers)
    return counts[0] if len(set(counts)) == 1 else counts


def _kinds(made: Translation) -> None:
    """`layer_types` and the window. A window that is null says that there is none."""
    kinds, window = layer_kinds(made.raw, made.architecture, made.layers)
    chunked = "chunked_attention" in kinds
    made.values |= {"layer_types": kinds, "sliding_window": None if chunked else window}
    if chunked:
        made.values["attention_chunk_size"] = window
    made.spelled["layer_types"] = made.raw.name(PATTERN if window else KV_HEADS)
    made.spelled |= dict.fromkeys(("sliding_window", "attention_chunk_size"), made.raw.name(WINDOW))
    if made.architecture in WINDOWS or made.architecture in WINDOW_IGNORED or window:
        made.used.update((WINDOW, PATTERN))
    if "linear_attention" in kinds:
        made.used.update((INTERVAL, RECURRENT))
    if made.architecture == "olmo2" and window:
        made.values["model_type"] = "olmo3"
    for key in ("num_key_value_heads", "num_attention_heads"):
        # Zeros only mark the layers that `layer_types` names.
        counts = made.values.get(key)
        some = {count for count in counts if count} if isinstance(counts, list) and any(kind in WITHOUT_CACHE for kind in kinds) else set()
        if len(some) == 1:
            made.values[key] = some.pop()


def _states(made: Translation) -> None:
    """What recurrent layers keep, under the names of the architecture's family."""
    rule = STATES.get(made.architecture)
    if rule is None:
        return
    for name, key in rule.names.items():
        made.spelled[key] = made.raw.name(name)
        if made.raw.has(name):
            made.put(key, made.raw.values[name], name)
    if rule.inner is not None:
        inner, per = made.raw.whole(INNER, MOST_WIDTH), made.raw.whole(rule.per, MOST_WIDTH)
        if inner % per:
            raise made.raw.refusal(INNER, f"{inner} is not a multiple of {made.raw.name(rule.per)} {per}")
        made.put(rule.inner, inner // per, INNER)
    # The rank of Mamba's time steps sizes weights alone.
    made.used.add(RANK)
    if INNER in rule.names:
        made.raw.whole(INNER, MOST_WIDTH)
        made.used.add("feed_forward_length")
    if made.architecture == "plamo2":
        made.used.add("ssm.group_count")
    if "kda.head_dim" in rule.names:
        made.put("linear_num_heads", made.raw.whole(HEADS, MOST_HEADS), HEADS)
    if made.architecture == "mamba" and made.raw.flag("ssm.dt_b_c_rms"):
        made.values["model_type"] = "falcon_mamba"


def _refuse_leftovers(made: Translation) -> None:
    """Raise BadInput for a key of a known architecture that speaks of a layout which that architecture does not have."""
    for name, value in made.raw.values.items():
        if name in made.used or name in SAME_FACT or not says_something(value):
            continue
        if what := speaks_of(name):
            raise made.raw.refusal(
                name, f"{shown(value)} ({what}) is not read for {made.architecture}, and may change what the cache holds"
            )
