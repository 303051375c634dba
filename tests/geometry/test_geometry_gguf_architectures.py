"""GGUF headers of every kind of layout, with the bytes that the published architecture gives, worked out by hand (BF16: 2 bytes)."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from kvassay.errors import BadInput
from kvassay.geometry.config import read_geometry
from kvassay.geometry.gguf.architectures import KNOWN, LATENT, MODEL_TYPES, NO_CACHE, STATES
from kvassay.geometry.gguf.kinds import WINDOWS
from kvassay.geometry.layouts.layout import Choice
from support.families import config, read_config
from support.gguf_files import model, write


@dataclass(frozen=True)
class File:
    """A header, and what one request's cache holds."""

    name: str
    architecture: str
    values: dict[str, Any]
    model_type: str
    growth: int
    kinds: dict[str, int]
    window: int = 0
    fixed: int = 0
    indexer: int = 0


def shape(layers: int, hidden: int, heads: Any, kv_heads: Any = None, width: int | None = None, **more: Any) -> dict[str, Any]:
    """The keys that converters write for plain attention; `more` has `__` for a dot."""
    plain = {"block_count": layers, "context_length": 8192, "embedding_length": hidden, "feed_forward_length": 4 * hidden}
    kv = {} if kv_heads is None else {"attention.head_count_kv": kv_heads}
    widths = {} if width is None else {"attention.key_length": width, "attention.value_length": width}
    norm = {"attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 1e4}
    return plain | norm | {"attention.head_count": heads} | kv | widths | {key.replace("__", "."): value for key, value in more.items()}


def windows(size: int, pattern: Any = None) -> dict[str, Any]:
    return {"attention__sliding_window": size} | ({} if pattern is None else {"attention__sliding_window_pattern": pattern})


def ssm(conv: int, state: int, rank: int, inner: int, groups: int | None = None) -> dict[str, Any]:
    values = {"ssm__conv_kernel": conv, "ssm__state_size": state, "ssm__time_step_rank": rank, "ssm__inner_size": inner}
    return values | ({} if groups is None else {"ssm__group_count": groups})


MLA = {
    "attention__kv_lora_rank": 512, "attention__q_lora_rank": 1536, "rope__dimension_count": 64, "attention__key_length": 576,
    "attention__value_length": 512, "attention__key_length_mla": 192, "attention__value_length_mla": 128,
}  # fmt: skip
DSA = {"attention__indexer__head_count": 64, "attention__indexer__key_length": 128, "attention__indexer__top_k": 2048}
LAST_OF_FIVE = [index % 5 != 4 for index in range(35)]
LAST_OF_SIX = [index % 6 != 5 for index in range(60)]
MIMO = [int(index not in (0, 5, 11, 17, 23, 29, 35, 41, 47)) for index in range(51)]
STEP = [index % 4 != 0 for index in range(45)]
GRANITE = [4 if index in (5, 15, 25, 35) else 0 for index in range(40)]
LFM2 = [8 if index in (2, 5, 8, 10, 12, 14) else 0 for index in range(16)]
KIMI = [1 if index + 1 in (4, 8, 12, 16, 20, 24, 27) else 0 for index in range(27)]

PLAIN = [
    # 2 × 8 KV heads × 128 × 2 bytes × 32 layers.
    File("Llama-3.1-8B", "llama", shape(32, 4096, 32, 8, 128), "llama", 131_072, {"full": 32}),
    # 2 × 8 × 128 × 2 × 28; the width comes from 3584 / 28.
    File("Qwen2.5-7B", "qwen2", shape(28, 3584, 28, 4), "qwen2", 2 * 4 * 128 * 2 * 28, {"full": 28}),
    # No number of KV heads: as many as heads. 2 × 12 × 64 × 2 × 12.
    File("GPT-2", "gpt2", shape(12, 768, 12), "gpt2", 36_864, {"full": 12}),
    # One KV head: 2 × 1 × 128 × 2 × 40.
    File("StarCoder-15B", "starcoder", shape(40, 6144, 48, 1), "gpt_bigcode", 20_480, {"full": 40}),
    # One KV head of 4544 / 71 = 64: 2 × 64 × 2 × 32.
    File("Falcon-7B", "falcon", shape(32, 4544, 71, 1), "falcon", 8_192, {"full": 32}),
    # 2 × 8 × 64 × 2 × 60.
    File("Falcon-40B", "falcon", shape(60, 8192, 128, 8), "falcon", 122_880, {"full": 60}),
    # 2 × 8 × 128 × 2 × 40.
    File("DBRX", "dbrx", shape(40, 6144, 48, 8), "dbrx", 163_840, {"full": 40}),
    # 2 × 2 × 128 × 2 × 28.
    File("ChatGLM3-6B", "chatglm", shape(28, 4096, 32, 2), "glm", 28_672, {"full": 28}),
    # Converters write Phi-3's window, llama.cpp reads it and keeps every token: 2 × 32 × 96 × 2 × 32.
    File("Phi-3-mini-4k", "phi3", shape(32, 3072, 32, 32, **windows(2047)), "phi3", 393_216, {"full": 32}),
    # 46 layers and a prediction layer that block_count counts: 2 × 8 × 128 × 2 × 46.
    File("GLM-4.5-Air", "glm4moe", shape(47, 4096, 96, 8, 128, nextn_predict_layers=1), "glm4_moe", 188_416, {"full": 46}),
    # 63 KV heads in all (case G1-18): 2 × 63 × 64 × 2.
    File("OpenELM-270M", "openelm", shape(16, 1280, [12] * 5 + [16] * 7 + [20] * 4, [3] * 5 + [4] * 7 + [5] * 4, 64), "openelm", 16_128, {"full": 16}),
    # Layers without KV heads keep nothing: 2 × (8 + 4) × 128 × 2.
    File("Nemotron NAS, four layers", "deci", shape(4, 8192, [64, 64, 64, 0], [8, 0, 4, 0], 128), "nemotron-nas", 6_144, {"full": 2, "none": 2}),
    # 2 × 5 × 128 × 2 × 40.
    File("PLaMo-13B", "plamo", shape(40, 5120, 40, 5), "plamo", 102_400, {"full": 40}),
    # Self: 2 × 8 × 64 × 2 × 6. Cross: the same for 512 rows, once.
    File("T5-small", "t5", shape(6, 512, 8, None, 64, decoder_block_count=6) | {"context_length": 512}, "t5", 12_288, {"full": 6, "cross": 6}, fixed=12_288 * 512),
]  # fmt: skip

WINDOWED = [
    # Every second layer is full, 2 × 8 × 256 × 2 each; the window is 4,096 also in a file that names none.
    File("Gemma-2-9B", "gemma2", shape(42, 3584, 16, 8, 256), "gemma2", 21 * 8_192, {"full": 21, "sliding": 21}, window=21 * 8_192 * 4096),
    # The last of every six: 10 of 62. 2 × 16 × 128 × 2 each.
    File("Gemma-3-27B", "gemma3", shape(62, 5376, 32, 16, 128, **windows(1024)), "gemma3_text", 81_920, {"full": 10, "sliding": 52}, window=52 * 8_192 * 1024),
    File("Gemma 3 without a window", "gemma3", shape(62, 5376, 32, 16, 128), "gemma3_text", 62 * 8_192, {"full": 62}),
    # The first 20 layers own a cache, 4 of them full: 2 × 2 × 256 × 2 each.
    File("Gemma-3n-E4B", "gemma3n", shape(35, 2048, 8, 2, 256, **windows(512, LAST_OF_FIVE)), "gemma3n_text", 8_192, {"full": 7, "sliding": 28}, window=16 * 2_048 * 512),
    # Case G1-07: 15 owners, 3 full with heads of 512, 12 sliding with heads of 256.
    File("Gemma-4-E2B", "gemma4", shape(35, 1536, 8, 1, 512, **windows(512, LAST_OF_FIVE), attention__shared_kv_layers=20, attention__key_length_swa=256, attention__value_length_swa=256, embedding_length_per_layer_input=256), "gemma4_text", 6_144, {"full": 7, "sliding": 28}, window=6_291_456),
    # Case G1-05: 10 full layers of 4 × 512, 50 sliding ones of 16 × 256.
    File("Gemma-4-31B", "gemma4", shape(60, 5376, 32, [16 if near else 4 for near in LAST_OF_SIX], 512, **windows(1024, LAST_OF_SIX), attention__shared_kv_layers=0, attention__key_length_swa=256, attention__value_length_swa=256, embedding_length_per_layer_input=0), "gemma4_text", 81_920, {"full": 10, "sliding": 50}, window=50 * 16_384 * 1024),
    # Every second layer is full: 2 × 8 × 64 × 2 × 12.
    File("gpt-oss-20b", "gpt-oss", shape(24, 2880, 64, 8, 64, **windows(128)), "gpt_oss", 24_576, {"full": 12, "sliding": 12}, window=12 * 2_048 * 128),
    # Case G1-28: chunks of 8,192 that llama.cpp has hard-coded, the last of every four layers is full.
    File("Llama-4-Scout", "llama4", shape(48, 5120, 40, 8, 128) | {"context_length": 10_485_760}, "llama4_text", 49_152, {"full": 12, "chunked": 36}, window=1_207_959_552),
    File("Llama 4 without chunks", "llama4", shape(48, 5120, 40, 8, 128, **windows(0)), "llama4_text", 196_608, {"full": 48}),
    # The last of every four: 2 × 8 × 128 × 2 × 8.
    File("Command R7B", "cohere2", shape(32, 4096, 32, 8, **windows(4096)), "cohere2", 32_768, {"full": 8, "sliding": 24}, window=24 * 4_096 * 4096),
    # Windows only in the model of 64 layers.
    File("EXAONE-4.0-32B", "exaone4", shape(64, 5120, 40, 8, 128, **windows(4096)), "exaone4", 65_536, {"full": 16, "sliding": 48}, window=48 * 4_096 * 4096),
    File("EXAONE-4.0-1.2B", "exaone4", shape(30, 2048, 32, 8, 64), "exaone4", 61_440, {"full": 30}),
    # OLMo 3 is written as OLMo 2 with a window: 2 × 32 × 128 × 2 × 8.
    File("OLMo-3-7B", "olmo2", shape(32, 4096, 32, 32, **windows(4096)), "olmo3", 131_072, {"full": 8, "sliding": 24}, window=24 * 16_384 * 4096),
    # The first of every four is full: 2 × 4 × 128 × 2 × 13.
    File("SmallThinker-21B", "smallthinker", shape(52, 2560, 28, 4, 128, **windows(4096)), "smallthinker", 26_624, {"full": 13, "sliding": 39}, window=39 * 2_048 * 4096),
    # Heads per layer, KV heads alike: 2 × 8 × 128 × 2 × 10.
    File("Laguna-XS.2", "laguna", shape(40, 2048, [48, 64, 64, 64] * 10, 8, 128, **windows(512)), "laguna", 40_960, {"full": 10, "sliding": 30}, window=30 * 4_096 * 512),
    # Keys of 192, values of 128; 4 KV heads in 9 full layers, 8 in 39 sliding ones; three prediction layers at the end.
    File("MiMo-V2-Flash", "mimo2", shape(51, 4096, 64, [8 if near else 4 for near in MIMO], 192, **windows(128, MIMO), nextn_predict_layers=3) | {"attention.value_length": 128}, "mimo_v2_flash", 9 * 4 * 320 * 2, {"full": 9, "sliding": 39}, window=39 * 8 * 320 * 2 * 128),
    # The first of every four is full: 2 × 8 × 128 × 2 × 12.
    File("Step-3.5-Flash", "step35", shape(45, 4096, [96 if near else 64 for near in STEP], [8] * 45, 128, **windows(512, STEP)), "step3p5", 49_152, {"full": 12, "sliding": 33}, window=33 * 4_096 * 512),
    # A pattern of every second layer in place of the every fourth that llama.cpp has: 2 × 8 × 128 × 2 × 16.
    File("AFMoE with a pattern of its own", "afmoe", shape(32, 2048, 16, 8, 128, **windows(1024, 2)), "afmoe", 65_536, {"full": 16, "sliding": 16}, window=16 * 4_096 * 1024),
]  # fmt: skip

LATENT_FILES = [
    # Case G1-09: one latent of 512 + 64 in each of 61 layers.
    File("DeepSeek-V3", "deepseek2", shape(61, 7168, 128, 1, **MLA, expert_gating_func=2), "deepseek_v3", 70_272, {"mla": 61}),
    # Case G1-12, in a file from before the latent was kept: lengths of the heads in place of the latent's.
    File("DeepSeek-V2-Lite, older file", "deepseek2", shape(27, 2048, 16, 16, attention__kv_lora_rank=512, rope__dimension_count=64, attention__key_length=192, attention__value_length=128), "deepseek_v2", 31_104, {"mla": 27}),
    # With an indexer key of 128 bytes and a scale of 4 in every layer, and a prediction layer apart.
    File("DeepSeek-V3.2", "deepseek32", shape(62, 7168, 128, 1, **MLA, **DSA, nextn_predict_layers=1), "deepseek_v32", 70_272, {"mla": 61}, indexer=61 * 132),
    # A context of 1,048,576 tells GLM-5.2, where layers 0, 1, 2, 6, 10, ... 74 have an indexer: 21 of 78.
    File("GLM-5.2", "glm-dsa", shape(79, 6144, 64, 1, **MLA, **DSA, nextn_predict_layers=1) | {"context_length": 1_048_576}, "glm_moe_dsa", 89_856, {"mla": 78}, indexer=21 * 132),
    File("GLM-5", "glm-dsa", shape(78, 6144, 64, 1, **MLA, **DSA), "glm_moe_dsa", 89_856, {"mla": 78}, indexer=78 * 132),
    File("GLM 5 with a list", "glm-dsa", shape(4, 6144, 64, 1, **MLA, **DSA, attention__indexer__types=[True, False, False, True]), "glm_moe_dsa", 4 * 1_152, {"mla": 4}, indexer=2 * 132),
    # 256 + 32 in each of 62 layers; values are as wide as 2560 / 40.
    File("MiniCPM3-4B", "minicpm3", shape(62, 2560, 40, 40, attention__kv_lora_rank=256, rope__dimension_count=32, attention__key_length=96), "minicpm3", 62 * 288 * 2, {"mla": 62}),
    # Ratio 0: a window of 128 rows of 512. Ratio 4 and 128: that, and a row of 512 for so many tokens: 1,024 / 4 × 2 + 1,024 / 128; two
    # indexers of 132 bytes for every 4. The compressors: two of 3 open rows, twice as wide, and 4 of overlap, K and gate, of 512 + 128; and 2 × 127 of 512.
    File("DeepSeek-V4, four layers", "deepseek4", shape(4, 4096, 64, 1, 512, **windows(128), **DSA, attention__compress_ratios=[0, 4, 128, 4, 0]), "deepseek_v4", 520, {"sliding": 4, "full": 3}, window=4 * 1_024 * 128, indexer=66, fixed=(2 * 2 * (3 * 2 + 4) * 640 + 2 * 127 * 512) * 2),
]  # fmt: skip

RECURRENT = [
    # FP32 matrix 5,120 × 16; the convolution keeps 3 columns of 5,120.
    File("Mamba-2.8B", "mamba", shape(64, 2560, 0, **ssm(4, 16, 160, 5120)) | {"feed_forward_length": 0}, "mamba", 0, {"recurrent": 64}, fixed=64 * (5120 * 16 * 4 + 5120 * 3 * 2)),
    File("Falcon-Mamba-7B", "mamba", shape(64, 4096, 0, **ssm(4, 16, 256, 8192), ssm__dt_b_c_rms=True) | {"feed_forward_length": 0}, "falcon_mamba", 0, {"recurrent": 64}, fixed=64 * (8192 * 16 * 4 + 8192 * 3 * 2)),
    # 80 heads of 64 × 128; the convolution runs over 5,120 channels and 2 × 128 of one group.
    File("Mamba2-2.7B", "mamba2", shape(64, 2560, 0, **ssm(4, 128, 80, 5120, 1)) | {"feed_forward_length": 0}, "mamba2", 0, {"recurrent": 64}, fixed=64 * (80 * 64 * 128 * 4 + (5120 + 256) * 3 * 2)),
    # KV heads in layers 4, 12, 20, 28 alone: 2 × 8 × 128 × 2 × 4.
    File("Jamba-v0.1", "jamba", shape(32, 4096, 32, [8 if index % 8 == 4 else 0 for index in range(32)], **ssm(4, 16, 256, 8192)), "jamba", 16_384, {"full": 4, "recurrent": 28}, fixed=28 * (8192 * 16 * 4 + 8192 * 3 * 2)),
    # PLaMo 2 writes no group and zero heads: 2 × 4 × 128 × 2 × 16.
    File("PLaMo-2-8B", "plamo2", shape(32, 4096, [0, 32] * 16, [0, 4] * 16, 128, **ssm(4, 64, 64, 8192, 0)), "plamo2", 32_768, {"full": 16, "recurrent": 16}, fixed=16 * (8192 * 64 * 4 + 8192 * 3 * 2)),
    # 2 × 4 × 128 × 2 × 4.
    File("Granite-4.0-H-Tiny", "granitehybrid", shape(40, 1536, 12, GRANITE, **ssm(4, 128, 48, 3072, 1)), "granitemoehybrid", 8_192, {"full": 4, "recurrent": 36}, fixed=36 * (48 * 64 * 128 * 4 + (3072 + 256) * 3 * 2)),
    # Attention and Mamba-2 in every layer: 2 × 2 × 128 × 2 × 44.
    File("Falcon-H1-7B", "falcon-h1", shape(44, 3072, 12, 2, 128, **ssm(4, 256, 24, 3072, 1)), "falcon_h1", 45_056, {"full": 44, "recurrent": 44}, fixed=44 * (24 * 128 * 256 * 4 + (3072 + 512) * 3 * 2)),
    # One block per layer: Mamba-2, feed-forward, attention. 2 × 8 × 128 × 2.
    File("Nemotron-H, six layers", "nemotron_h", shape(6, 4096, 32, [0, 0, 0, 8, 0, 0], 128, **ssm(4, 128, 128, 8192, 8)) | {"feed_forward_length": [0, 21504, 0, 0, 21504, 0]}, "nemotron_h", 4_096, {"full": 1, "recurrent": 3, "none": 2}, fixed=3 * (128 * 64 * 128 * 4 + (8192 + 2048) * 3 * 2)),
    # The last of every four is full: 2 × 2 × 256 × 2 × 12. States: 32 heads of 128 × 128, convolution over 2 × 16 × 128 + 32 × 128.
    File("Qwen3-Next-80B", "qwen3next", shape(48, 2048, 16, 2, 256, **ssm(4, 128, 32, 4096, 16), full_attention_interval=4), "qwen3_next", 24_576, {"full": 12, "recurrent": 36}, fixed=36 * (32 * 128 * 128 * 4 + 8192 * 3 * 2)),
    # Case G1-13, with a prediction layer and without the interval, which is four then: 2 × 2 × 256 × 2 × 10.
    File("Qwen3.6-35B-A3B", "qwen35moe", shape(41, 2048, 16, 2, 256, **ssm(4, 128, 32, 4096, 16), nextn_predict_layers=1, rope__dimension_sections=[11, 11, 10, 0]), "qwen3_5_moe_text", 20_480, {"full": 10, "recurrent": 30}, fixed=30 * (32 * 128 * 128 * 4 + 8192 * 3 * 2)),
    # A list of the recurrent layers outranks the interval: 2 × 4 × 256 × 2 × 2.
    File("Qwen3.5, four layers and a list", "qwen35", shape(5, 2048, 16, 4, 256, **ssm(4, 128, 32, 4096, 16), full_attention_interval=4, attention__recurrent_layers=[False, True, True, False, False], nextn_predict_layers=1), "qwen3_5_text", 8_192, {"full": 2, "recurrent": 2}, fixed=2 * (32 * 128 * 128 * 4 + 8192 * 3 * 2)),
    # 2 × 8 × 64 × 2 × 6; a kernel of 3 keeps 2 columns.
    File("LFM2-1.2B", "lfm2", shape(16, 2048, 32, LFM2, shortconv__l_cache=3), "lfm2", 12_288, {"full": 6, "recurrent": 10}, fixed=10 * 2048 * 2 * 2),
    # Latents of 512 + 64 in 7 layers; 20 with a 128 × 128 matrix and three convolutions per head, all FP32.
    File("Kimi-Linear-48B", "kimi-linear", shape(27, 2304, 32, KIMI, **{key: value for key, value in MLA.items() if key != "attention__value_length"}, ssm__conv_kernel=4, kda__head_dim=128), "kimi_linear", 8_064, {"mla": 7, "recurrent": 20}, fixed=20 * 32 * (128 * 128 + 3 * 128 * 3) * 4),
]  # fmt: skip

FILES = [*PLAIN, *WINDOWED, *LATENT_FILES, *RECURRENT]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_bytes_of_a_header(tmp_path, file):
    geometry = read_geometry(write(tmp_path, model(file.architecture, file.values)))
    found = geometry.bytes
    assert geometry.model_type == file.model_type
    assert dict(Counter(layer.kind for layer in geometry.layers)) == file.kinds
    assert (found.growth_per_token, found.window_bytes, found.fixed_per_request, found.indexer_per_token) == (
        file.growth, file.window, file.fixed, file.indexer,
    )  # fmt: skip


MLA_CONFIG = {"kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
DSA_CONFIG = {"index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048}
KIMI_CONFIG = {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "kda_layers": [n for n in range(1, 28) if n not in (4, 8, 12, 16, 20, 24, 27)], "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4}  # fmt: skip
DELTA_CONFIG = {"head_dim": 256, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4}  # fmt: skip
MAMBA2_CONFIG = {"mamba_n_heads": 48, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 128, "mamba_d_conv": 4, "mamba_expand": 2}
JAMBA_CONFIG = {"attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2}

# The config.json of the same models.
CONFIGS = {
    "Gemma-3-27B": config("gemma3_text", 62, 5376, 32, 16, head_dim=128, sliding_window=1024, sliding_window_pattern=6),
    "Gemma-3n-E4B": config("gemma3n_text", 35, 2048, 8, 2, head_dim=256, sliding_window=512, num_kv_shared_layers=15),
    "gpt-oss-20b": config("gpt_oss", 24, 2880, 64, 8, head_dim=64, sliding_window=128),
    "Llama-4-Scout": config("llama4_text", 48, 5120, 40, 8, head_dim=128, attention_chunk_size=8192, no_rope_layer_interval=4, max_position_embeddings=10_485_760),
    "Command R7B": config("cohere2", 32, 4096, 32, 8, sliding_window=4096, sliding_window_pattern=4),
    "DeepSeek-V3": config("deepseek_v3", 61, 7168, 128, 128, **MLA_CONFIG),
    "DeepSeek-V3.2": config("deepseek_v32", 61, 7168, 128, 128, **MLA_CONFIG, **DSA_CONFIG),
    "Kimi-Linear-48B": config("kimi_linear", 27, 2304, 32, 32, linear_attn_config=KIMI_CONFIG, **MLA_CONFIG),
    "Qwen3-Next-80B": config("qwen3_next", 48, 2048, 16, 2, full_attention_interval=4, **DELTA_CONFIG),
    "Granite-4.0-H-Tiny": config("granitemoehybrid", 40, 1536, 12, 4, layer_types=["attention" if kv else "mamba" for kv in GRANITE], **MAMBA2_CONFIG),
    "Jamba-v0.1": config("jamba", 32, 4096, 32, 8, **JAMBA_CONFIG),
    "LFM2-1.2B": config("lfm2", 16, 2048, 32, 8, conv_L_cache=3, layer_types=["full_attention" if kv else "conv" for kv in LFM2]),
    "StarCoder-15B": config("gpt_bigcode", 40, 6144, 48, multi_query=True),
    "Falcon-7B": config("falcon", 32, 4544, 71, multi_query=True, new_decoder_architecture=False),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_a_header_and_a_config_json_read_alike(tmp_path, name):
    file = next(file for file in FILES if file.name == name)
    assert read_geometry(write(tmp_path, model(file.architecture, file.values))).layers == read_config(tmp_path, CONFIGS[name]).layers


def test_prediction_layers_stand_apart(tmp_path):
    file = next(file for file in FILES if file.name == "GLM-4.5-Air")
    draft = read_geometry(write(tmp_path, model(file.architecture, file.values))).draft
    assert draft is not None
    assert (len(draft.layers), draft.bytes.growth_per_token) == (1, 4_096)


def test_a_latent_may_be_stored_expanded(tmp_path):
    """27 layers of 16 heads, 192 + 128 each (case G1-12). llama.cpp does so with a file that has no lengths of the latent."""
    file = next(file for file in FILES if file.name == "DeepSeek-V2-Lite, older file")
    geometry = read_geometry(write(tmp_path, model(file.architecture, file.values)), choice=Choice(mla="expanded"))
    assert geometry.bytes.growth_per_token == 276_480
    assert any("deepseek2.attention.kv_lora_rank 512" in note and "expanded" in note for note in geometry.assumptions)


def test_what_llama_cpp_does_not_use_is_said(tmp_path):
    notes = read_geometry(write(tmp_path, model("phi3", shape(32, 3072, 32, 32, **windows(2047))))).assumptions
    assert any("phi3.attention.sliding_window 2,047: not used" in note for note in notes)
    notes = read_geometry(write(tmp_path, model("llama4", shape(48, 5120, 40, 8, 128, **windows(4096))))).assumptions
    assert any("llama4.attention.sliding_window 4,096: not used" in note for note in notes)


# Architectures that plain keys do not describe: each asks for the keys of its own layout.
ASKS_FOR_MORE = (set(STATES) - {"lfm2", "lfm2moe"}) | LATENT | {"deepseek4"} | {name for name, rule in WINDOWS.items() if rule.needed}


@pytest.mark.parametrize("architecture", sorted(KNOWN - {"t5"}))
def test_plain_keys_of_every_architecture(tmp_path, architecture):
    """2 × 4 × 64 × 2 bytes in each of 4 layers, or a refusal that names a key of the architecture."""
    path = write(tmp_path, model(architecture, shape(4, 256, 4, 4, 64)))
    if architecture in ASKS_FOR_MORE:
        with pytest.raises(BadInput, match=rf"model\.gguf: {architecture}\.[a-z_.]+: missing"):
            read_geometry(path)
        return
    geometry = read_geometry(path)
    assert geometry.model_type == MODEL_TYPES.get(architecture, architecture)
    assert geometry.bytes.all_tokens_per_token == 4 * 1_024


@pytest.mark.parametrize("architecture", sorted(NO_CACHE))
def test_models_without_a_cache_are_refused(tmp_path, architecture):
    with pytest.raises(BadInput, match=f"general.architecture: {architecture} keeps no KV cache"):
        read_geometry(write(tmp_path, model(architecture, shape(4, 256, 4, 4, 64))))


REFUSED = [
    ("llama", windows(4096), "llama.attention.sliding_window: 4096 (windows and chunks) is not read for llama"),
    ("llama", {"attention__kv_lora_rank": 512}, "llama.attention.kv_lora_rank: 512"),
    ("llama", {"ssm__state_size": 16}, "llama.ssm.state_size: 16"),
    ("llama", {"full_attention_interval": 4}, "llama.full_attention_interval: 4"),
    ("llama", {"attention__key_length_swa": 128}, "llama.attention.key_length_swa: 128"),
    ("llama", {"nextn_predict_layers": 4}, "llama.nextn_predict_layers: 4 of 4 blocks"),
    ("llama", {"attention__head_count_kv": [1, 2]}, "llama.attention.head_count_kv: must have one entry for each of the 4 layers, it has 2"),
    ("llama", {"attention__head_count_kv": [1.5] * 4}, "llama.attention.head_count_kv: must be a whole number, not 1.5"),
    ("llama", {"attention__head_count_kv": [-1] * 4}, "llama.attention.head_count_kv: must be from 0"),
    ("gemma3n", {}, "gemma3n.attention.sliding_window: missing"),
    ("gemma4", windows(512, 5), "gemma4.attention.sliding_window_pattern: 5, but this architecture needs a list"),
    ("gemma4", windows(512, [1, 1, 1, 2]), "gemma4.attention.sliding_window_pattern: must be from 0 to 1, not 2"),
    ("gemma4", windows(512, [True, True, True, False]), "gemma4.attention.key_length_swa: missing"),
    ("exaone-moe", windows(512), "exaone-moe.attention.sliding_window_pattern: missing"),
    ("mimo2", windows(128, [True, True, False, False]) | {"attention__head_count_kv": [1, 2, 4, 4]}, "mimo2.attention.head_count_kv: MiMo has one"),
    ("mimo2", windows(128, [True] * 3), "mimo2.attention.sliding_window_pattern: must have one entry for each of the 4 layers, it has 3"),
    ("deepseek2", {}, "deepseek2.attention.kv_lora_rank: missing"),
    ("deepseek2", {"attention__kv_lora_rank": 512}, "deepseek2.rope.dimension_count: missing"),
    ("deepseek2", MLA | {"attention__key_length": 512}, "deepseek2.attention.key_length: 512 contradicts deepseek2.attention.kv_lora_rank 512"),
    ("deepseek2", MLA | {"attention__key_length_mla": 64}, "deepseek2.attention.key_length_mla: 64 leaves nothing"),
    ("deepseek32", MLA, "deepseek32.attention.indexer.key_length: missing"),
    ("deepseek4", windows(128) | {"nextn_predict_layers": 1}, "deepseek4.nextn_predict_layers: 1, and whether block_count counts them"),
    ("deepseek4", windows(128) | {"attention__compress_ratios": [0, 4, 8, 4]}, "deepseek4.attention.compress_ratios: layer 2 is 8"),
    ("jamba", ssm(4, 16, 16, 500), "jamba.ssm.inner_size: 500 is not a multiple of jamba.embedding_length 256"),
    ("mamba2", ssm(4, 16, 3, 512), "mamba2.ssm.inner_size: 512 is not a multiple of mamba2.ssm.time_step_rank 3"),
    ("mamba", {"ssm__inner_size": 512, "ssm__conv_kernel": 4}, "mamba.ssm.state_size: missing"),
    ("qwen3next", ssm(4, 16, 4, 512), "qwen3next.ssm.group_count: missing"),
    ("gpt2", {"attention__head_count_kv": 2}, "gpt2.attention.head_count_kv: 2, but gpt2 has as many KV heads as heads, 4"),
    ("starcoder", {"attention__head_count_kv": 2}, "starcoder.attention.head_count_kv: 2, but StarCoder has 1"),
    ("cohere2", windows(128) | {"attention__key_length": 128}, "cohere2.attention.key_length: 128, but Cohere 2 has heads of cohere2.embedding_length"),
    ("deci", {"attention__head_count_kv": [3, 4, 4, 4]}, "deci.attention.head_count_kv: 3 does not divide deci.attention.head_count 4"),
    ("rwkv7", {"wkv__head_size": 64}, "rwkv7.wkv.head_size: 64"),
    ("eagle3", {}, "general.architecture: eagle3 is a draft head"),
    ("minimax-m3", DSA, "minimax-m3.attention.indexer."),
]  # fmt: skip


@pytest.mark.parametrize(("architecture", "more", "words"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_contradictions_are_refused_by_key(tmp_path, architecture, more, words):
    values = {key: value for key, value in shape(4, 256, 4, 4).items() if key != "feed_forward_length"}
    with pytest.raises(BadInput) as caught:
        read_geometry(write(tmp_path, model(architecture, values | {key.replace("__", "."): value for key, value in more.items()})))
    assert words in str(caught.value)


def test_an_unknown_architecture_with_the_usual_keys(tmp_path):
    """2 × (4 + 2) × 64 × 2: KV heads may differ per layer; V may be narrower than K."""
    geometry = read_geometry(write(tmp_path, model("brandnew", shape(2, 512, 8, [4, 2], 64))))
    assert geometry.bytes.growth_per_token == 1_536
    assert "model_type brandnew is not known here: standard layout assumed" in geometry.assumptions
    narrow = read_geometry(write(tmp_path, model("brandnew", shape(2, 512, 8, 4, 64) | {"attention.value_length": 32})))
    assert narrow.bytes.growth_per_token == 2 * 4 * (64 + 32) * 2
    with pytest.raises(BadInput, match=r"brandnew\.attention\.sliding_window: 512"):
        read_geometry(write(tmp_path, model("brandnew", shape(2, 512, 8, 4, 64, **windows(512)))))
