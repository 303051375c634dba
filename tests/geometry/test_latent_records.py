"""G1-11: GLM-5.2 in an engine's packed records, its indexers and its prediction layer beside them."""

import json

import pytest

from kvassay.errors import BadInput
from kvassay.formats import law
from kvassay.geometry.config import read_geometry
from kvassay.geometry.price import with_price
from kvassay.records.frontier import Pair

GLM_5_2 = {
    "model_type": "glm_moe_dsa", "dtype": "bfloat16", "num_hidden_layers": 78, "hidden_size": 6144, "num_attention_heads": 64,
    "num_key_value_heads": 64, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 192, "v_head_dim": 256,
    "index_topk": 2048, "index_head_dim": 128, "index_n_heads": 32, "index_topk_freq": 4, "num_nextn_predict_layers": 1,
    "max_position_embeddings": 202752,
}  # fmt: skip


@pytest.fixture
def geometry(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GLM_5_2))
    return read_geometry(path)


@pytest.mark.parametrize(
    ("name", "record_bytes", "whole"),
    [("fp8_ds_mla", 512 + 4 * 4 + 64 * 2, 54_728), ("nvfp4_ds_mla", 256 + 32 + 16 + 128, 37_032)],
)
def test_low_bit_saving_is_smaller_than_nominal(geometry, name, record_bytes, whole):
    pair = Pair(k=name, v="native")
    model = with_price(geometry, [pair] * 78, 1000)
    draft = with_price(geometry.model_copy(update={"layers": geometry.draft.layers}), [pair], 1000)
    assert law(name, "bfloat16").row_bytes(576) == record_bytes
    assert model.bytes.growth_per_token == 78 * record_bytes
    assert model.bytes.indexer_per_token == 21 * 132
    # The prediction layer is a line of its own, with a record and an indexer: 79 records and 22 indexers in all.
    assert draft.bytes.growth_per_token + draft.bytes.indexer_per_token == record_bytes + 132
    together = sum(each.bytes.growth_per_token + each.bytes.indexer_per_token for each in (model, draft))
    assert together == 79 * record_bytes + 22 * 132 == whole
    assert model.total_bytes == 1000 * (78 * record_bytes + 21 * 132)


def test_the_two_differ_by_less_than_two():
    assert round(54_728 / 37_032, 2) == 1.48


def test_a_record_fits_nothing_but_its_latent(geometry):
    with pytest.raises(BadInput, match="fp8_ds_mla: a record of 512 latent and 64 rotary elements, not of head_dim 128"):
        plain = geometry.model_copy(update={"layers": tuple(layer.model_copy(update={"k_dim": 128}) for layer in geometry.layers)})
        with_price(plain, [Pair(k="fp8_ds_mla", v="native")] * 78, 10)
