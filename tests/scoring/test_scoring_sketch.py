"""The sketch against the Fisher information enumerated, against exact KL, and resumed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from transformers import Cache, LlamaConfig, LlamaForCausalLM

from kvassay.errors import BadInput
from kvassay.plan.schema import Menu
from kvassay.progress import Silent
from kvassay.scoring import sketch
from kvassay.scoring.exact import score_layers
from kvassay.scoring.kl import forward_kl
from kvassay.scoring.perturb import Candidate, Untouched
from kvassay.scoring.sketch import Recording, candidates_of, draw, gradients, kl_of, sketch_documents
from kvassay.scoring.sketch_scores import SKETCH, save_sketch, scores_of, sketch_rows
from kvassay.store import Rows

MENU = Menu(k=("native", "int8_g64", "int4_g64"), v=("native", "fp8_e4m3"))


class Shifted(Untouched):
    """K and V moved by given amounts."""

    def __init__(self, k: torch.Tensor, v: torch.Tensor) -> None:
        super().__init__()
        self.by = (k, v)

    def change(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return k + self.by[0], v + self.by[1]


@pytest.fixture(scope="module")
def toy() -> Any:
    """Six tokens of vocabulary, two layers: every draw of three positions can be enumerated."""
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=6, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=8
    )
    return LlamaForCausalLM(config).double().eval().requires_grad_(False)


def test_estimate_is_half_delta_fisher_delta_enumerated(toy: Any) -> None:
    """E over all 6^3 draws of z² / 2T equals the second-order KL from the logits' own Jacobian, for a joint disturbance of both layers."""
    ids = torch.tensor([[1, 4, 2]])
    layers = [Recording(), Recording()]
    embedded = toy.get_input_embeddings()(ids).requires_grad_(True)
    logits = toy(inputs_embeds=embedded, past_key_values=Cache(layers=layers), use_cache=True).logits
    stored = [tensor for layer in layers for tensor in (layer.k, layer.v)]
    torch.manual_seed(2)
    deltas = [torch.randn_like(tensor) for tensor in stored]
    probabilities = logits.detach().softmax(-1)[0]
    expected = 0.0
    for tokens in itertools.product(range(6), repeat=3):
        found = gradients(logits, stored, torch.tensor(tokens).view(1, 3, 1), keep_graph=True)
        z = sum((g * delta).sum() for g, delta in zip(found, deltas, strict=True))
        weight = torch.stack([probabilities[position, token] for position, token in enumerate(tokens)]).prod()
        expected += float(weight * kl_of(z, 3))

    def moved(step: float) -> torch.Tensor:
        cache = Cache(layers=[Shifted(step * deltas[2 * place], step * deltas[2 * place + 1]) for place in range(2)])
        return toy(ids, past_key_values=cache, use_cache=True).logits[0]

    slope = (moved(1e-5) - moved(-1e-5)) / 2e-5
    variance = (probabilities * slope**2).sum(-1) - (probabilities * slope).sum(-1) ** 2
    assert expected == pytest.approx(float(variance.mean() / 2), rel=2e-3)
    # And it is what the exact KL becomes as the disturbance is scaled to zero.
    errors = [abs(float(forward_kl(moved(0), moved(step)).mean()) / (expected * step**2) - 1) for step in (0.1, 0.03, 0.01)]
    assert errors[0] > errors[1] > errors[2] and errors[2] < 0.06


def test_draws_follow_the_distribution(toy: Any) -> None:
    logits = torch.log(torch.tensor([[[0.5, 0.25, 0.125, 0.125]]])).expand(1, 4000, 4)
    counts = torch.bincount(draw(logits, [3]).flatten(), minlength=4) / 4000
    torch.testing.assert_close(counts, torch.tensor([0.5, 0.25, 0.125, 0.125]), rtol=0, atol=0.03)


