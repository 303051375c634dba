"""Joint KL of whole maps, the choice of rungs, and the two stages through the pipeline."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kvassay.errors import BadInput, DamagedArtifact
from kvassay.plan.schema import LadderChoice, ScoreChoice
from kvassay.records.frontier import Frontier, FrontierPoint, Pair
from kvassay.records.ladder import Ladder
from kvassay.records.scores import Scores
from kvassay.scoring import joint
from kvassay.scoring.joint import JointMeter
from kvassay.scoring.kl import forward_kl
from kvassay.scoring.rungs import chosen_mixed, chosen_uniform, rungs_of
from support.small_run import run_until

NATIVE = Pair(k="native", v="native")
COARSE = Pair(k="int4_g64", v="nvfp4")


def meter(prepared: Any) -> JointMeter:
    return JointMeter(prepared.model, prepared.geometry, prepared.documents, seed=2)


def test_native_map_loses_exactly_nothing(prepared: Any) -> None:
    found = meter(prepared).measure([NATIVE] * 4)
    assert (found.mean_nats, found.p99_nats, found.per_document_nats) == (0.0, 0.0, (0.0, 0.0))


def test_means_and_percentile_are_those_of_the_positions(prepared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[torch.Tensor] = []

    def spy(reference: torch.Tensor, candidate: torch.Tensor) -> torch.Tensor:
        kept.append(forward_kl(reference, candidate))
        return kept[-1]

    monkeypatch.setattr(joint, "forward_kl", spy)
    found = meter(prepared).measure([COARSE] * 4)
    positions = kept[0].double().numpy()
    assert found.positions == positions.size == 96
    assert found.mean_nats == pytest.approx(positions.mean())
    assert found.per_document_nats == pytest.approx(positions.mean(-1))
    assert found.p99_nats == np.quantile(positions, 0.99, method="inverted_cdf")
    assert found.interval.low <= found.mean_nats <= found.interval.high


def test_unkept_references_give_the_same(prepared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = meter(prepared).measure([COARSE] * 4)
    monkeypatch.setattr(joint, "KEPT_REFERENCE_BYTES", 0)
    assert meter(prepared).measure([COARSE] * 4) == kept


def test_a_worse_map_loses_more_and_the_floor_is_far_below(prepared: Any) -> None:
    measure = meter(prepared)
    fine, coarse = (measure.measure([pair] * 4).mean_nats for pair in (Pair(k="fp8_e4m3", v="fp8_e4m3"), COARSE))
    assert 0 < 1000 * measure.floor_nats() < fine < coarse / 10


def test_wrong_number_of_layers(prepared: Any) -> None:
    with pytest.raises(BadInput, match="a map of 3 layers for a model with 4"):
        meter(prepared).measure([NATIVE] * 3)


def point(name: str, bits: float, kl: float, *pairs: Pair) -> FrontierPoint:
    return FrontierPoint(
        name=name,
        budget_bits=bits,
        bits=bits,
        bytes_per_token=round(bits * 100),
        predicted_kl_nats=kl,
        pairs=pairs,
        served_by=(),
        solver_status="optimal",
    )


def test_mixed_points_are_even_over_bits_and_hold_the_budget() -> None:
    points = [point(f"m{n}", 4 + n, 1 / n, COARSE, NATIVE) for n in range(1, 12)] + [point("same", 9.5, 0.1, COARSE, COARSE)]
    assert [each.name for each in chosen_mixed(points, 5, 100)] == ["m1", "m3", "m6", "m8", "m11"]
    # 8.2 bits allow m4; it takes the place of its nearest neighbour.
    assert [each.name for each in chosen_mixed(points, 5, 8.2)] == ["m1", "m4", "m6", "m8", "m11"]
    assert [each.name for each in chosen_mixed(points[:3], 5, 100)] == ["m1", "m2", "m3"]


def test_uniform_pairs_hold_the_best_for_every_mixed_map() -> None:
    uniform = [
        point("u4", 4, 0.9, COARSE, COARSE),
        point("u6", 6, 0.5, COARSE, COARSE),
        point("u7", 7, 0.6, COARSE, COARSE),
        point("u9", 9, 0.1, COARSE, COARSE),
        point("native", 16, 0.0, NATIVE, NATIVE),
    ]
    mixed = [point("a", 5, 0.7, COARSE, NATIVE), point("b", 7.5, 0.3, COARSE, NATIVE)]
    assert [each.name for each in chosen_uniform(uniform, mixed, 1, 8)] == ["u4", "u6"]
    assert [each.name for each in chosen_uniform(uniform, mixed, 3, 8)] == ["u4", "u6", "u7"]
    assert [each.name for each in chosen_uniform(uniform, mixed, 9, 8)] == ["u4", "u6", "u7", "u9"]


@pytest.mark.parametrize(
    ("choice", "how"),
    [
        (ScoreChoice(method="exact"), ("exact_isolated_kl", 0, "float32", True)),
        (ScoreChoice(method="sketch", probes=32), ("sketch", 32, "float32", False)),
    ],
)
def test_score_and_measure_through_the_pipeline(prepared: Any, tmp_path: Path, choice: ScoreChoice, how: tuple[Any, ...]) -> None:
    folder = Path(shutil.copytree(prepared.folder, tmp_path / "run"))
    run = run_until(folder, prepared.plan.model_copy(update={"score": choice}), "score", "solve", "measure")
    scores, frontier, ladder = run.read(Scores), run.read(Frontier), run.read(Ladder)
    assert (scores.method, scores.probes, scores.dtype, scores.prefix_reuse) == how
    assert (scores.positions, scores.documents) == (96, 2)
    assert len(scores.scores) == 4 * (2 + 2)
    assert set(scores.numerics.values()) == {"reference"}
    assert (ladder.dtype, ladder.positions, ladder.documents) == ("float32", 96, 3)
    mixed = [rung for rung in ladder.rungs if rung.kind == "mixed"]
    uniform = [rung for rung in ladder.rungs if rung.kind == "uniform"]
    assert len(mixed) >= min(5, sum(len(set(each.pairs)) > 1 for each in frontier.points))
    for rung in mixed:
        smaller = [each for each in frontier.uniform if each.bytes_per_token <= rung.bytes_per_token]
        if smaller:
            assert min(smaller, key=lambda each: each.predicted_kl_nats).name in {each.name for each in uniform}
    assert [rung.bits for rung in ladder.rungs] == sorted(rung.bits for rung in ladder.rungs)
    assert {rung.within_budget for rung in ladder.rungs} == {True, False}
    # Below collapse the sum of isolated scores predicts the measured joint loss, on other text.
    small = [rung for rung in ladder.rungs if rung.kl_nats < 0.1]
    assert small
    assert all(0.4 < rung.kl_nats / rung.predicted_kl_nats < 2.5 for rung in small)


def test_measured_maps_are_not_measured_again(prepared: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(shutil.copytree(prepared.folder, tmp_path / "run"))
    run = run_until(folder, prepared.plan, "score", "solve", "measure")
    whole = run.read(Ladder)
    rows = run.path("ladder.rows.jsonl")
    run.path("ladder.json").unlink()
    rows.write_bytes(b"".join(rows.read_bytes().splitlines(keepends=True)[:-1]))
    measured: list[Any] = []
    real = JointMeter.measure
    monkeypatch.setattr(JointMeter, "measure", lambda self, pairs: measured.append(pairs) or real(self, pairs))
    run_until(folder, prepared.plan, "measure")
    assert run.read(Ladder) == whole
    assert len(measured) == 1


def test_rows_of_another_plan_are_refused(prepared: Any, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(prepared.folder, tmp_path / "run"))
    (folder / "scores.rows.jsonl").write_text('{"key":"of another plan"}\n')
    with pytest.raises(DamagedArtifact, match=r"scores\.rows\.jsonl: rows of another model, plan or version"):
        run_until(folder, prepared.plan, "score")


def test_rungs_come_by_rising_bits() -> None:
    frontier = Frontier(
        target="transformers",
        budget_bits=8,
        budget_text="8 bits",
        owner_layers=(0, 1),
        points=(point("m", 6.5, 0.2, COARSE, NATIVE),),
        uniform=(point("u", 4, 0.9, COARSE, COARSE),),
    )
    assert [(kind, each.name) for kind, each in rungs_of(frontier, LadderChoice())] == [("uniform", "u"), ("mixed", "m")]
