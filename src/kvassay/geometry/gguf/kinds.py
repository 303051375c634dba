"""Which layer of a GGUF keeps what: from its lists where it has them, from llama.cpp's source where that has it hard-coded."""

from __future__ import annotations

from dataclasses import dataclass

from kvassay.geometry.configuration.keys import MOST_HEADS, MOST_LAYERS, MOST_TOKENS, Keys, shown

WINDOW, PATTERN = "attention.sliding_window", "attention.sliding_window_pattern"
INTERVAL, RECURRENT, RATIOS = "full_attention_interval", "attention.recurrent_layers", "attention.compress_ratios"
FULL, SLIDING, CHUNKED, LINEAR, CONV = "full_attention", "sliding_attention", "chunked_attention", "linear_attention", "conv"


@dataclass(frozen=True)
class Windows:
    """Windows of one architecture, as its `load_arch_hparams` sets them (`set_swa_pattern`).

    period: one layer of so many is full, the last of them, or the first with `dense_first`; None where only the file's pattern says it.
    number: the pattern may be a number, a period. needed: llama.cpp does not load the file without a window. without: the window of
    a file that names none. fixed: the window, whatever the file says. layers: windows only in a model of so many layers.
    """

    period: int | None
    dense_first: bool = False
    number: bool = True
    needed: bool = False
    without: int | None = None
    fixed: int | None = None
    layers: int | None = None
    kind: str = SLIDING


WINDOWS = {
    "gemma2": Windows(2, without=4096),
    "gemma3": Windows(6),
    "gemma3n": Windows(5, needed=True),
    "gemma4": Windows(None, number=False, needed=True),
    "cohere2": Windows(4, needed=True),
    "cohere2moe": Windows(None, dense_first=True, needed=True),
    "olmo2": Windows(4),
    "exaone4": Windows(4, without=4096, layers=64),
    "exaone-moe": Windows(None, number=False, needed=True),
    "gpt-oss": Windows(2, needed=True),
    "llama4": Windows(4, without=8192, fixed=8192, kind=CHUNKED),
    "smallthinker": Windows(4, dense_first=True, fixed=4096),
    "plamo3": Windows(8),
    "afmoe": Windows(4),
    "laguna": Windows(4, dense_first=True),
    "mellum": Windows(4),
    "mimo2": Windows(None, number=False, needed=True),
    "step35": Windows(None, number=False, needed=True),
}
# `src/models/phi3.cpp`: the window that converters write is read and switched off.
WINDOW_IGNORED = frozenset({"phi3"})
# A layer without KV heads is the recurrent one; what it is called.
RECURRENT_WITHOUT_HEADS = {
    "jamba": LINEAR, "plamo2": LINEAR, "granitehybrid": LINEAR, "kimi-linear": LINEAR, "kimi-k3": LINEAR, "lfm2": CONV, "lfm2moe": CONV,
}  # fmt: skip
EVERY_FOURTH_FULL = frozenset({"qwen3next", "qwen35", "qwen35moe"})
ALL_ALIKE = {"mamba": LINEAR, "mamba2": LINEAR, "falcon-h1": "hybrid", "deepseek32": "indexed_attention", "glm-dsa": "indexed_attention"}
# `src/models/deepseek4.cpp` loads these ratios and no others.
COMPRESSIONS = {0: SLIDING, 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}


def per_layer(raw: Keys, name: str, layers: int, most: int = MOST_HEADS) -> list[int]:
    """The number or the list at `name`, one entry for each of `layers` layers. Raises BadInput.

    Lists are as long as `block_count`, or without the prediction layers that stand at its end.
    """
    value = raw.get(name)
    if not isinstance(value, list):
        return [raw.whole(name, most, least=0)] * layers
    if len(value) not in (layers, raw.whole("block_count", MOST_LAYERS)):
        raise raw.refusal(name, f"must have one entry for each of the {layers} layers, it has {len(value):,}")
    return [raw.checked(name, int(each) if isinstance(each, bool) else each, most, least=0) for each in value[:layers]]