def test_a_document_draws_alike_beside_others(prepared: Any) -> None:
    ids = torch.tensor(prepared.documents[:2])
    both = sketch_documents(prepared.model, 4, ids, [Candidate("k", "int4_g64")], [[11, 12], [21, 22]])
    alone = sketch_documents(prepared.model, 4, ids[1:], [Candidate("k", "int4_g64")], [[12], [22]])
    torch.testing.assert_close(both[1:], alone, rtol=1e-3, atol=1e-4)


def test_sketch_agrees_with_exact_kl(prepared: Any, tmp_path: Path) -> None:
    """Within four standard errors of √(2/n) for small losses, and in the same order."""
    candidates, probes = candidates_of(MENU), 60
    exact = score_layers(prepared.model, prepared.geometry, prepared.documents, MENU, 3.0, Rows(tmp_path / "exact.jsonl", "key"), Silent())
    z = sketch_rows(prepared.model, prepared.geometry, prepared.documents, MENU, probes, 4, Rows(tmp_path / "rows.jsonl", "key"), Silent())
    estimated = {(s.layer, s.tensor, s.format): s.kl_nats for s in scores_of(z, prepared.geometry, candidates, len(prepared.documents[0]))}
    true = {(s.layer, s.tensor, s.format): s.kl_nats for s in exact.scores}
    assert estimated.keys() == true.keys()
    error = 4 * (2 / (probes * len(prepared.documents))) ** 0.5
    small = [key for key, kl in true.items() if 1e-6 < kl < 1e-3]
    assert len(small) >= 4
    assert [key for key in small if abs(estimated[key] / true[key] - 1) > error] == []
    assert max(true, key=true.__getitem__) == max(estimated, key=estimated.__getitem__)


def test_resume_gives_the_same_rows(prepared: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(name: str) -> torch.Tensor:
        return sketch_rows(prepared.model, prepared.geometry, prepared.documents, MENU, 2, 4, Rows(tmp_path / name, "key"), Silent())

    monkeypatch.setattr("kvassay.scoring.exact.GROUP_TOKENS", 1)
    whole = rows("whole.jsonl")
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + len(prepared.documents)
    (tmp_path / "torn.jsonl").write_bytes(lines[0] + lines[1] + lines[2][:40])
    calls: list[int] = []
    real = sketch.sketch_documents

    def counted(*arguments: Any) -> torch.Tensor:
        calls.append(1)
        return real(*arguments)

    monkeypatch.setattr("kvassay.scoring.sketch_scores.sketch_documents", counted)
    assert torch.equal(rows("torn.jsonl"), whole)
    assert len(calls) == len(prepared.documents) - 1


def test_the_sketch_is_kept_with_its_axes(prepared: Any, tmp_path: Path) -> None:
    z = torch.randn(2, 2, 3, 4)
    save_sketch(prepared.run, z, 64, candidates_of(MENU), prepared.geometry)
    with safe_open(prepared.run.path(SKETCH), "pt") as kept:
        assert torch.equal(kept.get_tensor("z"), z)
        assert kept.metadata()["candidates"] == "k:int8_g64 k:int4_g64 v:fp8_e4m3"
        assert kept.metadata()["owner_layers"] == "0 1 2 3"


def test_a_model_that_ignores_its_cache_is_refused(prepared: Any) -> None:
    class Deaf:
        def get_input_embeddings(self) -> Any:
            return prepared.model.get_input_embeddings()

        def __call__(self, inputs_embeds: torch.Tensor, past_key_values: Cache, use_cache: bool) -> Any:
            for layer in past_key_values.layers:
                layer.update(inputs_embeds[:, None] * 1, inputs_embeds[:, None] * 1)
            return type("Output", (), {"logits": inputs_embeds * 2})

    with pytest.raises(BadInput, match="does not read it"):
        sketch_documents(Deaf(), 1, torch.tensor(prepared.documents[:1]), [Candidate("k", "int4_g64")], [[1]])
