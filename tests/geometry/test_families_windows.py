"""Families with windows and chunks, shared caches and shapes per layer kind."""

import pytest

from support.families import Family, assert_family, config, nested, read_config

SLIDING, FULL, CHUNKED = "sliding_attention", "full_attention", "chunked_attention"


def windows(name, values, near, far, window):
    """near, far: (layers, bytes per token of one layer) of windowed and of full layers."""
    (n, n_bytes), (f, f_bytes) = near, far
    kinds = {kind: count for kind, count in (("sliding", n), ("full", f)) if count}
    return Family(name, values, f * f_bytes, kinds, all_tokens=n * n_bytes + f * f_bytes, window=n * n_bytes * window)


GPT_OSS = {"head_dim": 64, "sliding_window": 128, "num_local_experts": 32}
GEMMA2 = {"head_dim": 256, "sliding_window": 4096, "cache_implementation": "hybrid"}
MIMO = {"head_dim": 192, "v_head_dim": 128, "swa_head_dim": 192, "swa_v_head_dim": 128, "swa_num_attention_heads": 64, "swa_num_key_value_heads": 8, "sliding_window": 128, "sliding_window_size": 128, "attention_chunk_size": 128}  # fmt: skip

FAMILIES = [
    # Every layer windowed.
    windows("Mistral-7B-v0.1", config("mistral", 32, 4096, 32, 8, sliding_window=4096), (32, 2 * 8 * 128 * 2), (0, 0), 4096),
    windows("Phi-3-mini-4k", config("phi3", 32, 3072, 32, 32, sliding_window=2047, max_position_embeddings=4096), (32, 2 * 32 * 96 * 2), (0, 0), 2047),
    # A window no shorter than the longest context drops nothing: those layers keep every token.
    Family("Phi-3-mini-128k", config("phi3", 32, 3072, 32, 32, sliding_window=262144), 32 * 2 * 32 * 96 * 2, {"full": 32}),
    Family("Phi-4-mini", config("phi3", 32, 3072, 24, 8, sliding_window=262144, partial_rotary_factor=0.75), 32 * 2 * 8 * 128 * 2, {"full": 32}),
    windows("StarCoder2-3B", config("starcoder2", 30, 3072, 24, 2, sliding_window=4096), (30, 2 * 2 * 128 * 2), (0, 0), 4096),
    windows("StarCoder2-15B", config("starcoder2", 40, 6144, 48, 4, sliding_window=4096), (40, 2 * 4 * 128 * 2), (0, 0), 4096),
    # Alternating, windowed first.
    windows("gpt-oss-20b", config("gpt_oss", 24, 2880, 64, 8, layer_types=[SLIDING, FULL] * 12, **GPT_OSS), (12, 2 * 8 * 64 * 2), (12, 2 * 8 * 64 * 2), 128),
    windows("gpt-oss-120b without layer_types", config("gpt_oss", 36, 2880, 64, 8, **GPT_OSS), (18, 2 * 8 * 64 * 2), (18, 2 * 8 * 64 * 2), 128),
    windows("Gemma-2-2B", config("gemma2", 26, 2304, 8, 4, **GEMMA2), (13, 2 * 4 * 256 * 2), (13, 2 * 4 * 256 * 2), 4096),
    windows("Gemma-2-27B", config("gemma2", 46, 4608, 32, 16, **GEMMA2 | {"head_dim": 128}), (23, 2 * 16 * 128 * 2), (23, 2 * 16 * 128 * 2), 4096),
    # Three or five windowed layers to one full.
    windows("Gemma-3-1B", config("gemma3_text", 26, 1152, 4, 1, head_dim=256, sliding_window=512, sliding_window_pattern=6), (22, 2 * 1 * 256 * 2), (4, 2 * 1 * 256 * 2), 512),
    windows("Command-R7B", config("cohere2", 32, 4096, 32, 8, sliding_window=4096, sliding_window_pattern=4), (24, 2 * 8 * 128 * 2), (8, 2 * 8 * 128 * 2), 4096),
    windows("Command-A", config("cohere2", 64, 12288, 96, 8, sliding_window=4096, layer_types=[SLIDING, SLIDING, SLIDING, FULL] * 16), (48, 2 * 8 * 128 * 2), (16, 2 * 8 * 128 * 2), 4096),
    windows("Olmo-3-7B", config("olmo3", 32, 4096, 32, 32, sliding_window=4096, layer_types=[SLIDING, SLIDING, SLIDING, FULL] * 8), (24, 2 * 32 * 128 * 2), (8, 2 * 32 * 128 * 2), 4096),
    windows("Olmo-3-32B without layer_types", config("olmo3", 64, 5120, 40, 8, sliding_window=4096), (48, 2 * 8 * 128 * 2), (16, 2 * 8 * 128 * 2), 4096),
    windows("EXAONE-4.0-32B", config("exaone4", 64, 5120, 40, 8, head_dim=128, sliding_window=4096, sliding_window_pattern="LLLG"), (48, 2 * 8 * 128 * 2), (16, 2 * 8 * 128 * 2), 4096),
    # A switch: layers from max_window_layers on.
    windows("a Qwen2 with its window on", config("qwen2", 28, 3584, 28, 4, use_sliding_window=True, sliding_window=4096, max_window_layers=21), (7, 2 * 4 * 128 * 2), (21, 2 * 4 * 128 * 2), 4096),
    # K 192 wide, V 128; windowed layers have 8 KV heads, the 9 full ones 4.
    windows("MiMo-V2-Flash", config("mimo_v2_flash", 48, 4096, 64, 4, hybrid_layer_pattern=[int(not (i == 0 or (i + 1) % 6 == 0)) for i in range(48)], **MIMO), (39, 8 * (192 + 128) * 2), (9, 4 * (192 + 128) * 2), 128),
]  # fmt: skip


