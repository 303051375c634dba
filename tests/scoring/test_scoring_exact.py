"""Exact isolated KL on the planted model: replay, ranks, resume, and models that give nonsense."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from kvassay.cache import DisturbingCache
from kvassay.errors import BadInput
from kvassay.plan.schema import Menu
from kvassay.progress import Silent
from kvassay.records.frontier import Pair
from kvassay.scoring import exact
from kvassay.scoring.exact import IsolatedScores, score_layers
from kvassay.scoring.kl import forward_kl
from kvassay.scoring.perturb import Candidate, candidates_cache, last_place_cache, untouched_cache
from kvassay.scoring.replay import Replay, decoder_layers
from kvassay.store import Rows

MENU = Menu(k=("native", "int8_g64", "int4_g64"), v=("native", "fp8_e4m3"))


def scored(prepared: Any, path: Path, menu: Menu = MENU, model: Any = None) -> IsolatedScores:
    return score_layers(model or prepared.model, prepared.geometry, prepared.documents, menu, 3.0, Rows(path, "key"), Silent())


def replay_of(prepared: Any, geometry: Any = None) -> Replay:
    geometry = geometry or prepared.geometry
    return Replay(prepared.model, decoder_layers(prepared.model, geometry), geometry, torch.tensor(prepared.documents))


def test_replay_equals_a_whole_forward(prepared: Any) -> None:
    replay = replay_of(prepared)
    assert replay.why_not is None
    for layer in range(4):
        cache = candidates_cache(4, layer, [Candidate("k", "int4_g64")], 2)
        before = replay.layer_forwards
        short = replay.logits(cache, layer)
        assert replay.layer_forwards - before == (4 - layer) * 2
        whole = replay.logits(cache, 0)
        torch.testing.assert_close(short, whole, rtol=0, atol=1e-4)
        assert forward_kl(replay.reference, short).mean() > 1e-4


def test_replay_leaves_the_model_as_it_was(prepared: Any) -> None:
    replay = replay_of(prepared)
    replay.logits(untouched_cache(4), 3)
    ids = torch.tensor(prepared.documents)
    torch.testing.assert_close(prepared.model(ids, use_cache=False).logits, replay.reference, rtol=0, atol=1e-5)
    assert not [layer for layer in replay.layers if "forward" in vars(layer)]


def test_candidates_side_by_side_equal_the_cache_that_serves(prepared: Any) -> None:
    replay = replay_of(prepared)
    pairs = [Pair(k="native", v="native"), Pair(k="int4_g64", v="native"), Pair(k="native", v="native"), Pair(k="native", v="native")]
    served = prepared.model(torch.tensor(prepared.documents), past_key_values=DisturbingCache(pairs)).logits
    both = replay.logits(candidates_cache(4, 1, [Candidate("v", "fp8_e4m3"), Candidate("k", "int4_g64")], 2), 1, 2)
    torch.testing.assert_close(both[2:], served, rtol=0, atol=1e-4)


def test_layers_that_share_a_cache_are_never_left_out(prepared: Any) -> None:
    layers = list(prepared.geometry.layers)
    layers[3] = layers[3].model_copy(update={"reads_from": 1})
    replay = replay_of(prepared, prepared.geometry.model_copy(update={"layers": tuple(layers)}))
    assert "read each other's cache" in str(replay.why_not)
    before = replay.layer_forwards
    replay.logits(untouched_cache(4), 3)
    assert replay.layer_forwards - before == 4 * 2


def test_planted_layers_are_the_most_sensitive(prepared: Any, tmp_path: Path) -> None:
    found = scored(prepared, tmp_path / "rows")
    k4 = {score.layer: score.kl_nats for score in found.scores if (score.tensor, score.format) == ("k", "int4_g64")}
    assert set(sorted(k4, key=k4.__getitem__)[-2:]) == {0, 3}
    assert min(k4[0], k4[3]) > 10 * max(k4[1], k4[2])
    assert k4[0] > 1.0  # collapse, not noise
    k8 = {score.layer: score.kl_nats for score in found.scores if (score.tensor, score.format) == ("k", "int8_g64")}
    assert all(k8[layer] < k4[layer] / 5 for layer in k4)


def test_every_candidate_once_with_errors_and_floor(prepared: Any, tmp_path: Path) -> None:
    found = scored(prepared, tmp_path / "rows")
    assert [(s.layer, s.tensor, s.format) for s in found.scores] == [
        (layer, tensor, name) for layer in range(4) for tensor, name in (("k", "int8_g64"), ("k", "int4_g64"), ("v", "fp8_e4m3"))
    ]
    first = found.scores[0]
    a, b = first.per_document_nats
    assert first.kl_nats == pytest.approx((a + b) / 2)
    assert first.standard_error_nats == pytest.approx(abs(a - b) / 2)
    assert 0 < found.floor_nats < 1e-8
    assert not any(score.at_floor for score in found.scores)
    assert found.why_no_reuse is None
    # Reference 4, two trials (2 + 1), floor 4; then 3 candidates x (4 + 3 + 2 + 1) layers; each over 2 documents.
    assert found.layer_forwards == 2 * (4 + 3 + 4 + 3 * 10)


def test_at_floor_is_said(prepared: Any, tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows", "key")
    found = score_layers(prepared.model, prepared.geometry, prepared.documents, MENU, 1e12, rows, Silent())
    assert all(score.at_floor for score in found.scores if score.kl_nats < 1e12 * found.floor_nats)
    assert any(score.at_floor for score in found.scores)


def test_resumed_run_equals_an_uninterrupted_one(prepared: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = scored(prepared, tmp_path / "whole")
    done: list[int] = []
    real = exact.score_one_layer

    def killed(geometry: Any, replays: Any, place: int, candidates: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(place)
        return real(geometry, replays, place, candidates)

    monkeypatch.setattr(exact, "score_one_layer", killed)
    with pytest.raises(KeyboardInterrupt):
        scored(prepared, tmp_path / "cut")
    with (tmp_path / "cut").open("ab") as handle:
        handle.write(b'{"layer": 2, "sco')  # kill -9 in the middle of a row
    monkeypatch.setattr(exact, "score_one_layer", lambda g, r, place, c: done.append(place) or real(g, r, place, c))
    assert scored(prepared, tmp_path / "cut") == whole
    assert done == [0, 1, 2, 3]
    assert (tmp_path / "cut").read_bytes() == (tmp_path / "whole").read_bytes()


def test_batches_of_candidates_do_not_change_scores(prepared: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = scored(prepared, tmp_path / "a")
    monkeypatch.setattr(exact, "LOGITS_BYTES", 1)
    monkeypatch.setattr(exact, "GROUP_TOKENS", 1)
    apart = scored(prepared, tmp_path / "b")
    for one, other in zip(together.scores, apart.scores, strict=True):
        assert one.per_document_nats == pytest.approx(other.per_document_nats, rel=1e-3)


def test_a_model_that_ignores_its_cache_is_refused(prepared: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvassay.scoring.perturb.disturb", lambda name, x: x)
    with pytest.raises(BadInput, match="layer 0, K in int8_g64: quantization never engaged"):
        scored(prepared, tmp_path / "rows")


def test_nan_weights_name_layer_and_position(prepared: Any, tmp_path: Path) -> None:
    model = copy.deepcopy(prepared.model)
    model.model.layers[2].mlp.down_proj.weight[0, 0] = float("nan")
    with pytest.raises(BadInput, match="NaN or infinite logits in document 0, position 0, first seen after decoder layer 2"):
        scored(prepared, tmp_path / "rows", model=model)
    head = copy.deepcopy(prepared.model)
    head.model.norm.weight[0] = float("inf")
    with pytest.raises(BadInput, match="first seen in the head"):
        scored(prepared, tmp_path / "rows", model=head)


def test_a_format_that_gives_nan_is_named(prepared: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvassay.scoring.perturb.disturb", lambda name, x: x * float("nan"))
    with pytest.raises(BadInput, match=r"layer 0, K in int8_g64: NaN or infinite logits at position \d+ of document 0"):
        scored(prepared, tmp_path / "rows")


def test_last_place_moves_every_element_by_one_unit() -> None:
    k = torch.tensor([[[[1.0, -1.0, 0.0, 1e30]]]])
    moved, _ = last_place_cache(1).update(k, k, 0)
    assert (moved > k).all()
    assert torch.equal(torch.nextafter(moved, torch.full_like(k, float("-inf"))), k)
