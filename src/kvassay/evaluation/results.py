"""From rows to results, without asking anything: the same rows always give the same record."""

from __future__ import annotations

from collections.abc import Sequence

from kvassay.evaluation.arms import CANARY, NATIVE, questions
from kvassay.evaluation.rows import ItemRow, Ledger, document_kls
from kvassay.records.evaluation import Comparison, ComparisonVerdict, ServedKL, TaskResult
from kvassay.statistics.comparison import compare, count_pairs, pooled_verdict
from kvassay.statistics.sensitivity import Sensitivity, judge_sensitivity
from kvassay.store import json_digest
from kvassay.tasks.item import Item
from kvassay.tasks.served_kl import summarise


def task_result(items: Sequence[Item], ledger: Ledger, compared: Sequence[str], chance: float, margin: float) -> TaskResult:
    """One task: native and every arm of `compared` on all its items."""
    rows = {arm: _rows(ledger, arm, items) for arm in (NATIVE, *compared)}
    sensitivity = _sensitivity(items, ledger, chance, margin)
    canary = _rows(ledger, CANARY, questions(CANARY, items))
    comparisons = {arm: _compared(rows[NATIVE], rows[arm], margin, sensitivity) for arm in compared}
    return TaskResult(
        n=len(items),
        prompts_sha256=json_digest(sorted([item.item, item.prompt_digest] for item in items)),
        scores={arm: score(found) for arm, found in rows.items()},
        chance=chance,
        canary_score=score(canary) if canary else None,
        sensitive=sensitivity.sensitive,
        sensitive_reason=sensitivity.reason,
        comparisons={arm: comparison for arm, comparison in comparisons.items() if comparison is not None},
        failed={arm: sum(row.error is not None for row in found) for arm, found in rows.items()},
        empty={arm: sum(row.empty for row in found) for arm, found in rows.items()},
        truncated={arm: sum(row.finish_reason == "length" for row in found) for arm, found in rows.items()},
        by_length=by_length(rows),
    )


def score(rows: Sequence[ItemRow]) -> float:
    """Share of right answers; a failed request is not one."""
    return sum(row.correct for row in rows) / max(len(rows), 1)


def by_length(rows: dict[str, list[ItemRow]]) -> dict[str, dict[str, float]]:
    """Score by length class and arm."""
    lengths = list(dict.fromkeys(row.length for row in rows[NATIVE]))
    return {length: {arm: score([row for row in found if row.length == length]) for arm, found in rows.items()} for length in lengths}


def arm_verdict(tasks: dict[str, TaskResult], arm: str) -> ComparisonVerdict:
    """The worst of the tasks; a task without a comparison shows nothing."""
    found = [result.comparisons.get(arm) for result in tasks.values()]
    return pooled_verdict("not_shown" if comparison is None else comparison.verdict for comparison in found)


def served_kl(ledger: Ledger, arm: str, documents: Sequence[Sequence[int]], top_k: int, seed: int) -> tuple[ServedKL | None, str | None]:
    """KL of `arm` over all `documents`, or None with the reason when one of them gave none."""
    rows = ledger.measured(arm, documents)
    errors = [row.error for row in rows if row.error is not None]
    if errors:
        return None, f"{len(errors)} of {len(documents)} documents gave no log-probabilities: {errors[0]}"
    return summarise(document_kls(rows), top_k, seed), None


def _rows(ledger: Ledger, arm: str, items: Sequence[Item]) -> list[ItemRow]:
    return [row for row in (ledger.answered(arm, item) for item in items) if row is not None]


def _compared(native: Sequence[ItemRow], arm: Sequence[ItemRow], margin: float, sensitivity: Sensitivity) -> Comparison | None:
    """Paired by item. Where native itself failed there is nothing to compare with: left out, and said so."""
    pairs = [(a.correct, b.correct) for a, b in zip(native, arm, strict=True) if a.error is None]
    if not pairs:
        return None
    comparison = compare(count_pairs([a for a, _ in pairs], [b for _, b in pairs]), margin, sensitivity)
    left_out = len(native) - len(pairs)
    if not left_out:
        return comparison
    return comparison.model_copy(update={"reason": f"{comparison.reason}; {left_out} items left out because native failed on them"})


def _sensitivity(items: Sequence[Item], ledger: Ledger, chance: float, margin: float) -> Sensitivity:
    native = {row.item: row.correct for row in _rows(ledger, NATIVE, items) if row.error is None}
    canary = {row.item: row.correct for row in _rows(ledger, CANARY, items) if row.item in native and row.error is None}
    return judge_sensitivity(list(native.values()), list(canary.values()), [native[item] for item in canary], chance, margin)
