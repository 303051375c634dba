"""Encoder-decoder and cross-attention models: the cross cache is filled once per request, from the encoder's tokens."""

import pytest

from kvassay.errors import BadInput
from support.families import BYSTANDERS, Family, assert_family, config, nested, read_config


def twin(model_type, **keys):
    shared = {key: value for key, value in BYSTANDERS.items() if key != "max_position_embeddings"}
    return shared | {"model_type": model_type, "is_encoder_decoder": True} | keys


def bart(layers, heads, d_model, positions=1024):
    return twin("bart", encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads, decoder_attention_heads=heads, d_model=d_model, max_position_embeddings=positions, encoder_ffn_dim=4096, decoder_ffn_dim=4096)  # fmt: skip


def whisper(layers, heads, d_model):
    return twin("whisper", encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads, decoder_attention_heads=heads, d_model=d_model, max_source_positions=1500, max_target_positions=448, num_mel_bins=128, num_hidden_layers=layers)  # fmt: skip


def t5(layers, heads, d_model, **more):
    return twin("t5", d_model=d_model, d_kv=64, num_heads=heads, num_layers=layers, d_ff=2048, relative_attention_num_buckets=32, **more)


def crossing(name, values, layers, each, tokens, **options):
    """each: bytes per token of one decoder layer, self or cross."""
    return Family(name, values, layers * each, {"full": layers, "cross": layers}, fixed=layers * each * tokens, options=options)


FAMILIES = [
    crossing("Whisper-large-v3", whisper(32, 20, 1280), 32, 2 * 20 * 64 * 2, 1500),
    crossing("Whisper-tiny", whisper(4, 6, 384), 4, 2 * 6 * 64 * 2, 1500),
    crossing("Whisper-tiny, 10 s of sound", whisper(4, 6, 384), 4, 2 * 6 * 64 * 2, 500, encoder_tokens=500),
    crossing("BART-large", bart(12, 16, 1024), 12, 2 * 16 * 64 * 2, 1024),
    crossing("BART-base, 100 tokens to summarize", bart(6, 12, 768), 6, 2 * 12 * 64 * 2, 100, encoder_tokens=100),
    crossing("T5-base, 512 tokens", t5(12, 12, 768), 12, 2 * 12 * 64 * 2, 512, encoder_tokens=512),
    # FLAN-T5-small: 6 heads of d_kv 64, wider apart than d_model / heads = 85.
    crossing("FLAN-T5-small, 512 tokens", t5(8, 6, 512, num_decoder_layers=8), 8, 2 * 6 * 64 * 2, 512, encoder_tokens=512),
    # 24 encoder layers, 12 decoder layers.
    crossing("a T5 with a short decoder", t5(24, 16, 1024, num_decoder_layers=12), 12, 2 * 16 * 64 * 2, 300, encoder_tokens=300),
]

CROSS_LAYERS = [3, 8, 13, 18, 23, 28, 33, 38]
LLAMA_VISION_11B = nested("mllama", config("mllama_text_model", 40, 4096, 32, 8, cross_attention_layers=CROSS_LAYERS), vision_config={"model_type": "mllama_vision_model", "image_size": 560, "patch_size": 14, "max_num_tiles": 4, "num_hidden_layers": 32, "num_global_layers": 8})  # fmt: skip
LLAMA_VISION_90B = nested("mllama", config("mllama_text_model", 100, 8192, 64, 8, cross_attention_layers=list(range(3, 100, 5))))
# 80 self and 20 cross layers of 2 * 8 * 128 * 2 = 4,096 bytes.
VISION = [
    Family("Llama-3.2-11B-Vision", LLAMA_VISION_11B, 32 * 4096, {"full": 32, "cross": 8}, all_tokens=40 * 4096, fixed=8 * 4096 * 6193, cross_per_token=8 * 4096, options={"encoder_tokens": 6193}),
    Family("Llama-3.2-90B-Vision", LLAMA_VISION_90B, 80 * 4096, {"full": 80, "cross": 20}, all_tokens=100 * 4096, fixed=20 * 4096 * 1601, cross_per_token=20 * 4096, options={"encoder_tokens": 1601}),
]  # fmt: skip


@pytest.mark.parametrize("row", [*FAMILIES, *VISION], ids=lambda row: row.name)
def test_family(tmp_path, row):
    geometry = assert_family(tmp_path, row)
    assert all((layer.kind == "cross") is (layer.encoder_tokens is not None) for layer in geometry.layers)
    assert all(layer.owner for layer in geometry.layers)


def test_decoder_layers_have_a_self_and_a_cross_entry(tmp_path):
    geometry = assert_family(tmp_path, FAMILIES[1])
    assert [(layer.index, layer.kind) for layer in geometry.layers[:4]] == [(0, "full"), (0, "cross"), (1, "full"), (1, "cross")]
    assert geometry.layers[1].encoder_tokens == 1500


def test_decoder_length_is_the_context(tmp_path):
    geometry = read_config(tmp_path, whisper(4, 6, 384))
    assert (geometry.max_position_embeddings, geometry.context_tokens) == (448, 448)


def test_image_rows_come_from_the_vision_part(tmp_path):
    """One image of 4 tiles of 40 × 40 patches and a class token each: 4 * (40 * 40 + 1) = 6,404 rows, and said."""
    geometry = read_config(tmp_path, LLAMA_VISION_11B, 10)
    assert geometry.bytes.fixed_per_request == 8 * 4096 * 6404
    assert any("6,404" in note for note in geometry.assumptions)


def test_cross_layers_of_a_vision_model_keep_no_text(tmp_path):
    geometry = assert_family(tmp_path, VISION[0])
    assert [layer.index for layer in geometry.layers if layer.kind == "cross"] == CROSS_LAYERS
    assert len({layer.index for layer in geometry.layers}) == 40


def test_relative_positions_leave_the_encoder_length_open(tmp_path):
    """T5 states no longest input: a number is asked for, never assumed."""
    with pytest.raises(BadInput, match="encoder"):
        read_config(tmp_path, t5(12, 12, 768))


def test_an_encoder_alone_keeps_no_cache(tmp_path):
    with pytest.raises(BadInput):
        read_config(tmp_path, {"model_type": "siglip_vision_model", "num_hidden_layers": 27, "hidden_size": 1152, "num_attention_heads": 16, "image_size": 384, "patch_size": 14})  # fmt: skip
