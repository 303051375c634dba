"""GGUF architectures and keys as data: what llama.cpp calls a thing, and what transformers calls it.

Source: llama.cpp, `src/llama-arch.cpp` (names), `src/models/*.cpp` (`load_arch_hparams`: what each architecture reads and what it has
hard-coded) and `conversion/*.py` (what its converter writes), as of summer 2026; transformers 5.19 for the other side.
"""

from __future__ import annotations

from dataclasses import dataclass

# Architecture to model_type, where the two differ. A name on both sides of which stands the same word needs no row: see KNOWN.
MODEL_TYPES = {
    "chatglm": "glm", "command-r": "cohere", "cohere2moe": "cohere2_moe", "deci": "nemotron-nas", "deepseek2": "deepseek_v2",
    "deepseek2-ocr": "deepseek_v2", "deepseek32": "deepseek_v32", "deepseek4": "deepseek_v4", "ernie4_5-moe": "ernie4_5_moe",
    "exaone-moe": "exaone_moe", "falcon-h1": "falcon_h1", "gemma3": "gemma3_text", "gemma3n": "gemma3n_text", "gemma4": "gemma4_text",
    "glm-dsa": "glm_moe_dsa", "glm4moe": "glm4_moe", "gpt-oss": "gpt_oss", "gptneox": "gpt_neox", "granitehybrid": "granitemoehybrid",
    "hunyuan-dense": "hunyuan_v1_dense", "hunyuan-moe": "hunyuan_v1_moe", "hunyuan_vl": "hunyuan_vl_text", "kimi-k3": "kimi_linear",
    "kimi-linear": "kimi_linear", "lfm2moe": "lfm2_moe", "llama4": "llama4_text", "mimo2": "mimo_v2_flash", "minimax-m2": "minimax_m2",
    "mistral3": "ministral3", "nemotron_h_moe": "nemotron_h", "paddleocr": "paddleocr_vl_text", "phi2": "phi", "qwen2moe": "qwen2_moe",
    "qwen2vl": "qwen2_vl_text", "qwen3moe": "qwen3_moe", "qwen3next": "qwen3_next", "qwen3vl": "qwen3_vl_text",
    "qwen3vlmoe": "qwen3_vl_moe_text", "qwen35": "qwen3_5_text", "qwen35moe": "qwen3_5_moe_text", "starcoder": "gpt_bigcode",
    "step35": "step3p5",
}  # fmt: skip

# Every decoder whose layers llama.cpp's source settles; the window and state tables beside this file say which are not plain attention.
KNOWN = frozenset(MODEL_TYPES) | {
    "afmoe", "apertus", "arcee", "arctic", "baichuan", "bailingmoe", "bailingmoe2", "bitnet", "bloom", "chameleon", "codeshell", "cogvlm",
    "cohere2", "dbrx", "deepseek", "dots1", "ernie4_5", "exaone", "exaone4", "falcon", "gemma", "gemma2", "glm4", "gpt2", "gptj", "granite",
    "granitemoe", "grok", "grovemoe", "hy_v3", "internlm2", "jais", "jais2", "jamba", "laguna", "lfm2", "llama", "maincoder", "mamba",
    "mamba2", "mellum", "minicpm", "minicpm3", "mistral4", "mpt", "nemotron", "nemotron_h", "olmo", "olmo2", "olmoe", "openelm", "orion",
    "pangu-embedded", "phi3", "phimoe", "plamo", "plamo2", "plamo3", "plm", "qwen", "qwen2", "qwen3", "refact", "seed_oss", "smallthinker",
    "smollm3", "stablelm", "starcoder2", "t5", "talkie", "xverse",
}  # fmt: skip

# llama.cpp gives these no memory to fill (`create_memory`), or no forward over past tokens: encoders, embedders, diffusion, projectors.
NO_CACHE = frozenset({
    "bert", "clip", "dream", "eurobert", "gemma-embedding", "jina-bert-v2", "jina-bert-v3", "llada", "llada-moe", "llama-embed",
    "modern-bert", "neo-bert", "nomic-bert", "nomic-bert-moe", "rnd1", "t5encoder", "wavtokenizer-dec",
})  # fmt: skip