def scout(**more):
    return config("llama4_text", 48, 5120, 40, 8, head_dim=128, attention_chunk_size=8192, **more)


CHUNKS = {"all_tokens": 48 * 2 * 8 * 128 * 2, "window": 36 * 2 * 8 * 128 * 2 * 8192}
CHUNKED_FAMILIES = [
    Family("Llama-4-Scout", nested("llama4", scout(no_rope_layers=[], interleave_moe_layer_step=1)), 12 * 2 * 8 * 128 * 2, {"full": 12, "chunked": 36}, **CHUNKS),
    Family("Llama-4-Maverick", nested("llama4", scout(no_rope_layers=[1, 1, 1, 0] * 12, interleave_moe_layer_step=2)), 12 * 2 * 8 * 128 * 2, {"full": 12, "chunked": 36}, **CHUNKS),
    Family("Llama-4 with layer_types", nested("llama4", scout(layer_types=[CHUNKED, CHUNKED, CHUNKED, FULL] * 12)), 12 * 2 * 8 * 128 * 2, {"full": 12, "chunked": 36}, **CHUNKS),
]  # fmt: skip


@pytest.mark.parametrize("row", [*FAMILIES, *CHUNKED_FAMILIES], ids=lambda row: row.name)
def test_family(tmp_path, row):
    assert_family(tmp_path, row)


# Gemma 3n and 4: the last layers read an owner of their kind; full layers of Gemma 4 are 512 wide.
FIVE_TO_ONE, FOUR_TO_ONE = [SLIDING] * 5 + [FULL], [SLIDING] * 4 + [FULL]