def layer_kinds(raw: Keys, architecture: str, layers: int) -> tuple[list[str], int | None]:
    """transformers' name for the kind of each layer, and the window of the windowed ones. Raises BadInput naming the GGUF key."""
    if (rule := WINDOWS.get(architecture)) is not None:
        return _windowed(raw, rule, layers)
    if (kind := ALL_ALIKE.get(architecture)) is not None:
        return [kind] * layers, None
    if (kind := RECURRENT_WITHOUT_HEADS.get(architecture)) is not None:
        return [FULL if heads else kind for heads in per_layer(raw, "attention.head_count_kv", layers)], None
    if architecture in ("nemotron_h", "nemotron_h_moe"):
        return _nemotron(raw, layers), None
    if architecture in EVERY_FOURTH_FULL:
        return _interleaved(raw, layers), None
    if architecture == "deepseek4":
        return _compressed(raw, layers), raw.whole(WINDOW, MOST_TOKENS)
    if architecture in WINDOW_IGNORED and raw.maybe(WINDOW, MOST_TOKENS, least=0):
        raw.note(f"{raw.name(WINDOW)} {raw.values[WINDOW]:,}: not used, llama.cpp keeps every token of {architecture}")
    return [FULL] * layers, None


def _windowed(raw: Keys, rule: Windows, layers: int) -> tuple[list[str], int | None]:
    listed = isinstance(raw.get(PATTERN), list)
    if rule.layers not in (None, layers) and not listed:
        if raw.maybe(WINDOW, MOST_TOKENS, least=0):
            raw.note(f"{raw.name(WINDOW)} {raw.values[WINDOW]:,}: not used, llama.cpp has windows only with {rule.layers} layers")
        return [FULL] * layers, None
    window = raw.whole(WINDOW, MOST_TOKENS) if rule.needed else raw.maybe(WINDOW, MOST_TOKENS, least=0)
    window = rule.without if window is None else window
    if not window:
        return [FULL] * layers, None
    if rule.fixed not in (None, window):
        raw.note(f"{raw.name(WINDOW)} {window:,}: not used, llama.cpp has {rule.fixed:,} tokens hard-coded")
    return [rule.kind if near else FULL for near in _near(raw, rule, layers, listed)], rule.fixed or window


def _near(raw: Keys, rule: Windows, layers: int, listed: bool) -> list[bool]:
    """Whether a layer keeps a window, layer by layer."""
    if listed:
        return [bool(each) for each in per_layer(raw, PATTERN, layers, most=1)]
    period = raw.maybe(PATTERN, MOST_LAYERS, least=0)
    if period is not None and not rule.number:
        raise raw.refusal(PATTERN, f"{period}, but this architecture needs a list with one entry for each of the {layers} layers")
    period = rule.period if period is None else period
    if period is None:
        raise raw.refusal(PATTERN, "missing, and llama.cpp has no pattern of its own for this architecture")
    if period == 0:
        return [True] * layers
    return [index % period != (0 if rule.dense_first else period - 1) for index in range(layers)]


def _nemotron(raw: Keys, layers: int) -> list[str]:
    """One block per layer: attention where there are KV heads, a feed-forward where that has a width, else Mamba-2."""
    heads = per_layer(raw, "attention.head_count_kv", layers)
    widths = per_layer(raw, "feed_forward_length", layers, most=2**31)
    return [FULL if kv_heads else "mlp" if width else LINEAR for kv_heads, width in zip(heads, widths, strict=True)]


def _interleaved(raw: Keys, layers: int) -> list[str]:
    """The list of recurrent layers, else the last of every `full_attention_interval` (4 when absent) is full."""
    if raw.has(RECURRENT):
        return [LINEAR if recurrent else FULL for recurrent in per_layer(raw, RECURRENT, layers, most=1)]
    interval = raw.maybe(INTERVAL, MOST_LAYERS) or 4
    return [LINEAR if (index + 1) % interval else FULL for index in range(layers)]


def _compressed(raw: Keys, layers: int) -> list[str]:
    """A kind for each ratio. The list may go on past the layers."""
    if not raw.has(RATIOS):
        raise raw.refusal(RATIOS, "missing, and nothing is assumed for it")
    ratios = raw.wholes(RATIOS)
    if len(ratios) < layers:
        raise raw.refusal(RATIOS, f"must have one entry for each of the {layers} layers, it has {len(ratios):,}")
    for index, ratio in enumerate(ratios[:layers]):
        if ratio not in COMPRESSIONS:
            raise raw.refusal(RATIOS, f"layer {index} is {shown(ratio)}; known: {', '.join(map(str, COMPRESSIONS))}")
    return [COMPRESSIONS[ratio] for ratio in ratios[:layers]]
