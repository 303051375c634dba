"""The stages score (every candidate alone) and measure (whole maps)."""

from __future__ import annotations

from typing import Any, cast

import torch

from kvassay.capabilities import CAPABILITIES
from kvassay.corpora.splits import load_split
from kvassay.errors import BadInput
from kvassay.formats import NATIVE
from kvassay.models.loading import load_model
from kvassay.records.base import Interval
from kvassay.records.corpora import Corpora
from kvassay.records.frontier import Frontier
from kvassay.records.geometry import Geometry
from kvassay.records.ladder import Ladder, Rung
from kvassay.records.model import Model
from kvassay.records.scores import Scores
from kvassay.scoring.exact import score_layers
from kvassay.scoring.joint import JointMeter
from kvassay.scoring.rungs import rungs_of, within_budget
from kvassay.scoring.sketch import candidates_of
from kvassay.scoring.sketch_scores import SKETCH, save_sketch, scores_of, sketch_rows
from kvassay.stage import StageInput
from kvassay.store import Rows

SCORE_ROWS = "scores.rows.jsonl"
LADDER_ROWS = "ladder.rows.jsonl"


def score(stage: StageInput) -> Scores:
    """Isolated KL of every candidate on the scoring split; a finished row is never computed twice."""
    run, plan = stage.run, stage.plan
    geometry, documents = run.read(Geometry), load_split(run, plan, run.read(Corpora), "scoring")
    rows = Rows(run.path(SCORE_ROWS), stage.key)
    return _sketched(stage, geometry, documents, rows) if plan.score.method == "sketch" else _exact(stage, geometry, documents, rows)


def _sketched(stage: StageInput, geometry: Geometry, documents: list[list[int]], rows: Rows) -> Scores:
    """By the sketch: one forward and a few backward passes a document."""
    plan, run = stage.plan, stage.run
    model, dtype = scoring_model(stage)
    z = sketch_rows(model, geometry, documents, plan.formats, plan.score.probes, plan.seeds.scoring, rows, stage.progress)
    candidates, positions = candidates_of(plan.formats), len(documents[0])
    save_sketch(run, z, positions, candidates, geometry)
    return Scores(
        method="sketch",
        probes=plan.score.probes,
        dtype=dtype,
        numerics=_numerics(stage),
        positions=sum(len(document) for document in documents),
        documents=len(documents),
        prefix_reuse=False,
        prefix_reuse_reason="the sketch runs every document once",
        layer_forwards=len(documents) * len(geometry.layers) * (1 + plan.score.probes),
        floor_nats=0.0,
        scores=scores_of(z, geometry, candidates, positions),
        side_files=(run.side_file(SKETCH),),
    )


def _exact(stage: StageInput, geometry: Geometry, documents: list[list[int]], rows: Rows) -> Scores:
    """By running every candidate."""
    plan = stage.plan
    model, dtype = scoring_model(stage)
    found = score_layers(model, geometry, documents, plan.formats, plan.score.floor_multiple, rows, stage.progress)
    return Scores(
        method="exact_isolated_kl",
        dtype=dtype,
        numerics=_numerics(stage),
        positions=sum(len(document) for document in documents),
        documents=len(documents),
        prefix_reuse=found.why_no_reuse is None,
        prefix_reuse_reason=found.why_no_reuse,
        layer_forwards=found.layer_forwards,
        floor_nats=found.floor_nats,
        scores=found.scores,
    )


def _numerics(stage: StageInput) -> dict[str, str]:
    formats = sorted({name for name in (*stage.plan.formats.k, *stage.plan.formats.v) if name != NATIVE})
    return dict.fromkeys(formats, CAPABILITIES[stage.plan.target].numerics)


def measure(stage: StageInput) -> Ladder:
    """Joint KL of whole maps on the choice split; a finished map is never measured twice."""
    run, plan = stage.run, stage.plan
    geometry, frontier = run.read(Geometry), run.read(Frontier)
    documents = load_split(run, plan, run.read(Corpora), "choice")
    wanted = rungs_of(frontier, plan.ladder)
    if not wanted:
        raise BadInput("frontier.json: no map to measure; allow more formats or a larger budget")
    if len(documents) < 2:
        raise BadInput("corpora.choice.documents: 1; an interval over documents needs at least two")
    model, dtype = scoring_model(stage)
    meter = JointMeter(model, geometry, documents, plan.seeds.bootstrap)
    rows = Rows(run.path(LADDER_ROWS), stage.key)
    finished = {(row["kind"], row["name"]): row for row in rows.load()}
    rungs = []
    with stage.progress.step("measuring whole maps", len(wanted) + 1) as step:
        floor = meter.floor_nats()
        step.advance()
        for kind, point in wanted:
            row = finished.get((kind, point.name))
            if row is None:
                kl = meter.measure(point.pairs)
                row = {
                    "kind": kind,
                    "name": point.name,
                    "kl_nats": kl.mean_nats,
                    "kl_interval": kl.interval.model_dump(),
                    "kl_p99_nats": kl.p99_nats,
                    "per_document_nats": list(kl.per_document_nats),
                }
                rows.append(row)
            rungs.append(
                Rung(
                    name=point.name,
                    kind=kind,
                    bits=point.bits,
                    bytes_per_token=point.bytes_per_token,
                    pairs=point.pairs,
                    predicted_kl_nats=point.predicted_kl_nats,
                    kl_nats=row["kl_nats"],
                    kl_interval=Interval.model_validate(row["kl_interval"]),
                    kl_p99_nats=row["kl_p99_nats"],
                    per_document_nats=tuple(row["per_document_nats"]),
                    within_budget=within_budget(point, frontier.budget_bits),
                )
            )
            step.advance()
    positions = sum(len(document) for document in documents)
    return Ladder(dtype=dtype, positions=positions, documents=len(documents), floor_nats=floor, rungs=tuple(rungs))


def scoring_model(stage: StageInput) -> tuple[Any, str]:
    """The prepared model in the plan's scoring dtype, on the accelerator when there is one, and that dtype's name."""
    prepared = stage.run.read(Model)
    name = prepared.native_dtype if stage.plan.score.dtype == "model" else stage.plan.score.dtype
    with stage.progress.step(f"loading the model in {name}", 1) as step:
        model: Any = load_model(stage.run.path(prepared.folder), cast("torch.dtype", getattr(torch, name)), prepared.trust_remote_code)
        model = model.to("cuda" if torch.cuda.is_available() else "cpu")
        step.advance()
    return model, name
