"""What a decision rests on: every artifact of a run, read once."""

from __future__ import annotations

from dataclasses import dataclass

from kvassay.plan.schema import Gates, Incumbent
from kvassay.records import Corpora, Evaluation, Export, Frontier, FrozenMap, Geometry, Ladder, Model, Probe, Roadtest, Scores
from kvassay.records.card import Gate, Outcome, Scope
from kvassay.store import Run


@dataclass(frozen=True)
class RunRecords:
    """The artifacts of one run, without its card."""

    model: Model
    geometry: Geometry
    corpora: Corpora
    scores: Scores
    frontier: Frontier
    ladder: Ladder
    frozen: FrozenMap
    export: Export
    probe: Probe
    evaluation: Evaluation
    roadtest: Roadtest


@dataclass(frozen=True)
class Case:
    """One arm before the gates. `incumbent` is None when the plan names none."""

    arm: str
    scope: Scope
    gates: Gates
    incumbent: Incumbent | None
    records: RunRecords


def read_records(run: Run) -> RunRecords:
    """Every artifact that the card needs. Raises DamagedArtifact for a missing, torn or foreign one."""
    return RunRecords(
        model=run.read(Model),
        geometry=run.read(Geometry),
        corpora=run.read(Corpora),
        scores=run.read(Scores),
        frontier=run.read(Frontier),
        ladder=run.read(Ladder),
        frozen=run.read(FrozenMap),
        export=run.read(Export),
        probe=run.read(Probe),
        evaluation=run.read(Evaluation),
        roadtest=run.read(Roadtest),
    )


TITLES = {
    "one_build": "engine build",
    "kl_mean": "mean KL",
    "kl_p99": "KL p99",
    "ttft_p90": "TTFT p90",
    "tpot_p90": "TPOT p90",
    "requests": "road-test requests",
}


def title(name: str) -> str:
    """A gate's name as a reader says it."""
    return TITLES.get(name, name.replace("_", " "))


def gate(name: str, outcome: Outcome, expected: str, observed: str, evidence: str, why: str | None = None) -> Gate:
    """A gate whose sentence is "title: why", or "title: observed; expected ..." where nothing more needs saying."""
    sentence = f"{title(name)}: {why or f'{observed}; expected {expected}'}"
    return Gate(name=name, outcome=outcome, expected=expected, observed=observed, evidence=evidence, sentence=sentence)
