"""One typed schema per artifact of a run folder."""

from kvassay.records.base import Record
from kvassay.records.card import Card
from kvassay.records.corpora import Corpora
from kvassay.records.evaluation import Evaluation
from kvassay.records.export import Export
from kvassay.records.frontier import Frontier
from kvassay.records.geometry import Geometry
from kvassay.records.kv_map import FrozenMap
from kvassay.records.ladder import Ladder
from kvassay.records.model import Model
from kvassay.records.probe import Probe
from kvassay.records.roadtest import Roadtest
from kvassay.records.scores import Scores

__all__ = [
    "ARTIFACTS",
    "Card",
    "Corpora",
    "Evaluation",
    "Export",
    "Frontier",
    "FrozenMap",
    "Geometry",
    "Ladder",
    "Model",
    "Probe",
    "Record",
    "Roadtest",
    "Scores",
]

ARTIFACTS: tuple[type[Record], ...] = (
    Model,
    Geometry,
    Corpora,
    Scores,
    Frontier,
    Ladder,
    FrozenMap,
    Export,
    Probe,
    Evaluation,
    Roadtest,
    Card,
)
