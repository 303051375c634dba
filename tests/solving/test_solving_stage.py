"""The stages geometry and solve on a run folder, as the pipeline calls them."""

import json

import pytest

from kvassay.errors import BadInput, DamagedArtifact
from kvassay.geometry.stage import geometry as geometry_stage
from kvassay.plan.schema import Budget, LadderChoice, Menu, ModelChoice, Plan, Workload
from kvassay.progress import Silent
from kvassay.records.geometry import Geometry
from kvassay.records.model import Model
from kvassay.solving.stage import solve
from kvassay.stage import StageInput
from kvassay.store import Run
from support.small_geometry import MENU, small_scores

SHA = "a" * 64
CONFIG = {"model_type": "llama", "num_hidden_layers": 4, "num_key_value_heads": 2, "head_dim": 64, "dtype": "float16", "max_position_embeddings": 2048}  # fmt: skip


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path)
    run.path("model").mkdir()
    run.path("model", "config.json").write_text(json.dumps(CONFIG))
    model = Model(
        source="x", source_kind="folder", revision=None, source_sha256=SHA, weights_sha256=SHA, tokenizer_sha256=SHA, folder="model",
        model_type="llama", native_dtype="float16", vocab_size=1, weights_bytes=1, max_position_embeddings=2048, trust_remote_code=False,
    )  # fmt: skip
    run.write(model, {}, SHA)
    return run


def stage_input(run, budget, ladder=None):
    plan = Plan(
        model=ModelChoice(folder=run.folder),
        formats=Menu(k=MENU, v=MENU),
        budget=budget,
        workload=Workload(trace=run.path("t")),
        ladder=ladder or LadderChoice(),
    )
    return StageInput(run=run, plan=plan, progress=Silent(), key="k")


def test_geometry_then_solve(run):
    stage = stage_input(run, Budget(bits=6.0), LadderChoice(maps=7))
    geometry = geometry_stage(stage)
    assert (geometry.native_dtype, geometry.context_tokens, geometry.bytes.growth_per_token) == ("float16", 2048, 4 * 2 * 64 * 2 * 2)
    run.write(geometry, {}, SHA)
    assert run.read(Geometry) == geometry
    run.write(small_scores(geometry), {}, SHA)
    frontier = solve(stage)
    assert (frontier.target, frontier.budget_bits, frontier.budget_text) == ("transformers", 6.0, "6 bits per element")
    assert len(frontier.points) == 8
    assert solve(stage) == frontier, "the same input gives the same frontier"


def test_solve_refuses_an_impossible_budget(run):
    geometry = geometry_stage(stage_input(run, Budget(bits=6.0)))
    run.write(geometry, {}, SHA)
    run.write(small_scores(geometry), {}, SHA)
    with pytest.raises(BadInput, match="cheapest legal map"):
        solve(stage_input(run, Budget(bytes_per_token=100)))


def test_geometry_needs_a_prepared_model(run):
    run.path("model", "config.json").unlink()
    with pytest.raises(BadInput, match="not a model folder"):
        geometry_stage(stage_input(run, Budget(bits=6.0)))
    run.path("model.json").unlink()
    with pytest.raises(DamagedArtifact, match=r"model\.json: missing"):
        geometry_stage(stage_input(run, Budget(bits=6.0)))