def gemma3n(layers, shared):
    return nested("gemma3n", config("gemma3n_text", layers, 2048, 8, 2, head_dim=256, sliding_window=512, layer_types=FOUR_TO_ONE * (layers // 5), num_kv_shared_layers=shared), audio_config={"model_type": "gemma3n_audio", "hidden_size": 1536})  # fmt: skip


def gemma4(layers, hidden, heads, kv_heads, pattern, **more):
    return nested("gemma4", config("gemma4_text", layers, hidden, heads, kv_heads, head_dim=256, global_head_dim=512, layer_types=pattern * (layers // len(pattern)), **more))  # fmt: skip


def sharing(name, values, near, far):
    """near, far: (owners, bytes per token of one) among windowed (512) and full layers; the others read one of them."""
    (n, n_bytes), (f, f_bytes), kinds = near, far, values["text_config"]["layer_types"]
    counts = {"sliding": kinds.count(SLIDING), "full": kinds.count(FULL)}
    return Family(name, values, f * f_bytes, counts, all_tokens=n * n_bytes + f * f_bytes, window=n * n_bytes * 512)


E2B = {"num_kv_shared_layers": 20, "sliding_window": 512, "attention_k_eq_v": False, "num_global_key_value_heads": None}
E4B = {"num_kv_shared_layers": 18, "sliding_window": 512, "attention_k_eq_v": False}

# The owner that sharers of each kind read, beside the row.
SHARING = [
    (sharing("Gemma-3n-E2B", gemma3n(30, 10), (16, 2 * 2 * 256 * 2), (4, 2 * 2 * 256 * 2)), {SLIDING: 18, FULL: 19}),
    (sharing("Gemma-3n-E4B", gemma3n(35, 15), (16, 2 * 2 * 256 * 2), (4, 2 * 2 * 256 * 2)), {SLIDING: 18, FULL: 19}),
    (sharing("Gemma-4-E2B", gemma4(35, 1536, 8, 1, FOUR_TO_ONE, **E2B), (12, 2 * 1 * 256 * 2), (3, 2 * 1 * 512 * 2)), {SLIDING: 13, FULL: 14}),
    (sharing("Gemma-4-E4B", gemma4(42, 2560, 8, 2, FIVE_TO_ONE, **E4B), (20, 2 * 2 * 256 * 2), (4, 2 * 2 * 512 * 2)), {SLIDING: 22, FULL: 23}),
]  # fmt: skip


@pytest.mark.parametrize(("row", "source"), SHARING, ids=[row.name for row, _ in SHARING])
def test_shared_caches(tmp_path, row, source):
    geometry = assert_family(tmp_path, row)
    kinds = row.config["text_config"]["layer_types"]
    first = len(kinds) - row.config["text_config"]["num_kv_shared_layers"]
    assert [layer.index for layer in geometry.owners] == list(range(first))
    assert [layer.reads_from for layer in geometry.layers] == [None] * first + [source[kind] for kind in kinds[first:]]


# num_global_key_value_heads counts only where K and V share a projection; both are stored all the same.
GEMMA4_DENSE = [
    windows("Gemma-4-26B-A4B", gemma4(30, 2816, 16, 8, FIVE_TO_ONE, sliding_window=1024, attention_k_eq_v=True, num_global_key_value_heads=2, num_kv_shared_layers=0), (25, 2 * 8 * 256 * 2), (5, 2 * 2 * 512 * 2), 1024),
    windows("Gemma-4-31B", gemma4(60, 5376, 32, 16, FIVE_TO_ONE, sliding_window=1024, attention_k_eq_v=True, num_global_key_value_heads=4, num_kv_shared_layers=0), (50, 2 * 16 * 256 * 2), (10, 2 * 4 * 512 * 2), 1024),
    windows("Gemma-4-31B with the switch off", gemma4(60, 5376, 32, 16, FIVE_TO_ONE, sliding_window=1024, attention_k_eq_v=False, num_global_key_value_heads=4), (50, 2 * 16 * 256 * 2), (10, 2 * 16 * 512 * 2), 1024),
    windows("a Gemma 4 that names its layers one by one", nested("gemma4", config("gemma4_text", 6, 2816, 16, 8, head_dim=256, sliding_window=1024, layer_types=FIVE_TO_ONE, per_layer_config={"5": {"head_dim": 512, "num_key_value_heads": 2}})), (5, 2 * 8 * 256 * 2), (1, 2 * 2 * 512 * 2), 1024),
]  # fmt: skip


@pytest.mark.parametrize("row", GEMMA4_DENSE, ids=lambda row: row.name)
def test_full_layers_of_another_shape(tmp_path, row):
    assert_family(tmp_path, row)


def test_a_window_beyond_the_longest_context_is_said(tmp_path):
    geometry = assert_family(tmp_path, next(row for row in FAMILIES if row.name == "Phi-4-mini"))
    assert any("sliding_window" in note and "262,144" in note for note in geometry.assumptions)


def test_transformers_doubles_the_heads_of_windowed_layers(tmp_path):
    """MiMo-V2-Flash saved by transformers names no heads of windowed layers: its class takes twice those of the full ones."""
    values = config(
        "mimo_v2_flash", 6, 4096, 64, 4, head_dim=192, v_head_dim=128, sliding_window=128, layer_types=[FULL] + [SLIDING] * 4 + [FULL]
    )
    assert_family(tmp_path, windows("", values, (4, 8 * (192 + 128) * 2), (2, 4 * (192 + 128) * 2), 128))


def test_windowed_prediction_layers(tmp_path):
    """MiMo-V2-Flash predicts with layers of the windowed kind: 3 of 8 * (192 + 128) * 2 = 5,120 bytes."""
    values = next(row.config for row in FAMILIES if row.name == "MiMo-V2-Flash") | {"num_nextn_predict_layers": 3}
    draft = read_config(tmp_path, values, 10).draft
    assert draft is not None
    assert (draft.bytes.growth_per_token, draft.bytes.all_tokens_per_token, draft.bytes.window_bytes) == (0, 3 * 5120, 3 * 5120 * 128)


def test_k_and_v_of_different_width(tmp_path):
    geometry = assert_family(tmp_path, next(row for row in FAMILIES if row.name == "MiMo-V2-Flash"))
    shapes = {(layer.kind, layer.kv_heads, layer.k_dim, layer.v_dim, layer.window) for layer in geometry.layers}
    assert shapes == {("full", 4, 192, 128, None), ("sliding", 8, 192, 128, 128)}
    assert [layer.index for layer in geometry.layers if layer.kind == "full"] == [0, 5, 11, 17, 23, 29, 35, 41, 47]
