"""What every part of the road test works with: the arms, the requests, the finished rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvassay.errors import BadInput
from kvassay.records.export import ArmExport, Export
from kvassay.records.model import Model
from kvassay.roadtest.pool import text_pool
from kvassay.roadtest.rows import Ledger, RequestRow
from kvassay.stage import StageInput
from kvassay.store import Rows, json_digest
from kvassay.workload import Request, Trace, prompt_tokens, read_trace

ROWS_FILE = "requests.jsonl"
CHECKED_FRACTION = 0.02
CHECKED_AT_LEAST = 3


@dataclass(frozen=True)
class Bench:
    """One road test at work. `pool` is the text that prompts are cut from."""

    stage: StageInput
    export: Export
    model: Model
    trace: Trace
    pool: Sequence[int]
    ledger: Ledger

    @property
    def arms(self) -> dict[str, ArmExport]:
        """The arms that exist, in the order they are measured."""
        return {name: arm for name, arm in self.export.arms.items() if arm is not None}

    @property
    def kv_memory_bytes(self) -> int:
        return self.stage.plan.workload.kv_memory_bytes

    def request(self, index: int) -> Request:
        return self.trace.requests[index]

    def prompt(self, index: int) -> list[int]:
        """Prompt of request `index`; the same for every arm."""
        return prompt_tokens(self.pool, self.stage.plan.seeds.workload, index, self.request(index))

    def warmup_prompt(self, number: int) -> list[int]:
        """Warm-up prompt `number`: the shape of a trace request, but text that no trace request has."""
        request = self.request(number % len(self.trace.requests))
        return prompt_tokens(self.pool, self.stage.plan.seeds.workload, len(self.trace.requests) + number, request)

    @property
    def largest(self) -> int:
        """Number of the request that needs the most cache tokens."""
        return self.trace.requests.index(self.trace.longest)

    def good_rows(self, arm: str) -> dict[int, RequestRow]:
        """Replayed requests of `arm` that were answered well."""
        return {index: row for index, row in self.ledger.requests(arm).items() if row.outcome == "ok"}


def open_bench(stage: StageInput) -> Bench:
    """Read what the road test needs. Raises BadInput for an unusable trace, or a run without the map arm."""
    workload = stage.plan.workload
    trace = read_trace(workload.trace, workload.format, workload.limit)
    export, model = stage.run.read(Export), stage.run.read(Model)
    if export.arms.get("map") is None or export.arms.get("native") is None:
        raise BadInput(f"{stage.run.path(Export.artifact)}: no map or no native arm to road-test; run kvassay export again")
    ledger = Ledger(Rows(stage.run.path(ROWS_FILE), json_digest([stage.key, trace.sha256])))
    pool = text_pool(stage.run, model)
    return Bench(stage=stage, export=export, model=model, trace=trace, pool=pool, ledger=ledger)


def sample(indexes: Sequence[int], count: int) -> list[int]:
    """`count` of `indexes`, evenly spread and in order; all of them when there are no more."""
    if count >= len(indexes):
        return list(indexes)
    return [indexes[(2 * at + 1) * len(indexes) // (2 * count)] for at in range(count)]


def checked_count(requests: int) -> int:
    """How many answers of an arm are asked a second time."""
    return max(CHECKED_AT_LEAST, round(CHECKED_FRACTION * requests))
