"""Stage `evaluate`: held-out tasks and held-out text on every arm, paired with native."""

from __future__ import annotations

from kvassay.errors import DamagedArtifact
from kvassay.evaluation.arms import NATIVE, NOISE
from kvassay.evaluation.bench import Bench, make_bench
from kvassay.evaluation.canary import judge_canary, refuse_unmoved
from kvassay.evaluation.results import arm_verdict, served_kl, task_result
from kvassay.evaluation.rows import ITEM_ROWS, KL_ROWS, Ledger, document_kls
from kvassay.evaluation.sitting import ask_missing
from kvassay.records.evaluation import Evaluation, ServedKL
from kvassay.records.export import Export
from kvassay.stage import StageInput
from kvassay.tasks.planned import CHANCES
from kvassay.tasks.served_kl import mean_kl

BASELINE = "native is the baseline of every KL"


def evaluate(stage: StageInput) -> Evaluation:
    """Ask every arm what it has not answered yet, then judge from the rows alone.

    Raises BadInput when something may not be compared, EngineError when native or the canary does not start, an engine dies,
    or the canary moves nothing.
    """
    bench = make_bench(stage)
    ledger = Ledger(stage.run, stage.key, bench.items)
    unfinished = bench.unanswered(ledger, bench.asked) or bench.unmeasured(ledger, bench.asked)
    refused = ask_missing(stage, bench, ledger) if unfinished else {}
    return judge(stage, bench, ledger, refused)


def judge(stage: StageInput, bench: Bench, ledger: Ledger, refused: dict[str, str]) -> Evaluation:
    """The record, from rows that are complete but for the arms in `refused` (arm -> why it did not start)."""
    plan, export = stage.plan, stage.run.read(Export)
    compared = tuple(arm for arm in bench.compared if arm not in refused)
    if bench.unanswered(ledger, tuple(arm for arm in bench.asked if arm not in refused)):
        raise DamagedArtifact(f"{stage.run.path(ITEM_ROWS)}: answers are missing; run kvassay evaluate again")
    canary = judge_canary(ledger, bench.documents, list(bench.tasks.values()), bench.canary_format)
    refuse_unmoved(canary)
    tasks = {
        name: task_result(items, ledger, compared, CHANCES[name](items), plan.gates.quality_margin) for name, items in bench.tasks.items()
    }
    kl: dict[str, ServedKL | None] = {NATIVE: None}
    reasons = {NATIVE: BASELINE, **export.arms_reason, **{arm: f"did not start: {why}" for arm, why in refused.items()}}
    for arm in compared:
        kl[arm], reason = served_kl(ledger, arm, bench.documents, plan.tasks.served_kl.top_k, plan.seeds.bootstrap)
        reasons |= {} if reason is None else {arm: reason}
    kl |= {arm: None for arm in (*export.arms, *refused) if arm not in kl}
    return Evaluation(
        target=export.target,
        arms=(NATIVE, *compared),
        verdict={arm: arm_verdict(tasks, arm) if arm in compared else "not_shown" for arm in bench.compared},
        tasks=tasks,
        kl=kl,
        kl_reason=reasons,
        noise_kl_nats=mean_kl(document_kls(ledger.measured(NOISE, bench.documents))),
        canary=canary,
        longest_context_tokens=longest_context_tokens(bench, ledger, compared),
        seeds={"tasks": plan.seeds.tasks, "bootstrap": plan.seeds.bootstrap},
        look=1,
        side_files=(stage.run.side_file(ITEM_ROWS), stage.run.side_file(KL_ROWS)),
    )


def longest_context_tokens(bench: Bench, ledger: Ledger, compared: tuple[str, ...]) -> int:
    """Prompt and answer tokens of the longest question that native and every compared arm really answered."""
    served = [0]
    for item in bench.items:
        rows = [ledger.answered(arm, item) for arm in (NATIVE, *compared)]
        if all(row is not None and row.error is None for row in rows):
            served.append(len(item.prompt) + min(row.output_tokens for row in rows if row is not None))
    return max(served)
