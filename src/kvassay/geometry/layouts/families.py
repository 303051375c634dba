"""The families of layouts: one row per model_type that differs from "K and V of every token in every layer", or that is known not to.

Rules were read from transformers 5.19 (`configuration_*.py`, `modeling_*.py`), and are compared with it by `make oracle-geometry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kvassay.geometry.configuration.keys import MOST_LAYERS, Keys, shown
from kvassay.geometry.layouts import attention, kinds, states
from kvassay.geometry.layouts.attention import ShapeRule
from kvassay.geometry.layouts.kinds import Kind, KindRule
from kvassay.geometry.layouts.states import StateRule


@dataclass(frozen=True)
class Family:
    """How to read one family. module: name of a layer's attention in transformers, `{}` for the index of the layer.

    full_means_indexed: a written "full_attention" has an indexer beside it. attentions_per_layer: caches that each layer keeps. k_is_v: K
    serves as V, so one of them is stored.
    """

    kinds: KindRule = kinds.all_full
    shape: ShapeRule = attention.grouped
    state: StateRule | None = None
    window: str = "sliding_window"
    module: str = "model.layers.{}.self_attn"
    state_module: str = "model.layers.{}.mamba"
    full_means_indexed: bool = False
    attentions_per_layer: int = 1
    k_is_v: bool = False


def nemotron_h_kinds(keys: Keys, layers: int) -> Sequence[Kind]:
    """One letter per layer: M Mamba-2, * attention, E and - nothing. Raises BadInput for another letter."""
    letters: dict[str, Kind] = {"M": "recurrent", "*": "full", "E": "none", "-": "none"}
    pattern = keys.get("hybrid_override_pattern")
    if not isinstance(pattern, str):
        raise keys.refusal("hybrid_override_pattern", f"must be a text of one letter per layer, not {shown(pattern)}")
    if len(pattern) != layers:
        raise keys.refusal("hybrid_override_pattern", f"names {len(pattern):,} layers, num_hidden_layers is {layers}")
    for letter in pattern:
        if letter not in letters:
            raise keys.refusal("hybrid_override_pattern", f"{shown(letter)} is no known kind of layer; known: {' '.join(letters)}")
    return [letters[letter] for letter in pattern]


def kimi_kinds(keys: Keys, layers: int) -> Sequence[Kind]:
    """Full layers in `linear_attn_config.full_attn_layers`, counted from 1; without it every fourth layer."""
    inner = keys.inside("linear_attn_config")
    if inner.has("full_attn_layers"):
        full = set(inner.wholes("full_attn_layers", most=layers, least=1))
        delta = set(inner.wholes("kda_layers", most=layers, least=1)) if inner.has("kda_layers") else set(range(1, layers + 1)) - full
        if full & delta or full | delta != set(range(1, layers + 1)):
            raise inner.refusal("kda_layers", f"with full_attn_layers must name each of the {layers} layers once")
        return ["full" if index + 1 in full else "recurrent" for index in range(layers)]
    return kinds.last_of_every(4, near="recurrent")(keys, layers)


def mimo_kinds(keys: Keys, layers: int) -> Sequence[Kind]:
    """`hybrid_layer_pattern`: 0 full, 1 window; without it the first layer and the last of every six are full."""
    keys.get("attention_chunk_size")  # repeats the window in the published file
    if keys.has("hybrid_layer_pattern"):
        return kinds.numbered("hybrid_layer_pattern", ("full", "sliding"))(keys, layers)
    return ["full" if index == 0 or not (index + 1) % 6 else "sliding" for index in range(layers)]


def llama4_kinds(keys: Keys, layers: int) -> Sequence[Kind]:
    """Layers without rotary position (every fourth) attend to everything, the others to their chunk."""
    if keys.get("no_rope_layers"):
        return kinds.numbered("no_rope_layers", ("full", "chunked"))(keys, layers)
    return kinds.last_of_every("no_rope_layer_interval", near="chunked")(keys, layers)


def smollm3_kinds(keys: Keys, layers: int) -> Sequence[Kind]:
    """A window, where one is switched on, in the layers without rotary position."""
    if not kinds.window_on(keys):
        return ["full"] * layers
    return kinds.numbered("no_rope_layers", ("sliding", "full"))(keys, layers)


def lettered_kinds(keys: Keys, layers: int) -> Sequence[Kind]:
    """`sliding_window_pattern` as a number (last of every n is full) or as letters, L a window and G all; no window where it is null."""
    if not kinds.window_on(keys):
        return ["full"] * layers
    pattern = keys.get("sliding_window_pattern")
    if not isinstance(pattern, str):
        return kinds.last_of_every("sliding_window_pattern")(keys, layers)
    if not pattern or set(pattern) - {"L", "G"}:
        raise keys.refusal("sliding_window_pattern", f"{shown(pattern)} is not made of L (window) and G (all)")
    return ["sliding" if pattern[index % len(pattern)] == "L" and index < layers - 1 else "full" for index in range(layers)]


def smallthinker_kinds(keys: Keys, layers: int) -> Sequence[Kind]:
    """`sliding_window_layout`: 0 full, 1 window."""
    keys.has("sliding_window")  # counts as read, also where no layer has one
    if not keys.has("sliding_window_layout"):
        return ["full"] * layers
    return kinds.numbered("sliding_window_layout", ("full", "sliding"))(keys, layers)


def dense_prefix_kinds(keys: Keys, layers: int) -> Sequence[Kind]:
    """Cohere2 MoE: the dense layers in front have a pattern of their own."""
    first = min(keys.maybe("first_k_dense_replace", MOST_LAYERS, least=0) or 0, layers)
    front = kinds.last_of_every("prefix_dense_sliding_window_pattern")(keys, first)
    return [*front, *kinds.last_of_every("sliding_window_pattern")(keys, layers - first)]


def gpt_neo_kinds(keys: Keys, layers: int) -> Sequence[Kind]:
    """`attention_types`: pairs of a list of kinds and how often it repeats."""
    if not keys.has("attention_types"):
        return kinds.last_of_every(2, far="sliding", near="full")(keys, layers)
    made: list[Kind] = []
    for entry in keys.listing("attention_types"):
        if not (
            isinstance(entry, list)
            and len(entry) == 2
            and isinstance(entry[0], list)
            and type(entry[1]) is int
            and 0 < entry[1] <= layers
            and len(entry[0]) * entry[1] <= layers
        ):
            raise keys.refusal("attention_types", f"must hold pairs of kinds and a count, of {layers} layers in all, not {shown(entry)}")
        unit = kinds.written_kinds(keys.with_values({"attention_types": entry[0]}), "attention_types", len(entry[0]))
        made += unit * entry[1]
        if len(made) > layers:
            break
    return made


def compressed_kinds(keys: Keys, layers: int) -> Sequence[Kind]:
    """DeepSeek V4: two heavily compressed layers, then the two compressions in turn; or `compress_ratios` per layer."""
    if keys.has("compress_ratios"):
        by_ratio: dict[int, Kind] = {0: "sliding", 4: "compressed", 128: "heavily_compressed"}
        ratios = keys.wholes("compress_ratios", most=MOST_LAYERS)[:layers]
        for ratio in ratios:
            if ratio not in by_ratio:
                raise keys.refusal("compress_ratios", f"{ratio} is no known compression; known: 0, 4, 128")
        return [by_ratio[ratio] for ratio in ratios]
    return ["heavily_compressed" if index < 2 or not index % 2 else "compressed" for index in range(layers)]


def decoders_only(keys: Keys, layers: int) -> Sequence[Kind]:
    """Full attention where the file says that it is a decoder. Raises BadInput where it does not."""
    if not keys.flag("is_decoder"):
        raise keys.refusal("is_decoder", f"not true, so this {keys.model_type} is an encoder, which keeps no KV cache")
    return kinds.all_full(keys, layers)


def zamba_kinds(keys: Keys, layers: int) -> Sequence[Kind]:
    """Mamba in every layer; attention beside it in the third, and from then on by period and offset."""
    front: list[Kind] = ["recurrent", "recurrent", "hybrid"]
    return [*front[:layers], *kinds.offset_of_every("attn_layer_period", "attn_layer_offset", far="hybrid")(keys, max(layers - 3, 0))]


def interleaved_indexers(keys: Keys, layers: int) -> Sequence[Kind]:
    """Sparse layers where `sparse_attention_config.sparse_attention_freq` is 1, full ones elsewhere."""
    inner = keys.inside("sparse_attention_config")
    if not inner.has("sparse_attention_freq"):
        return ["full"] * layers
    return kinds.numbered("sparse_attention_freq", ("full", "indexed"))(inner, layers)


PLAIN = Family()
WINDOWED = Family(kinds=kinds.window_everywhere)
AFTER = Family(kinds=kinds.window_after)
GPT2 = Family(module="transformer.h.{}.attn")
SHARED_BLOCK = "model.layers.{}.shared_transformer.self_attn"
EVERY_NTH = "full_attention_interval"
DELTA = Family(kinds=kinds.last_of_every(EVERY_NTH, near="recurrent"), state=states.gated_delta, state_module="model.layers.{}.linear_attn")
MAMBA2 = Family(state=states.mamba2)
EVERY_SIXTH = Family(kinds=kinds.ending_full(kinds.last_of_every(6)), shape=attention.global_apart)

# Encoders that transformers also registers as decoders: only a file that says is_decoder keeps a cache.
ENCODERS = (
    "bert", "bert-generation", "big_bird", "camembert", "data2vec-text", "electra", "ernie", "megatron-bert", "rembert", "roberta",
    "roberta-prelayernorm", "roc_bert", "roformer", "xlm-roberta", "xlm-roberta-xl", "xmod",
)  # fmt: skip


def _encoder_module(model_type: str) -> str:
    """Where such an encoder keeps its self-attention: under the name of its base model."""
    bases = {"megatron-bert": "bert", "data2vec-text": "data2vec_text", "bert-generation": "bert", "big_bird": "bert"}
    base = bases.get(model_type, "roberta" if model_type in ("camembert", "xmod", "xlm-roberta", "xlm-roberta-xl") else model_type)
    base = base.replace("-", "_")
    return f"{base}.encoder.layer.{{}}.attention.self"


# K and V of every token in every layer, with nothing to add.
PLAIN_TYPES = (
    "llama", "phi", "olmo", "olmo2", "olmoe", "granite", "granitemoe", "granitemoeshared", "stablelm", "cohere", "gemma", "helium",
    "ernie4_5", "ernie4_5_moe", "seed_oss", "arcee", "apertus", "glm", "glm4", "glm4_moe", "hunyuan_v1_dense", "hunyuan_v1_moe",
    "minimax_m2", "bitnet", "persimmon", "nemotron", "solar_open", "flex_olmo", "aria_text", "jais2", "hyperclovax", "hy_v3",
    "nanochat", "mllama_text_model", "qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text", "qwen3_vl_moe_text", "deepseek_v2",
    "minicpm3", "glm4_moe_lite", "youtu", "axk1", "mistral4", "diffllama", "xglm", "glm4v_text", "glm4v_moe_text", "glm_ocr_text",
    "ernie4_5_vl_moe_text", "emu3_text_model", "chameleon", "mimo", "mllama", "arctic", "baichuan", "bailingmoe", "bailingmoe2",
    "codeshell", "cogvlm", "deepseek", "exaone", "grok", "grovemoe", "hunyuan_vl_text", "internlm2", "jais", "maincoder", "minicpm",
    "orion", "paddleocr_vl_text", "pangu-embedded", "plamo", "plm", "qwen", "refact", "talkie", "xverse",
)  # fmt: skip

FAMILIES: dict[str, Family] = {
    **{name: Family(kinds=decoders_only, shape=attention.multi_head, module=_encoder_module(name)) for name in ENCODERS},
    **dict.fromkeys(PLAIN_TYPES, PLAIN),
    **dict.fromkeys((
        "mistral", "mixtral", "starcoder2", "phi3", "phimoe", "phi4_multimodal", "phi4mm", "ministral", "ministral3", "moshi",
        "kyutai_speech_to_text", "voxtral_realtime_text", "qwen3_moe", "qwen3_omni_moe_text", "doge",
    ), WINDOWED),
    **dict.fromkeys(("qwen2", "qwen2_moe", "qwen3", "dots1", "qwen2_5_omni_text", "deepseek_ocr2_text"), AFTER),
    "smollm3": Family(kinds=smollm3_kinds),
    "gemma2": Family(kinds=kinds.last_of_every(2)),
    "vaultgemma": Family(kinds=kinds.last_of_every(2)),
    "gemma3_text": Family(kinds=kinds.last_of_every("sliding_window_pattern")),
    "gemma3n_text": Family(kinds=kinds.last_of_every(5)),
    **dict.fromkeys(("gemma4_text", "gemma4_unified_text", "diffusion_gemma_text"), EVERY_SIXTH),
    "cohere2": Family(kinds=kinds.last_of_every("sliding_window_pattern"), shape=attention.as_wide_as_hidden),
    "cohere2_moe": Family(kinds=dense_prefix_kinds),
    "cohere_compass_text": Family(shape=attention.as_wide_as_hidden),
    **dict.fromkeys(("exaone4", "exaone_moe"), Family(kinds=lettered_kinds)),
    "olmo3": Family(kinds=kinds.last_of_every(4)),
    "gpt_oss": Family(kinds=kinds.last_of_every(2)),
    "cwm": Family(kinds=kinds.first_of_every(4)),
    **dict.fromkeys(("granite_swa", "granitemoe_swa"), Family(kinds=kinds.first_of_every(4))),
    "afmoe": Family(kinds=kinds.last_of_every("global_attn_every_n_layers")),
    "llama4_text": Family(kinds=llama4_kinds, window="attention_chunk_size"),
    "mimo_v2_flash": Family(kinds=mimo_kinds, shape=attention.twice_the_heads),
    **dict.fromkeys(("laguna", "mellum", "step3p5"), PLAIN),
    "inkling_text": Family(
        kinds=kinds.last_of_every(6, far="hybrid", near="hybrid_sliding"),
        shape=attention.sliding_apart,
        state=states.four_convolutions,
    ),
    "gpt_neo": Family(kinds=gpt_neo_kinds, window="window_size", module="transformer.h.{}.attn.attention"),
    **dict.fromkeys(("gpt2", "gpt-sw3", "openai-gpt", "gptj", "codegen"), replace(GPT2, shape=attention.multi_query)),
    **dict.fromkeys(("gpt_bigcode", "santacoder", "starcoder"), replace(GPT2, shape=attention.multi_query)),
    "gpt_neox_japanese": Family(shape=attention.multi_head, module="gpt_neox_japanese.layers.{}.attention"),
    "biogpt": Family(shape=attention.multi_head, module="biogpt.layers.{}.self_attn"),
    "ctrl": replace(GPT2, module="transformer.h.{}.multi_head_attention"),
    "modernbert-decoder": Family(kinds=kinds.first_of_every("global_attn_every_n_layers"), module="model.layers.{}.attn"),
    "gpt_neox": Family(shape=attention.multi_head, module="gpt_neox.layers.{}.attention"),
    "bloom": Family(shape=attention.multi_head, module="transformer.h.{}.self_attention"),
    "mpt": Family(shape=attention.multi_head, module="transformer.blocks.{}.attn"),
    "opt": Family(shape=attention.multi_head, module="model.decoder.layers.{}.self_attn"),
    **dict.fromkeys(("falcon", "RefinedWeb", "RefinedWebModel"), Family(shape=attention.falcon, module="transformer.h.{}.self_attention")),
    "dbrx": Family(shape=attention.nested_attention, module="transformer.blocks.{}.norm_attn_norm.attn"),
    "longcat_flash": Family(module="model.layers.{half}.self_attn.{odd}", attentions_per_layer=2),
    "chatglm": Family(shape=attention.grouped_by_switch),
    "jetmoe": Family(shape=attention.kv_channels, module="model.layers.{}.self_attention"),
    "openelm": Family(module="transformer.layers.{}.attn"),
    **dict.fromkeys(("nemotron-nas", "deci"), Family(shape=attention.by_blocks)),
    **dict.fromkeys(("deepseek_v3", "kimi_k2"), Family(kinds=kinds.indexed_if_asked)),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa", "axk2", "hy_v4"), Family(kinds=kinds.same("indexed"), full_means_indexed=True)),
    "minimax_m3_vl_text": Family(kinds=interleaved_indexers),
    "deepseek_v4": Family(kinds=compressed_kinds, k_is_v=True),
    "kimi_linear": Family(kinds=kimi_kinds, state=states.kimi_delta),
    "glm5_next_text": Family(
        kinds=kinds.last_of_every(4, far="indexed", near="recurrent"), state=states.kimi_delta, full_means_indexed=True
    ),
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"), DELTA),
    "qwen4_exp_text": replace(
        DELTA, kinds=kinds.last_of_every(EVERY_NTH, far="indexed", near="recurrent"), full_means_indexed=True
    ),
    "olmo_hybrid": replace(DELTA, kinds=kinds.last_of_every(4, near="recurrent")),
    "minimax": Family(kinds=kinds.last_of_every(2, near="recurrent"), state=states.lightning),
    **dict.fromkeys(
        ("minimax_text_01", "minimax_m1"),
        Family(kinds=kinds.numbered("attn_type_list", ("recurrent", "full")), state=states.lightning),
    ),
    "smallthinker": Family(kinds=smallthinker_kinds),
    "plamo3": Family(kinds=lettered_kinds),
    "jamba": Family(kinds=kinds.offset_of_every("attn_layer_period", "attn_layer_offset"), state=states.mamba),
    "bamba": replace(MAMBA2, kinds=kinds.listed("attn_layer_indices", "full", "recurrent")),
    "granitemoehybrid": replace(MAMBA2, kinds=kinds.same("recurrent")),
    "nemotron_h": replace(MAMBA2, kinds=nemotron_h_kinds, module="model.layers.{}.mixer", state_module="model.layers.{}.mixer"),
    "falcon_h1": replace(MAMBA2, kinds=kinds.same("hybrid")),
    "zamba2": replace(MAMBA2, shape=attention.twice_as_wide, module=SHARED_BLOCK),
    "zamba": Family(kinds=zamba_kinds, shape=attention.twice_as_wide, state=states.mamba, module="model.layers.{}.shared_transf.self_attn"),
    "mamba2": replace(MAMBA2, kinds=kinds.same("recurrent"), state_module="backbone.layers.{}.mixer"),
    **dict.fromkeys(
        ("mamba", "falcon_mamba"), Family(kinds=kinds.same("recurrent"), state=states.mamba, state_module="backbone.layers.{}.mixer")
    ),
    **dict.fromkeys(("lfm2", "lfm2_moe"), Family(kinds=kinds.listed("full_attn_idxs", "full", "recurrent"), state=states.short_conv)),
    "recurrent_gemma": Family(kinds=kinds.repeated("block_types"), state=states.gated_lru),
    "zaya": Family(kinds=kinds.same("hybrid"), state=states.delayed_values),
    "rwkv": Family(kinds=kinds.same("recurrent"), state=states.rwkv, state_module="rwkv.blocks.{}.attention"),
}  # fmt: skip
