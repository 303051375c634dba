"""Gates on what the arm answers: primary tasks, KL through the served cache, and whether the harness reads the cache at all."""

from __future__ import annotations

from collections.abc import Callable

from kvassay.card.evidence import Case, gate
from kvassay.card.wording import count, interval, nats, points, signed_points, significant
from kvassay.records.card import Gate, Outcome
from kvassay.records.evaluation import Comparison, ServedKL
from kvassay.statistics.quantiles import P99_NEEDS

PRIMARY_TASKS = ("retrieval", "short")


def quality_gates(case: Case) -> list[Gate]:
    return [canary_gate(case), *(task_gate(case, task) for task in PRIMARY_TASKS), kl_mean_gate(case), kl_p99_gate(case)]


def canary_gate(case: Case) -> Gate:
    """A harness that the worst cache cannot move does not read the cache: then nothing else here is evidence."""
    canary = case.records.evaluation.canary
    expected = "the worst cache the engine can serve changes what it answers"
    observed = f"{canary.format}: {nats(canary.kl_nats)}, {canary.answers_changed} of {canary.answers} answers changed"
    outcome: Outcome = "met" if canary.moved else "undecided"
    why = None if canary.moved else f"{canary.format} in every layer changed nothing, so these measurements do not read the cache"
    return gate("canary", outcome, expected, observed, "evaluation.json canary", why)


def task_gate(case: Case, task: str) -> Gate:
    margin = case.gates.quality_margin
    expected = f"no_worse than native at {points(margin)}"
    evidence = f"evaluation.json tasks.{task}.comparisons.{case.arm}"
    result = case.records.evaluation.tasks.get(task)
    if result is None:
        return gate(task, "undecided", expected, "not run", evidence, "the plan leaves this task out, so nothing is shown")
    comparison = result.comparisons.get(case.arm)
    if comparison is None:
        return gate(task, "undecided", expected, "not compared", evidence, f"arm {case.arm} was not compared with native")
    observed = compared(comparison)
    if comparison.margin != margin:
        judged = f"judged at {points(comparison.margin)}, the gate asks {points(margin)}"
        return gate(task, "undecided", expected, observed, evidence, judged)
    if not result.sensitive:
        return gate(task, "undecided", expected, observed, evidence, f"the task cannot judge this model: {result.sensitive_reason}")
    if comparison.verdict == "no_worse":
        return gate(task, "met", expected, observed, evidence)
    if comparison.verdict == "worse":
        return gate(task, "missed", expected, observed, evidence, f"worse than native: {observed}")
    return gate(task, "undecided", expected, observed, evidence, not_shown(comparison))


def compared(comparison: Comparison) -> str:
    """ "0.92 after 1.00 (-8.3 points [-28, +4], n 12)"."""
    low, high = signed_points(comparison.interval.low), signed_points(comparison.interval.high)
    return (
        f"{comparison.b:.2f}, native {comparison.a:.2f} ({signed_points(comparison.difference)} points [{low}, {high}], n {comparison.n})"
    )


def not_shown(comparison: Comparison) -> str:
    margin = points(comparison.margin)
    if comparison.n < comparison.items_needed:
        return f"{comparison.n:,} of {comparison.items_needed:,} items needed to show no_worse at {margin}"
    reaches = f"the interval still reaches {signed_points(comparison.interval.low)} points"
    return f"not shown at {margin} with {count(comparison.n, 'item')}: {reaches}"


def kl_mean_gate(case: Case) -> Gate:
    """The whole interval must lie under the limit; one that straddles it decides nothing."""
    limit = case.gates.kl_mean_nats

    def judge(served: ServedKL) -> tuple[Outcome, str | None]:
        if served.mean_interval.low > limit:
            return "missed", None
        if max(served.mean, served.mean_interval.high) <= limit:
            return "met", None
        return "undecided", f"{observe(served)} reaches over the limit of {nats(limit)}; more held-out documents would decide"

    def observe(served: ServedKL) -> str:
        return f"{nats(served.mean)} {interval(served.mean_interval)} over {count(served.documents, 'document')}"

    return served_kl_gate(case, "kl_mean", f"at most {nats(limit)}, interval included", observe, judge)


def kl_p99_gate(case: Case) -> Gate:
    """A 99th percentile is judged only where there are positions enough to have one."""
    limit = case.gates.kl_p99_nats

    def judge(served: ServedKL) -> tuple[Outcome, str | None]:
        if served.positions < P99_NEEDS:
            return "undecided", f"a 99th percentile needs {P99_NEEDS:,} positions, {served.positions} were scored"
        return ("met" if served.p99 <= limit else "missed"), None

    def observe(served: ServedKL) -> str:
        return f"{significant(served.p99, 2)} nats over {count(served.positions, 'position')}"

    return served_kl_gate(case, "kl_p99", f"at most {nats(limit)} at the worst 1 % of positions", observe, judge)


def served_kl_gate(
    case: Case, name: str, expected: str, observe: Callable[[ServedKL], str], judge: Callable[[ServedKL], tuple[Outcome, str | None]]
) -> Gate:
    """A gate on the arm's served KL. It is undecided without one, and where the canary showed that the cache is not read."""
    evidence = f"evaluation.json kl.{case.arm}"
    served = case.records.evaluation.kl.get(case.arm)
    if served is None or served.estimator == "none":
        return gate(name, "undecided", expected, "not measured", evidence, f"no served KL: {missing_kl(case)}")
    observed = observe(served)
    if not case.records.evaluation.canary.moved:
        return gate(name, "undecided", expected, observed, evidence, "the canary moved nothing, so this KL says nothing of the cache")
    outcome, why = judge(served)
    return gate(name, outcome, expected, observed, evidence, why)


def missing_kl(case: Case) -> str:
    return case.records.evaluation.kl_reason.get(case.arm) or "the engine gives no log-probabilities"
