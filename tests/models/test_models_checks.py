"""A model folder that is torn, incomplete or put together from two models is refused by name before anything heavy starts."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from kvassay.errors import BadInput
from kvassay.models.checks import check_folder
from kvassay.models.loading import load_model, load_tokenizer
from support.planted import make_planted_model, make_tokenizer


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_planted_model(tmp_path_factory.mktemp("planted"), layers=2)


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "model"))


def edit_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


def test_whole_model_has_its_facts(folder: Path) -> None:
    facts = check_folder(folder)
    assert (facts.model_type, facts.native_dtype, facts.vocab_size, facts.max_position_embeddings) == ("llama", "bfloat16", 512, 4096)
    assert facts.weights_bytes == (folder / "model.safetensors").stat().st_size


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_truncated_safetensors(folder: Path, keep: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(BadInput, match=r"model\.safetensors"):
        check_folder(folder)


def test_safetensors_header_that_is_no_json(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 10) + b"x" * 10)
    with pytest.raises(BadInput, match="damaged safetensors header"):
        check_folder(folder)


def test_missing_config(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(BadInput, match=r"config\.json: missing"):
        check_folder(folder)


@pytest.mark.parametrize("key", ["num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "max_position_embeddings"])
def test_config_without_a_needed_key(folder: Path, key: str) -> None:
    edit_config(folder, **{key: None})
    with pytest.raises(BadInput, match=f"config.json: no {key}"):
        check_folder(folder)


def test_config_with_a_nonsense_number(folder: Path) -> None:
    edit_config(folder, num_hidden_layers=-3)
    with pytest.raises(BadInput, match="num_hidden_layers is -3"):
        check_folder(folder)


def test_tokenizer_of_a_larger_model(folder: Path) -> None:
    make_tokenizer(700).save_pretrained(folder)
    with pytest.raises(BadInput, match="token ids go up to 699, the model knows only 512"):
        check_folder(folder)


def test_tokenizer_without_the_end_token(folder: Path) -> None:
    edit_config(folder, eos_token_id=511)
    make_tokenizer(300).save_pretrained(folder)
    with pytest.raises(BadInput, match=r"no token 511, which config\.json names as eos_token_id"):
        check_folder(folder)


def test_no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(BadInput, match="no tokenizer"):
        check_folder(folder)


def test_pickled_weights_are_refused_unread(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"never read")
    with pytest.raises(BadInput, match=r"only pickled weights \(pytorch_model\.bin\)"):
        check_folder(folder)


def test_a_shard_that_is_missing(folder: Path) -> None:
    weight_map = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    with pytest.raises(BadInput, match=r"model-00002-of-00002\.safetensors: named in"):
        check_folder(folder)


def test_index_may_not_leave_the_folder(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../model.safetensors"}}))
    with pytest.raises(BadInput, match="named in"):
        check_folder(folder)


def test_load_model_is_frozen_and_in_the_asked_dtype(folder: Path) -> None:
    model = load_model(folder, torch.float32)
    assert not model.training
    assert {(p.dtype, p.requires_grad) for p in model.parameters()} == {(torch.float32, False)}
    assert load_tokenizer(folder).decode(load_tokenizer(folder).encode("a <b> c")) == "a <b> c"


def test_missing_weight_is_not_filled_with_random_numbers(folder: Path) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    del tensors["model.layers.1.self_attn.k_proj.weight"]
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(BadInput, match=r"1 weights are missing .*layers\.1\.self_attn\.k_proj\.weight"):
        load_model(folder, torch.float32)


def test_unknown_architecture(folder: Path) -> None:
    edit_config(folder, model_type="no_such_model", architectures=["NoSuchModel"])
    with pytest.raises(BadInput, match="cannot load this model"):
        load_model(folder, torch.float32)
