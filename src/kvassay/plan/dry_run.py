"""`--dry-run`: forwards, time, memory, and the items that each claim needs, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvassay.capabilities import CAPABILITIES
from kvassay.formats import NATIVE
from kvassay.geometry.price import bytes_per_token, effective_bits, native_pairs
from kvassay.plan.budget import token_budget
from kvassay.plan.check import geometry_of
from kvassay.plan.cost import Cost, Weights, measure_cost, score_cost, weights_of
from kvassay.plan.legal import cheapest_pairs
from kvassay.plan.machine import measured_flops_per_s
from kvassay.plan.schema import Plan
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry
from kvassay.statistics.comparison import items_needed
from kvassay.statistics.quantiles import P99_NEEDS
from kvassay.workload import read_trace

DISAGREEMENTS = (0.02, 0.05)
DOCUMENTS_FOR_AN_INTERVAL = 20
# A transformer's forward reaches about half of what one large matrix product does.
EFFICIENCY = 0.5
ARMS = ("native", "uniform", "map", "canary")


def dry_run(plan: Plan, geometry: Geometry | None = None) -> str:
    """What a run of `plan` would do and cost, as text for people. Nothing is written and no model loads. Raises BadInput."""
    geometry = geometry or geometry_of(plan.model)
    if geometry is None:
        return "The model is not in the local cache, so its cost is not known before `kvassay prepare`.\n" + "\n".join(_claims(plan))
    blocks = (_what(plan, geometry), _cost(plan, geometry), _claims(plan))
    return "\n\n".join("\n".join(block) for block in blocks)


def _what(plan: Plan, geometry: Geometry) -> Iterator[str]:
    budget = token_budget(plan.budget, geometry)
    native, cheapest = native_pairs(geometry), cheapest_pairs(geometry, plan.formats, CAPABILITIES[plan.target])
    longest = geometry.max_position_embeddings
    context = f"{longest:,} tokens" if longest else "not stated"
    yield f"model      {geometry.model_type}, {len(geometry.owners)} layers that own a cache, context {context}"
    yield f"native     {_priced(geometry, native)} ({geometry.native_dtype})"
    yield f"budget     {budget.bytes_per_token:,} bytes per token, {budget.bits:g} bits ({budget.text})"
    yield f"cheapest   {_priced(geometry, cheapest)} (the least that the menu allows)"
    for note in geometry.assumptions:
        yield f"assumed    {note}"


def _priced(geometry: Geometry, pairs: Sequence[Pair]) -> str:
    return f"{bytes_per_token(geometry, pairs):,} bytes per token, {effective_bits(geometry, pairs):g} bits"


def _cost(plan: Plan, geometry: Geometry) -> Iterator[str]:
    weights = weights_of(plan.model)
    speed = measured_flops_per_s() * EFFICIENCY if weights else None
    score, measure = score_cost(plan, geometry), measure_cost(plan, geometry)
    candidates = len(geometry.owners) * sum(name != NATIVE for name in (*plan.formats.k, *plan.formats.v))
    yield f"score      {candidates} candidates (layer, K or V, format), {_figures(score, weights, speed)}"
    yield f"measure    {plan.ladder.maps} mixed maps and {plan.ladder.uniform} uniform pairs, {_figures(measure, weights, speed)}"
    served = sum(plan.tasks.retrieval.lengths) * plan.tasks.retrieval.items_per_length if plan.tasks.retrieval else 0
    served += plan.corpora.heldout.documents * plan.corpora.heldout.tokens
    yield f"evaluate   {served:,} prompt tokens for each of {len(ARMS)} arms ({', '.join(ARMS)})"
    trace = read_trace(plan.workload.trace, plan.workload.format, plan.workload.limit)
    tokens = sum(request.total_tokens for request in trace.requests)
    yield f"roadtest   {len(trace.requests):,} requests, {tokens:,} tokens, for each arm; longest {trace.longest.total_tokens:,} tokens"
    if weights is None:
        yield "time       not estimated: the model's sizes are not all stated in its configuration"
        return
    memory_gib = weights.memory_bytes(plan) / 2**30
    yield f"memory     about {memory_gib:.1f} GiB while scoring (weights in {plan.score.dtype}, logits, one hidden state per layer)"
    yield "           times are estimates from one matrix product timed on this machine just now: right within a factor of two or so"


def _figures(cost: Cost, weights: Weights | None, flops_per_s: float | None) -> str:
    text = f"{cost.forwards:,.0f} forwards' worth over {cost.tokens:,} tokens"
    if weights and flops_per_s:
        text += f", about {weights.flops(cost) / flops_per_s:,.0f} s"
    return text


def _claims(plan: Plan) -> Iterator[str]:
    margin = plan.gates.quality_margin
    few, many = (items_needed(disagreement, margin) for disagreement in DISAGREEMENTS)
    yield f"claims     a loss of at most {margin:.0%} needs {few:,} items where 2 % of answers differ, {many:,} where 5 % do"
    tasks = {
        "retrieval": len(plan.tasks.retrieval.lengths) * plan.tasks.retrieval.items_per_length if plan.tasks.retrieval else None,
        "short": plan.tasks.short.items if plan.tasks.short else None,
    }
    for name, items in tasks.items():
        if items is None:
            yield f"           {name}: left out by the plan, so it shows nothing"
        else:
            verdict = (
                "enough" if items >= many else "enough only if few answers differ" if items >= few else "cannot show it; expect abstain"
            )
            yield f"           {name}: {items} items, {verdict}"
    documents = plan.corpora.heldout.documents
    verdict = "enough" if documents >= DOCUMENTS_FOR_AN_INTERVAL else f"cannot show it, {DOCUMENTS_FOR_AN_INTERVAL} are needed"
    yield f"           interval of the served loss: {documents} documents, {verdict}"
    requests = len(read_trace(plan.workload.trace, plan.workload.format, plan.workload.limit).requests)
    verdict = "enough" if requests >= P99_NEEDS else f"cannot show it, {P99_NEEDS:,} are needed"
    yield f"           p99 latency: {requests:,} requests, {verdict}"
