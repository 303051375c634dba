"""The prepare stage: whole folder or none, digests that follow the weights, a run that can be moved."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kvassay.errors import BadInput, DamagedArtifact
from kvassay.models.gguf import check_gguf, convert
from kvassay.models.loading import load_tokenizer
from kvassay.plan.schema import ModelChoice
from kvassay.records.model import Model
from kvassay.store import Run
from support.planted import make_planted_model
from support.small_run import run_until, small_plan


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_planted_model(tmp_path_factory.mktemp("planted"), layers=2)


def test_folder_is_taken_whole(planted: Path, tmp_path: Path) -> None:
    (planted / "notes.bin").write_bytes(b"not taken")
    (planted / "code.py").write_text("not taken either")
    run = run_until(tmp_path / "run", small_plan(planted), "prepare")
    model = run.read(Model)
    names = {Path(side.path).name for side in model.side_files}
    assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"} <= names
    assert not {"notes.bin", "code.py"} & names
    assert (model.model_type, model.native_dtype, model.source_kind, model.vocab_size) == ("llama", "bfloat16", "folder", 512)
    assert not run.path("model.partial").exists()
    assert str(planted.parent) not in run.path("model.json").read_text()


def test_moved_run_stays_valid_and_loses_nothing_with_its_source(planted: Path, tmp_path: Path) -> None:
    source = Path(shutil.copytree(planted, tmp_path / "source"))
    run_until(tmp_path / "run", small_plan(source), "prepare")
    shutil.rmtree(source)
    shutil.move(tmp_path / "run", tmp_path / "moved")
    moved = Run(tmp_path / "moved")
    moved.check_side_files(moved.read(Model))


def test_weights_digest_is_of_the_weights_only(planted: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(planted, tmp_path / "other"))
    (other / "generation_config.json").write_text("{}")
    first = run_until(tmp_path / "a", small_plan(planted), "prepare").read(Model)
    second = run_until(tmp_path / "b", small_plan(other), "prepare").read(Model)
    assert (first.weights_sha256, first.tokenizer_sha256) == (second.weights_sha256, second.tokenizer_sha256)
    assert first.source_sha256 != second.source_sha256
    changed = make_planted_model(tmp_path / "changed", layers=2, seed=1)
    assert run_until(tmp_path / "c", small_plan(changed), "prepare").read(Model).weights_sha256 != first.weights_sha256


def test_changed_weights_inside_the_run_are_seen(planted: Path, tmp_path: Path) -> None:
    source = Path(shutil.copytree(planted, tmp_path / "source"))
    plan = small_plan(source)
    run = run_until(tmp_path / "run", plan, "prepare")
    with run.path("model", "model.safetensors").open("r+b") as handle:
        handle.seek(-1, 2)
        handle.write(b"\x7f")
    with pytest.raises(DamagedArtifact, match=r"model/model\.safetensors: differs"):
        run_until(tmp_path / "run", plan, "prepare")


def test_killed_attempt_is_cleared_away(planted: Path, tmp_path: Path) -> None:
    for left in ("model.partial", "model"):
        (tmp_path / "run" / left).mkdir(parents=True)
        (tmp_path / "run" / left / "junk.json").write_text("{}")
    run = run_until(tmp_path / "run", small_plan(planted), "prepare")
    assert not run.path("model", "junk.json").exists()
    assert not run.path("model.partial").exists()


def test_torn_model_leaves_nothing_behind(planted: Path, tmp_path: Path) -> None:
    torn = Path(shutil.copytree(planted, tmp_path / "torn"))
    weights = torn / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(BadInput, match="cut short"):
        run_until(tmp_path / "run", small_plan(torn), "prepare")
    assert not (tmp_path / "run" / "model").exists()
    assert not (tmp_path / "run" / "model.partial").exists()


@pytest.mark.parametrize("data", [b"", b"GGUF", b"PK\x03\x04" + bytes(60), b"GGUF" + (99).to_bytes(4, "little") + bytes(60)])
def test_not_a_gguf(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=r"x\.gguf"):
        check_gguf(path)


def write_llama_gguf(path: Path) -> None:
    """A Llama of one layer with byte-level tokens, as llama.cpp's converter names things."""
    import gguf
    import numpy as np
    from tokenizers.pre_tokenizers import ByteLevel

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_block_count(1)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(64)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    tokens = ["<|end|>", *sorted(ByteLevel.alphabet()), "Ġa", "th"]
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([3] + [1] * (len(tokens) - 1))
    writer.add_token_merges(["Ġ a", "t h"])
    writer.add_eos_token_id(0)
    writer.add_bos_token_id(0)
    draw = np.random.default_rng(0)
    square = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
    shapes = {f"blk.0.{name}.weight": (64, 64) for name in square}
    for name, shape in (shapes | {"token_embd.weight": (len(tokens), 64)}).items():
        packed = gguf.quants.quantize(draw.standard_normal(shape, np.float32), gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor(name, packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    for name in ("blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "output_norm.weight"):
        writer.add_tensor(name, np.ones(64, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_gguf_becomes_the_dequantized_weights(tmp_path: Path) -> None:
    import gguf
    import torch
    from safetensors.torch import load_file

    path = tmp_path / "tiny.gguf"
    write_llama_gguf(path)
    steps: list[int] = []
    convert(path, tmp_path / "out", lambda: steps.append(1))
    assert len(steps) == 3
    tensors = load_file(tmp_path / "out" / "model.safetensors")
    packed = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}["blk.0.ffn_up.weight"]
    expected = torch.from_numpy(gguf.quants.dequantize(packed.data, packed.tensor_type).copy()).bfloat16()
    assert torch.equal(tensors["model.layers.0.mlp.up_proj.weight"], expected)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["num_hidden_layers"] == 1
    assert max(load_tokenizer(tmp_path / "out").encode("a <|endoftext|> b")) < tensors["model.embed_tokens.weight"].shape[0]


def test_gguf_is_put_into_a_run(tmp_path: Path) -> None:
    write_llama_gguf(tmp_path / "tiny.gguf")
    plan = small_plan(tmp_path, model=ModelChoice(gguf=tmp_path / "tiny.gguf"))
    model = run_until(tmp_path / "run", plan, "prepare").read(Model)
    assert (model.source, model.source_kind, model.native_dtype, model.max_position_embeddings) == ("tiny.gguf", "gguf", "bfloat16", 64)


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_truncated_gguf(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "tiny.gguf"
    write_llama_gguf(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(BadInput, match=r"tiny\.gguf: transformers cannot dequantize it"):
        convert(path, tmp_path / "out", lambda: None)
