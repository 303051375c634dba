"""What each headline figure cannot say, computed from the same records as the figure."""

from __future__ import annotations

from kvassay.card.evidence import RunRecords
from kvassay.card.wording import byte_count, count, points
from kvassay.records.card import Basis, CardArm, Hardware, Limit, Scope
from kvassay.records.evaluation import ServedKL, TaskResult
from kvassay.records.roadtest import ArmRoadtest

HEADLINES = (
    "payload_bytes_per_token",
    "memory",
    "throughput",
    "ttft_ms",
    "tpot_ms",
    "decode_tokens_per_s",
    "predicted_kl_nats",
    "measured_kl_nats",
    "kl_nats",
)

ONE_SEQUENCE = "batching, concurrency and any other engine: this is a one-sequence Python server"


def limits_of(records: RunRecords, scope: Scope, hardware: Hardware) -> tuple[Limit, ...]:
    """One Limit per group of headline figures and one per task; together they cover every figure that a reader meets first."""
    road, splits = records.roadtest, records.corpora.splits
    engine = f"{road.target} {road.version}, build {road.build}"
    in_process = f"the reference arithmetic in process, without a server, for target {records.frontier.target}"
    machine = f"{hardware.gpu or hardware.cpu}, {count(hardware.cores, 'core')}, {byte_count(hardware.memory_bytes)}"

    def limit(figures: tuple[str, ...], basis: Basis, build: str, longest: int | None, sample: str, excludes: str) -> Limit:
        return Limit(
            figures=figures,
            basis=basis,
            sample=sample,
            excludes=excludes,
            build=build,
            hardware=machine,
            longest_context_tokens=longest,
            longest_context_tokens_reason=None if longest is not None else "the evaluation does not record prompt lengths of this task",
        )

    return (
        limit(
            ("payload_bytes_per_token",),
            "modelled",
            engine,
            road.longest_request_tokens,
            sample=f"exact arithmetic over {count(len(records.geometry.owners), 'layer')}, block scales included",
            excludes=f"allocator blocks, padding and workspace of the engine; the running server held {held_per_token(records)}",
        ),
        limit(
            ("memory",),
            "measured",
            engine,
            road.longest_request_tokens,
            sample=f"largest of {samples(records)} samples of the server's process tree (proportional share) at 10 Hz, one run per arm",
            excludes="peaks between samples; weights, interpreter and an unpacked working copy are in it, so it moves less than the cache",
        ),
        limit(
            ("throughput", "ttft_ms", "tpot_ms", "decode_tokens_per_s"),
            "served",
            engine,
            road.longest_request_tokens,
            sample=f"{requests(records)} requests per arm, {road.loop} loop, {road.concurrency} at a time, one run, so no interval",
            excludes=ONE_SEQUENCE if scope != "engine" else "other request shapes, other load, and drift between runs",
        ),
        limit(
            ("predicted_kl_nats",),
            "modelled",
            in_process,
            splits["scoring"].row_tokens,
            sample=f"sum of isolated losses over the scoring split, {text_size(records.scores.documents, records.scores.positions)}",
            excludes="interaction between layers, and anything an engine does differently from the reference arithmetic",
        ),
        limit(
            ("measured_kl_nats",),
            "measured",
            in_process,
            splits["choice"].row_tokens,
            sample=f"whole maps over the choice split, {text_size(records.ladder.documents, records.ladder.positions)}",
            excludes="the luck of choosing: the best of several measured maps looks a little better than it is",
        ),
        limit(
            ("kl_nats",),
            "served",
            engine,
            splits["heldout"].row_tokens,
            sample=served_sample(records.evaluation.kl.get("map"), records.evaluation.kl_reason.get("map")),
            excludes=f"text unlike the held-out split; differences under the noise floor of {records.evaluation.noise_kl_nats:.2g} nats",
        ),
        *(
            limit(
                (f"tasks.{name}",),
                "served",
                engine,
                longest_of(task),
                sample=task_sample(task),
                excludes="every other task, language and length; greedy answers only, judged once (look 1)",
            )
            for name, task in records.evaluation.tasks.items()
        ),
    )


def limits_by_figure(limits: tuple[Limit, ...]) -> dict[str, Limit]:
    return {figure: limit for limit in limits for figure in limit.figures}


def served_sample(served: ServedKL | None, reason: str | None) -> str:
    if served is None:
        return f"not measured: {reason or 'no reason recorded'}"
    estimator = {
        "full": "over the whole vocabulary",
        "top_k_rest": f"over the top {served.top_k} tokens and the rest as one, so a lower bound",
        "none": "no log-probabilities",
    }[served.estimator]
    level = round(100 * served.mean_interval.level)
    return f"{estimator}, {text_size(served.documents, served.positions)}, {level} % interval over documents"


def text_size(documents: int, positions: int) -> str:
    return f"{count(documents, 'document')}, {count(positions, 'position')}"


def task_sample(task: TaskResult) -> str:
    """Items, how many would be needed, and the kind of interval."""
    if not task.comparisons:
        return f"{count(task.n, 'item')}, not compared with native"
    needed = max(comparison.items_needed for comparison in task.comparisons.values())
    margin = points(next(iter(task.comparisons.values())).margin)
    return f"{count(task.n, 'item')} paired with native, up to {needed:,} needed to show a loss under {margin}; 90 % Tango score interval"


def longest_of(task: TaskResult) -> int | None:
    """Longest context of a task that has lengths, in tokens; None where lengths are not recorded, rather than that of another task."""
    return max((int(length) for length in task.by_length if length.isdigit()), default=None)


def context_words(limit: Limit) -> str:
    if limit.longest_context_tokens is None:
        return f"Longest context unknown: {limit.longest_context_tokens_reason}"
    return f"Longest context {count(limit.longest_context_tokens, 'token')}"


def held_per_token(records: RunRecords) -> str:
    probed = records.probe.arms.get("map")
    if probed is None or probed.bytes_per_token_measured is None:
        return f"an unknown number: {probed.bytes_per_token_measured_reason if probed else 'it was not probed'}"
    return f"{probed.bytes_per_token_measured:,.0f} B per token for {probed.bytes_per_token_priced:,} B priced"


def road_arms(records: RunRecords) -> list[ArmRoadtest]:
    return [arm for arm in records.roadtest.arms.values() if arm is not None]


def samples(records: RunRecords) -> str:
    return f"at least {min((arm.memory.samples for arm in road_arms(records)), default=0)}"


def requests(records: RunRecords) -> str:
    return str(min((arm.requests.total for arm in road_arms(records)), default=0))


def uncovered(arm: CardArm, limits: tuple[Limit, ...]) -> tuple[str, ...]:
    """Headline figures of `arm` that no limit covers; empty on every card that may be shown."""
    covered = limits_by_figure(limits)
    present = [figure for figure in HEADLINES if getattr(arm, figure) is not None] + [f"tasks.{name}" for name in arm.tasks]
    return tuple(figure for figure in present if figure not in covered)
