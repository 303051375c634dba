"""What an evaluation is about: the arms, the questions, the held-out documents."""

from __future__ import annotations

from dataclasses import dataclass

from kvassay.corpora.splits import load_split
from kvassay.corpora.tokens import ids_digest
from kvassay.errors import BadInput
from kvassay.evaluation.arms import CANARY, NATIVE, NOISE, questions
from kvassay.evaluation.rows import Ledger
from kvassay.formats import NATIVE as NATIVE_FORMAT
from kvassay.records.corpora import Corpora
from kvassay.records.export import ArmExport, Export
from kvassay.records.frontier import Pair
from kvassay.records.model import Model
from kvassay.records.probe import Probe
from kvassay.solving.kv_map import map_pairs
from kvassay.stage import StageInput
from kvassay.store import Run
from kvassay.targets.launch import read_export
from kvassay.tasks.item import Item
from kvassay.tasks.planned import planned_items
from kvassay.tasks.tokenizer import task_tokenizer


@dataclass(frozen=True)
class Bench:
    """served: every arm that gets a server, native and the canary included. compared: those that are judged against native."""

    served: dict[str, ArmExport]
    compared: tuple[str, ...]
    canary_format: str
    tasks: dict[str, tuple[Item, ...]]
    documents: list[list[int]]

    @property
    def asked(self) -> tuple[str, ...]:
        """Every arm that answers: the guards of the harness first, so that a harness that reads no cache stops early."""
        return (NATIVE, NOISE, CANARY, *self.compared)

    @property
    def items(self) -> list[Item]:
        return [item for items in self.tasks.values() for item in items]

    @property
    def longest_tokens(self) -> int:
        """Cache tokens of the longest request."""
        return max([*(item.needs_tokens for item in self.items), *(len(document) + 1 for document in self.documents)])

    def unanswered(self, ledger: Ledger, arms: tuple[str, ...]) -> list[tuple[str, Item]]:
        """Questions without an answer, item by item across `arms`, so that an interrupted run leaves whole pairs."""
        wanted = {arm: {id(item) for items in self.tasks.values() for item in questions(arm, items)} for arm in arms}
        return [(arm, item) for item in self.items for arm in arms if id(item) in wanted[arm] and ledger.answered(arm, item) is None]

    def unmeasured(self, ledger: Ledger, arms: tuple[str, ...]) -> int:
        """Documents without a KL, counted over `arms`."""
        digests = [ids_digest(document) for document in self.documents]
        return sum((arm, digest) not in ledger.documents for arm in arms if arm != NATIVE for digest in digests)


def make_bench(stage: StageInput) -> Bench:
    """Everything that is asked, before any server starts.

    Raises BadInput when native is not what it says, no canary was exported, or a question does not fit the model.
    """
    run, plan = stage.run, stage.plan
    model, export = run.read(Model), run.read(Export)
    arms = {name: arm for name, arm in export.arms.items() if arm is not None}
    if NATIVE not in arms or CANARY not in export.helpers:
        raise BadInput("export.json: without a native arm and a canary nothing can be judged; export again")
    refuse_quantized_baseline(run, arms[NATIVE], run.read(Probe))
    documents = load_split(run, plan, run.read(Corpora), "heldout")
    if len(documents) < 2:
        raise BadInput("corpora.heldout.documents: 1; an interval over documents needs at least two")
    canary = export.helpers[CANARY]
    return Bench(
        served={**arms, CANARY: canary},
        compared=tuple(name for name in arms if name != NATIVE),
        canary_format=pair_name(worst_pair(run, canary)),
        tasks=planned_items(plan, task_tokenizer(run, model), model.max_position_embeddings),
        documents=documents,
    )


def refuse_quantized_baseline(run: Run, native: ArmExport, probe: Probe) -> None:
    """A baseline whose cache is itself quantized would hide every loss: raise BadInput."""
    kv_map, _ = read_export(run.path(native.folder))
    if any(pair != Pair(k=NATIVE_FORMAT, v=NATIVE_FORMAT) for pair in map_pairs(kv_map)):
        raise BadInput(f"{run.path(native.folder, 'map.json')}: the baseline's cache is quantized; a comparison with it is not applicable")
    probed = probe.arms.get(NATIVE)
    if probed is None or probed.formats_match is not True:
        raise BadInput("probe.json: the native server did not show a native cache, so nothing can be compared with it; see its reasons")


def worst_pair(run: Run, canary: ArmExport) -> Pair:
    kv_map, _ = read_export(run.path(canary.folder))
    return map_pairs(kv_map)[0]


def pair_name(pair: Pair) -> str:
    """ "k/v", or one name where both are the same."""
    return pair.k if pair.k == pair.v else f"{pair.k}/{pair.v}"
