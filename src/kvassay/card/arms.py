"""One arm of the card: everything measured of it, gathered from the artifacts of the run."""

from __future__ import annotations

from kvassay.card.evidence import RunRecords
from kvassay.card.wording import map_in_words, without_paths
from kvassay.records.card import ArmProbeFigure, CardArm, CardMemory, DecodeRate, KLFigure, TaskFigure, Throughput
from kvassay.records.evaluation import TaskResult
from kvassay.records.export import ArmExport
from kvassay.records.frontier import Pair
from kvassay.records.kv_map import KVMap, Provenance
from kvassay.records.roadtest import ArmRoadtest

ARMS = ("native", "incumbent", "uniform", "map")
BASELINE = "baseline: every other arm is compared with this one"


def card_arms(records: RunRecords) -> tuple[dict[str, CardArm | None], dict[str, str]]:
    """Arms in the order of ARMS, then levers; a missing one is None with a reason."""
    names = (*ARMS, *(name for name in records.export.arms if name not in ARMS))
    arms: dict[str, CardArm | None] = {}
    reasons: dict[str, str] = {}
    for name in names:
        exported, driven = records.export.arms.get(name), records.roadtest.arms.get(name)
        if exported is None:
            arms[name], reasons[name] = None, without_paths(records.export.arms_reason.get(name) or "not exported, no reason recorded")
        elif driven is None:
            arms[name], reasons[name] = (
                None,
                without_paths(records.roadtest.arms_reason.get(name) or "exported, but not part of the road test"),
            )
        else:
            arms[name] = card_arm(records, name, exported, driven)
    return arms, reasons


def card_arm(records: RunRecords, name: str, exported: ArmExport, driven: ArmRoadtest) -> CardArm:
    native = records.export.arms.get("native")
    served, served_reason = kl_figure(records, name)
    chosen = provenance_of(records, name)
    unpriced = None if chosen else (BASELINE if name == "native" else "not a map of the ladder")
    probe = probe_figure(records, name)
    memory = driven.memory
    return CardArm(
        formats=map_in_words(pairs_of(records, name)) if pairs_of(records, name) else f"map {exported.map_digest[:12]}",
        bits=exported.bits,
        map_digest=exported.map_digest,
        deployment=exported.deployment,
        deployment_reasons=tuple(without_paths(reason) for reason in exported.reasons),
        command=tuple(without_paths(word) for word in exported.command),
        payload_bytes_per_token=exported.bytes_per_token,
        payload_saving=1 - exported.bytes_per_token / native.bytes_per_token if native and native.bytes_per_token else 0.0,
        capacity_tokens=driven.capacity_tokens,
        memory=CardMemory(
            process_peak_bytes=memory.process_peak_bytes,
            device_total_bytes=memory.device_total_bytes,
            device_total_bytes_reason=memory.device_total_bytes_reason,
            kv_pool_bytes=memory.kv_pool_bytes,
            kv_peak_bytes=memory.kv_peak_bytes,
            weights_bytes=memory.weights_bytes,
        ),
        throughput=Throughput(output_tokens_per_s=driven.output_tokens_per_s, requests_per_s=driven.requests_per_s),
        ttft_ms=driven.from_schedule.ttft_ms,
        tpot_ms=driven.from_schedule.tpot_ms,
        decode_tokens_per_s=DecodeRate(p50=driven.decode_tokens_per_s_p50, p50_reason=driven.decode_tokens_per_s_p50_reason),
        requests=driven.requests,
        answers_checked=driven.answers_checked,
        answers_matched=driven.answers_matched,
        answers_note=without_paths(driven.answers_note),
        predicted_kl_nats=chosen.predicted_kl_nats if chosen else None,
        predicted_kl_nats_reason=unpriced,
        measured_kl_nats=chosen.measured_kl_nats if chosen else None,
        measured_kl_nats_reason=unpriced,
        kl_nats=served,
        kl_nats_reason=served_reason,
        tasks={
            task: task_figure(result, name, records.evaluation.look)
            for task, result in records.evaluation.tasks.items()
            if name in result.scores
        },
        probe=probe,
        probe_reason=None if probe else f"arm {name} was not probed",
    )


def map_of(records: RunRecords, name: str) -> KVMap | None:
    return {"map": records.frozen.kv_map, "uniform": records.frozen.uniform}.get(name)


def pairs_of(records: RunRecords, name: str) -> list[Pair]:
    """Formats of the arm's owner layers; empty for an arm whose map stands in its export folder only."""
    if name == "native":
        return [Pair(k="native", v="native")] * len(records.geometry.owners)
    kv_map = map_of(records, name)
    return [Pair(k=layer.k, v=layer.v) for layer in kv_map.layers] if kv_map else []


def provenance_of(records: RunRecords, name: str) -> Provenance | None:
    return {"map": records.frozen.provenance, "uniform": records.frozen.uniform_provenance}.get(name)


def kl_figure(records: RunRecords, name: str) -> tuple[KLFigure | None, str | None]:
    served = records.evaluation.kl.get(name)
    if served is None:
        reason = records.evaluation.kl_reason.get(name) or f"arm {name} was not scored on held-out text"
        return None, "baseline" if name == "native" else without_paths(reason)
    return (
        KLFigure(
            mean=served.mean,
            mean_interval=served.mean_interval,
            p99=served.p99,
            estimator=served.estimator,
            top_k=served.top_k,
            top_k_reason=None if served.top_k is not None else "the whole vocabulary was compared",
            positions=served.positions,
            documents=served.documents,
            top1_agreement=served.top1_agreement,
        ),
        None,
    )


def task_figure(result: TaskResult, name: str, look: int) -> TaskFigure:
    comparison = result.comparisons.get(name)
    return TaskFigure(
        score=result.scores[name],
        n=result.n,
        sensitive=result.sensitive,
        sensitive_reason=result.sensitive_reason,
        comparison=comparison,
        comparison_reason=None if comparison else ("baseline" if name == "native" else f"arm {name} was not compared with native"),
        look=look,
    )


def probe_figure(records: RunRecords, name: str) -> ArmProbeFigure | None:
    probed = records.probe.arms.get(name)
    if probed is None:
        return None
    return ArmProbeFigure(
        verdict=probed.verdict,
        reasons=tuple(without_paths(reason) for reason in probed.reasons),
        bytes_per_token_measured=probed.bytes_per_token_measured,
        bytes_per_token_measured_reason=probed.bytes_per_token_measured_reason,
        ratio=probed.ratio,
        ratio_reason=None if probed.ratio is not None else "no prediction to compare with, or nothing served",
    )
