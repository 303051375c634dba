"""Configurations as they are published, with the keys that make them hard: switched-off layouts, odd names, drafts, image encoders."""

import pytest

from kvassay.errors import BadInput
from support.families import Family, assert_family, config, nested, read_config

SLIDING, FULL = "sliding_attention", "full_attention"
HIDDEN_OFF = {"kv_lora_rank": None, "q_lora_rank": None, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0, "use_mla": False}
OFF = {"use_sliding_window": False, "sliding_window": 131072, "max_window_layers": 28}
LATENT = {"kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
LIGHTNING = {
    "attn_type_list": [0] * 7 + [1],
    "head_dim": 128,
    "layernorm_full_attention_alpha": 3.55,
    "layernorm_linear_attention_beta": 1.0,
}
PANGU = {"attention_kv_lora_dim": 512, "attention_q_lora_dim": 1536, "attention_qk_dim": 128, "attention_qk_rope_dim": 64, "attention_v_dim": 128, "num_mtp_layers": 1}  # fmt: skip

PLAIN = [
    # A window that is written and switched off, in types that nobody registered.
    Family("MiniCPM-V-2.6", config("minicpmv", 28, 3584, 28, 4, image_size=448, patch_size=14, query_num=64, vision_config={"model_type": "siglip"}, **OFF), 28 * 2 * 4 * 128 * 2, {"full": 28}),
    Family("MiniCPM-o-2.6", config("minicpmo", 28, 3584, 28, 4, audio_config={"model_type": "whisper"}, tts_config={"model_type": "conditional_chattts"}, **OFF), 28 * 2 * 4 * 128 * 2, {"full": 28}),
    Family("dots.ocr", config("dots_ocr", 28, 1536, 12, 2, vision_config={"num_hidden_layers": 42, "patch_size": 14}, **OFF), 28 * 2 * 2 * 128 * 2, {"full": 28}),
    Family("Ling-mini-2.0", config("bailing_moe_v2", 20, 2048, 16, 4, head_dim=128, num_nextn_predict_layers=0, **OFF), 20 * 2 * 4 * 128 * 2, {"full": 20}),
    # -1 stands for none; every layer of every 1 is global.
    Family("Grok-2", config("git", 64, 8192, 64, 8, head_dim=128, sliding_window_size=-1, global_attn_every_n=1), 64 * 2 * 8 * 128 * 2, {"full": 64}),
    # The window is longer than the context.
    Family("Phi-3.5-vision", config("phi3_v", 32, 3072, 32, 32, sliding_window=262144, img_processor={"name": "clip_vision_model"}), 32 * 2 * 32 * 96 * 2, {"full": 32}),
    # Convolutions of images, not of tokens.
    Family("ERNIE-4.5-VL-28B-A3B", config("ernie4_5_moe_vl", 28, 2560, 20, 4, head_dim=128, spatial_conv_size=2, temporal_conv_size=2, vision_config={"depth": 32}), 28 * 2 * 4 * 128 * 2, {"full": 28}),
    # KV heads under a name of their own; the file names no model_type.
    Family("CogVLM2-Llama3", {key: value for key, value in config("", 32, 4096, 32, num_multi_query_heads=8, vision_config={"num_hidden_layers": 63}).items() if key != "model_type"}, 32 * 2 * 8 * 128 * 2, {"full": 32}),
    # EAGLE-3 in the format of speculators: one Llama layer.
    Family("EAGLE-3 of speculators", {"speculators_model_type": "eagle3", "draft_vocab_size": 32000, "transformer_layer_config": config("llama", 1, 4096, 32, 8, head_dim=128)}, 2 * 8 * 128 * 2, {"full": 1}),
    # openPangu's names of a latent: 512 + 64 elements per layer.
    Family("openPangu-Ultra-MoE", config("pangu_ultra_moe", 61, 7680, 128, 128, **PANGU), 61 * 576 * 2, {"mla": 61}),
]  # fmt: skip
UNKNOWN = {"MiniCPM-V-2.6", "MiniCPM-o-2.6", "dots.ocr", "Ling-mini-2.0", "Grok-2", "Phi-3.5-vision", "ERNIE-4.5-VL-28B-A3B", "CogVLM2-Llama3", "openPangu-Ultra-MoE"}  # fmt: skip

OTHERS = [
    # The small DeepSeek-VL2 and DeepSeek-OCR: heads of 1280 / 10 in place of a latent, whose widths are 0.
    Family("DeepSeek-VL2-Tiny", nested("deepseek_vl_v2", config("deepseek_v2", 12, 1280, 10, 10, **HIDDEN_OFF), "language_config"), 12 * 2 * 10 * 128 * 2, {"full": 12}),
    Family("Kimi-VL-A3B", nested("kimi_vl", config("deepseek_v3", 27, 2048, 16, 16, **LATENT)), 27 * 576 * 2, {"mla": 27}),
    # Sizes that the file leaves to Qwen2's class: 32 layers, 4,096 wide, 32 heads, 32 KV heads.
    Family("Qwen2-Audio-7B", nested("qwen2_audio", {"model_type": "qwen2", "intermediate_size": 11008, "sliding_window": 32768, "vocab_size": 156032}), 32 * 2 * 32 * 128 * 2, {"full": 32}),
    # ... and Mistral's, windowed.
    Family("Idefics2-8B", nested("idefics2", {"model_type": "mistral", "max_position_embeddings": 32768, "sliding_window": 4096}), 0, {"sliding": 32}, all_tokens=32 * 2 * 8 * 128 * 2, window=32 * 2 * 8 * 128 * 2 * 4096),
    Family("Qwen3-Coder-480B", config("qwen3_moe", 62, 6144, 96, 8, head_dim=128, sliding_window=None, use_sliding_window=False, max_window_layers=62), 62 * 2 * 8 * 128 * 2, {"full": 62}),
    Family("Nemotron-4-340B", config("nemotron", 96, 18432, 96, 8, head_dim=192), 96 * 2 * 8 * 192 * 2, {"full": 96}),
    Family("Trinity-Mini", config("afmoe", 32, 2048, 32, 4, head_dim=128, sliding_window=2048, global_attn_every_n_layers=4), 8 * 2 * 4 * 128 * 2, {"sliding": 24, "full": 8}, all_tokens=32 * 2 * 4 * 128 * 2, window=24 * 2 * 4 * 128 * 2 * 2048),
    # Windows by a list of 0 and 1: 13 of 52 layers are full.
    Family("SmallThinker-21B", config("smallthinker", 52, 2560, 28, 4, head_dim=128, max_position_embeddings=16384, rope_layout=[0, 1, 1, 1] * 13, sliding_window_layout=[0, 1, 1, 1] * 13, sliding_window_size=4096), 13 * 2 * 4 * 128 * 2, {"sliding": 39, "full": 13}, all_tokens=52 * 2 * 4 * 128 * 2, window=39 * 2 * 4 * 128 * 2 * 4096),
    Family("SmallThinker-4B", config("smallthinker", 32, 1536, 12, 2, head_dim=128, sliding_window_layout=[0] * 32, sliding_window_size=4096), 32 * 2 * 2 * 128 * 2, {"full": 32}),
    # 10 of 80 layers attend; the others keep 64 heads × 128 × 128 in BF16.
    Family("MiniMax-M1", config("minimax_m1", 80, 6144, 64, 8, **LIGHTNING | {"attn_type_list": LIGHTNING["attn_type_list"] * 10}), 10 * 2 * 8 * 128 * 2, {"recurrent": 70, "full": 10}, fixed=70 * 64 * 128 * 128 * 2),
    # Llama-Guard-4 has Scout's attention and no experts.
    Family("Llama-Guard-4-12B", nested("llama4", config("llama4_text", 48, 5120, 40, 8, head_dim=128, attention_chunk_size=8192, no_rope_layers=[1, 1, 1, 0] * 12, moe_layers=[], interleave_moe_layer_step=0)), 12 * 2 * 8 * 128 * 2, {"chunked": 36, "full": 12}, all_tokens=48 * 2 * 8 * 128 * 2, window=36 * 2 * 8 * 128 * 2 * 8192),
]  # fmt: skip


@pytest.mark.parametrize("row", [*PLAIN, *OTHERS], ids=lambda row: row.name)
def test_family(tmp_path, row):
    assert_family(tmp_path, row, known=row.name not in UNKNOWN)


def test_layer_types_that_go_on_over_the_prediction_layers(tmp_path):
    """Step-3.5-Flash lists 48 kinds for 45 layers and 3 prediction layers, which are windowed: 2 * 8 * 128 * 2 = 4,096 bytes each."""
    values = config(
        "step3p5", 45, 4096, 64, num_attention_groups=8, head_dim=128, sliding_window=512, num_nextn_predict_layers=3,
        layer_types=[FULL, SLIDING, SLIDING, SLIDING] * 12,
    )  # fmt: skip
    row = Family("", values, 12 * 4096, {"full": 12, "sliding": 33}, all_tokens=45 * 4096, window=33 * 4096 * 512)
    draft = assert_family(tmp_path, row).draft
    assert draft is not None
    assert (draft.bytes.growth_per_token, draft.bytes.window_bytes) == (0, 3 * 4096 * 512)


def test_layer_types_of_any_other_length_are_refused(tmp_path):
    values = config("step3p5", 45, 4096, 64, 8, sliding_window=512, num_nextn_predict_layers=3, layer_types=[FULL] * 47)
    with pytest.raises(BadInput, match=r"layer_types.*45 layers, it has 47"):
        read_config(tmp_path, values)


# Recurrent by name alone: RWKV-6 lists sizes like a Llama, and RetNet too.
@pytest.mark.parametrize("model_type", ["rwkv6", "rwkv5", "retnet", "gated_deltanet"])
def test_a_recurrent_name_is_not_priced_as_attention(tmp_path, model_type):
    with pytest.raises(BadInput, match=r"model_type: .* keep a state in place of K and V"):
        read_config(tmp_path, config(model_type, 32, 4096, 64, attention_hidden_size=4096, head_size=64))


def test_layers_that_run_more_than_once(tmp_path):
    """Ouro runs its 24 layers 4 times and caches each run apart: the standard price would be a quarter of it."""
    with pytest.raises(BadInput, match="total_ut_steps"):
        read_config(tmp_path, config("ouro", 24, 2048, 16, 16, total_ut_steps=4, layer_types=[FULL] * 24))


def test_windows_of_a_plain_type_that_no_class_describes(tmp_path):
    """`grok` stands for a GGUF and for forks: a window in its config.json is not overlooked."""
    with pytest.raises(BadInput, match="sliding_window_size"):
        read_config(tmp_path, config("grok", 64, 8192, 64, 8, sliding_window_size=4096))


def image_model(encoder, decoder):
    decoder = {
        "d_model": 1024,
        "decoder_layers": 12,
        "decoder_attention_heads": 16,
        "max_position_embeddings": 512,
        "is_decoder": True,
    } | decoder
    return {"model_type": "vision-encoder-decoder", "is_encoder_decoder": True, "encoder": encoder, "decoder": decoder, "torch_dtype": "bfloat16"}  # fmt: skip


def test_rows_of_an_image_encoder(tmp_path):
    """TrOCR: (384 / 16)² patches and one more token, whatever the decoder's longest text is."""
    vit = {"model_type": "vit", "image_size": 384, "patch_size": 16, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
    geometry = read_config(tmp_path, image_model(vit, {"model_type": "trocr"}), 100)
    assert geometry.bytes.fixed_per_request == 12 * 2 * 1024 * 2 * (24 * 24 + 1)
    assert geometry.bytes.growth_per_token == 12 * 2 * 1024 * 2


def test_rows_that_the_file_does_not_tell_are_asked_for(tmp_path):
    """Donut's encoder merges patches; Moonshine's rows grow with the recording, and 194 is its decoder's limit."""
    swin = {"model_type": "donut-swin", "image_size": [2560, 1920], "patch_size": 4, "window_size": 10}
    moonshine = config("moonshine", 8, 416, 8, is_encoder_decoder=True, decoder_num_hidden_layers=8, decoder_num_attention_heads=8, max_position_embeddings=194)  # fmt: skip
    for values in (image_model(swin, {"model_type": "mbart"}), moonshine):
        with pytest.raises(BadInput, match="--encoder-tokens"):
            read_config(tmp_path, values)
    # 415 rows: ten seconds.
    assert read_config(tmp_path, moonshine, 7, encoder_tokens=415).bytes.fixed_per_request == 8 * 2 * 416 * 2 * 415