# Draft heads that cannot run alone: what they keep is the target model's, or is not settled by the file.
DRAFT_HEADS = frozenset({"dflash", "eagle3", "gemma4-assistant"})

# Facts that every architecture spells alike.
SAME_FACT = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.value_length": "v_head_dim",
    "context_length": "max_position_embeddings",
    "feed_forward_length": "intermediate_size",
    "vocab_size": "vocab_size",
    "nextn_predict_layers": "num_nextn_predict_layers",
}

# Keys that sound like a layout of their own, and say nothing of what a cache holds.
HARMLESS = frozenset({
    "rope.dimension_count_swa", "rope.freq_base_swa", "moe_latent_size", "expert_latent_length", "embedding_length_per_layer_input",
    "attention.output_lora_rank", "attention.q_lora_rank", "attention.indexer.head_count", "ssm.dt_b_c_rms", "kda.safe_gate",
    "kda.gate_lower_bound",
})  # fmt: skip

# Keys of a latent, by architecture: K and V are projected from it. Those in EXPANDED are cached expanded by llama.cpp, whatever the file.
LATENT = frozenset({"deepseek2", "deepseek32", "glm-dsa", "kimi-k3", "kimi-linear", "minicpm3", "mistral4", "plm"})
EXPANDED = frozenset({"minicpm3", "plm"})
INDEXED = {"deepseek32", "glm-dsa"}
# `src/models/glm-dsa.cpp`: GLM-5.2 is told by its context; without a list its first two layers and then every fourth have an indexer.
GLM_SHARED_FROM_CONTEXT = 1_048_576

# transformers has no number of KV heads of their own for these: as many as query heads.
ONE_KV_HEAD_PER_HEAD = frozenset({"bloom", "gpt2", "gptj", "gptneox", "mpt"})


@dataclass(frozen=True)
class StateKeys:
    """Where transformers keeps the facts of a recurrent layer. names: GGUF key to its key.

    inner: key for `ssm.inner_size` divided by the GGUF key `per`.
    """

    names: dict[str, str]
    inner: str | None = None
    per: str = "ssm.time_step_rank"


def _mamba2(heads: str, state: str, groups: str, conv: str, width: str) -> StateKeys:
    return StateKeys({"ssm.time_step_rank": heads, "ssm.state_size": state, "ssm.group_count": groups, "ssm.conv_kernel": conv}, width)


_JAMBA = StateKeys({"ssm.state_size": "mamba_d_state", "ssm.conv_kernel": "mamba_d_conv"}, "mamba_expand", "embedding_length")
_HYBRID = _mamba2("mamba_n_heads", "mamba_d_state", "mamba_n_groups", "mamba_d_conv", "mamba_d_head")
_NEMOTRON = _mamba2("mamba_num_heads", "ssm_state_size", "n_groups", "conv_kernel", "mamba_head_dim")
_DELTA = _mamba2("linear_num_value_heads", "linear_key_head_dim", "linear_num_key_heads", "linear_conv_kernel_dim", "linear_value_head_dim")
_KIMI = StateKeys({"ssm.conv_kernel": "linear_conv_kernel_dim", "kda.head_dim": "linear_head_dim"})
_SHORT = StateKeys({"shortconv.l_cache": "conv_L_cache"})

STATES: dict[str, StateKeys] = {
    "mamba": StateKeys({"ssm.inner_size": "intermediate_size", "ssm.state_size": "state_size", "ssm.conv_kernel": "conv_kernel"}),
    "mamba2": _mamba2("num_heads", "state_size", "n_groups", "conv_kernel", "head_dim"),
    "jamba": _JAMBA,
    # PLaMo-2's convolution runs over its channels alone (`ssm.group_count` 0), so its states have Jamba's shapes.
    "plamo2": _JAMBA,
    "falcon-h1": _HYBRID,
    "granitehybrid": _HYBRID,
    "nemotron_h": _NEMOTRON,
    "nemotron_h_moe": _NEMOTRON,
    "qwen3next": _DELTA,
    "qwen35": _DELTA,
    "qwen35moe": _DELTA,
    "kimi-linear": _KIMI,
    "kimi-k3": _KIMI,
    "lfm2": _SHORT,
    "lfm2moe": _SHORT,
}
