"""A run folder on the tiny planted model, ready for the stage under test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kvassay.pipeline import run_stage
from kvassay.plan.schema import Budget, CorporaChoice, Menu, ModelChoice, Plan, SplitSize, Workload
from kvassay.progress import Silent
from kvassay.store import Run

SMALL_CORPORA = CorporaChoice(
    scoring=SplitSize(documents=2, tokens=48), choice=SplitSize(documents=3, tokens=32), heldout=SplitSize(documents=3, tokens=32)
)


def small_plan(model_folder: Path, **changes: Any) -> Plan:
    """A plan of seconds: int8 and int4 for K, nvfp4 and fp8 for V."""
    given: dict[str, Any] = {
        "model": ModelChoice(folder=model_folder),
        "formats": Menu(k=("native", "int8_g64", "int4_g64"), v=("native", "fp8_e4m3", "nvfp4")),
        "budget": Budget(bits=8.0),
        "corpora": SMALL_CORPORA,
        "workload": Workload(trace=Path("unused.jsonl")),
    }
    return Plan(**(given | changes))


def run_until(folder: Path, plan: Plan, *stages: str) -> Run:
    """A run in `folder` with the named stages done."""
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(folder)
    for stage in stages:
        run_stage(run, plan, stage, Silent())
    return run
