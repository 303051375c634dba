"""Stage `probe`: start each arm, read back what it really runs, and hold its served loss against the measured one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from kvassay.capabilities import CAPABILITIES
from kvassay.corpora.splits import load_split
from kvassay.errors import EngineError
from kvassay.probing.ask import NATIVE, Findings, ask_servers
from kvassay.probing.expected import expected_of
from kvassay.probing.observed import Expected, Shown, loss
from kvassay.probing.read_back import facts_of, number
from kvassay.probing.verdict import judge
from kvassay.records.corpora import Corpora
from kvassay.records.export import ArmExport, Export
from kvassay.records.kv_map import KVMap
from kvassay.records.ladder import Ladder
from kvassay.records.probe import ArmProbe, Probe
from kvassay.stage import StageInput
from kvassay.targets.fleet import kv_memory_for, start_fleet
from kvassay.targets.launch import read_export
from kvassay.tasks.served_kl import mean_kl

# Room for a few thousand tokens, so that rounding to whole tokens does not blur the ratio of capacities.
CAPACITY_TOKENS = 4096


def probe(stage: StageInput) -> Probe:
    """Native, uniform and map (and any other exported arm) on the choice split, all servers at once.

    Raises EngineError when native does not start: without it there is no baseline.
    """
    run, plan = stage.run, stage.plan
    export, ladder = run.read(Export), run.read(Ladder)
    arms = {name: arm for name, arm in export.arms.items() if arm is not None}
    maps = {name: read_export(run.path(arm.folder))[0] for name, arm in arms.items()}
    documents = load_split(run, plan, run.read(Corpora), "choice")
    tokens = max(CAPACITY_TOKENS, *(len(document) + 1 for document in documents))
    with start_fleet(run, arms, "probe", kv_memory_for(arms.values(), tokens), stage.progress) as fleet:
        if NATIVE in fleet.refused:
            raise EngineError(f"arm native: {fleet.refused[NATIVE]}; without it there is no baseline")
        urls = {name: server.url for name, server in fleet.servers.items()}
        findings = asyncio.run(ask_servers(urls, documents, plan.tasks.served_kl.top_k, stage.progress))
    expected = {name: expected_of(maps[name], arm, arms[NATIVE], ladder, len(documents)) for name, arm in arms.items()}
    native_state = findings.states[NATIVE]
    return Probe(
        target=export.target,
        version=str(native_state.get("engine_version")),
        build=str(native_state.get("build")),
        kl_estimator="top_k_rest",
        top_k=plan.tasks.served_kl.top_k,
        floor_nats=_floor(findings),
        arms={
            name: refused_arm(arm, expected[name], fleet.refused[name])
            if name in fleet.refused
            else probed_arm(name, maps[name], expected[name], findings, plan.seeds.bootstrap, CAPABILITIES[export.target].numerics)
            for name, arm in arms.items()
        },
    )


def probed_arm(name: str, kv_map: KVMap, expected: Expected, findings: Findings, seed: int, numerics: str) -> ArmProbe:
    """One arm that started. `numerics`: id of the quantizers with which the ladder was measured."""
    shown = shown_of(name, kv_map, findings.states, findings)
    found = loss(expected, shown, _floor(findings), seed)
    verdict, reasons = judge(expected, shown, found)
    measured = shown.bytes_per_token
    return ArmProbe(
        verdict=verdict,
        reasons=reasons,
        formats_match=not shown.formats_differ,
        bytes_per_token_priced=expected.bytes_per_token,
        bytes_per_token_measured=measured,
        bytes_per_token_measured_reason=None if measured is not None else "the engine does not tell it",
        capacity_tokens=shown.capacity_tokens,
        capacity_ratio=shown.capacity_ratio,
        predicted_kl_nats=found.predicted_nats if found else None,
        served_kl_nats=found.served_nats if found else None,
        served_kl_nats_reason=None if found else shown.why_not_served,
        ratio=found.ratio if found else None,
        ratio_interval=found.ratio_interval if found else None,
        documents=found.documents if found else 0,
        explained_by=numerics if verdict == "conforms" and expected.quantized else None,
    )


def shown_of(name: str, kv_map: KVMap, states: Mapping[str, Mapping[str, Any]], findings: Findings) -> Shown:
    """What the server of arm `name` showed."""
    state, native = states[name], states[NATIVE]
    capacity, native_capacity = number(state, "capacity_tokens"), number(native, "capacity_tokens")
    documents = findings.kl.get(name, [])
    positions = [agrees for document in documents for agrees in document.top1_agrees]
    why = findings.failed.get(name) or ("native is the baseline of every KL" if name == NATIVE else "")
    return Shown(
        formats_differ=facts_of(state, kv_map),
        bytes_per_token=number(state, "bytes_per_token") or None,
        capacity_tokens=None if capacity is None else int(capacity),
        capacity_ratio=capacity / native_capacity if capacity is not None and native_capacity else None,
        served_kl_nats=None if why else tuple(document.mean_nats for document in documents),
        why_not_served=why,
        top1_agreement=sum(positions) / len(positions) if positions else None,
    )


def refused_arm(arm: ArmExport, expected: Expected, why: str) -> ArmProbe:
    """An arm whose engine did not start with this map."""
    unmeasured = "the engine did not start"
    return ArmProbe(
        verdict="refused",
        reasons=(why,),
        formats_match=None,
        bytes_per_token_priced=arm.bytes_per_token,
        bytes_per_token_measured=None,
        bytes_per_token_measured_reason=unmeasured,
        capacity_tokens=None,
        capacity_ratio=None,
        predicted_kl_nats=_mean(expected.predicted_kl_nats),
        served_kl_nats=None,
        served_kl_nats_reason=unmeasured,
        ratio=None,
        ratio_interval=None,
        documents=0,
        explained_by=None,
    )


def _floor(findings: Findings) -> float:
    """Mean KL of native against its own rerun; rounding below zero counts as none."""
    return max(0.0, mean_kl(findings.noise))


def _mean(values: tuple[float, ...] | None) -> float | None:
    return sum(values) / len(values) if values else None
