"""A run folder with real exports of a four-layer model, served by the stub engine."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from kvassay.plan.schema import Budget, Menu, ModelChoice, Plan, Workload
from kvassay.progress import Silent
from kvassay.records import Export, Geometry, Model
from kvassay.records.frontier import Pair
from kvassay.records.geometry import ByteParts, CacheBytes, Layer
from kvassay.roadtest.arm import measure_arms
from kvassay.roadtest.bench import open_bench
from kvassay.roadtest.pool import topics_text
from kvassay.solving.kv_map import build_kv_map
from kvassay.stage import StageInput
from kvassay.store import Run
from kvassay.targets.export import write_arm

STUB = Path(__file__).parent / "stub_engine.py"
DIGEST = "ab" * 32
ROWS = [(40, 4), (20, 3), (30, 5), (200, 6), (25, 4), (35, 3)]


def geometry():
    layers = tuple(
        Layer(index=i, kind="full", owner=True, reads_from=None, kv_heads=1, k_dim=32, v_dim=32, window=None, module=f"layers.{i}")
        for i in range(4)
    )
    zero = CacheBytes(growth_per_token=0, all_tokens_per_token=0, window_bytes=0, fixed_per_request=0)
    return Geometry(
        model_type="stub", native_dtype="bfloat16", assumptions=(), max_position_embeddings=4096, layers=layers, bytes=zero,
        context_tokens=1, total_bytes=0, parts=ByteParts(payload=0, scales=0, padding=0),
    )  # fmt: skip


ARM_PAIRS = {
    "native": [Pair(k="native", v="native")] * 4,
    "uniform": [Pair(k="fp8_e4m3", v="fp8_e4m3")] * 4,
    "map": [Pair(k="fp8_e4m3", v="fp8_e4m3")] * 3 + [Pair(k="native", v="fp8_e4m3")],
    "smaller_map": [Pair(k="int4_g32", v="int4_g32")] * 3 + [Pair(k="fp8_e4m3", v="int4_g32")],
}


def build_stage(base, fault="", extra=(), **settings):
    """A StageInput over the run folder base/run, its servers started with `fault` and the `extra` arguments."""
    run = Run(base / "run")
    run.path("model").mkdir(parents=True)
    words = {word: at for at, word in enumerate(sorted({"[UNK]", *topics_text()[:20000].split()}))}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(run.path("model", "tokenizer.json")))
    run.path("model", "weights.bin").write_bytes(b"w" * 1000)
    trace = base / "trace.jsonl"
    trace.write_text("".join(json.dumps({"arrival_s": at, "input_tokens": a, "output_tokens": b}) + "\n" for at, (a, b) in enumerate(ROWS)))
    model = Model(
        source="stub", source_kind="folder", revision=None, source_sha256=DIGEST, weights_sha256=DIGEST, tokenizer_sha256=DIGEST, folder="model",
        model_type="stub", native_dtype="bfloat16", vocab_size=1000, weights_bytes=1000, max_position_embeddings=4096, trust_remote_code=False,
    )  # fmt: skip
    run.write(model, {}, DIGEST)
    command = (
        sys.executable,
        str(STUB),
        "--export",
        ".",
        "--port",
        "{port}",
        "--kv-memory-bytes",
        "{kv_memory_bytes}",
        "--fault",
        fault,
        *extra,
    )
    arms = {}
    for name, pairs in ARM_PAIRS.items():
        kv_map = build_kv_map(geometry(), DIGEST, DIGEST, "transformers", pairs)
        arms[name] = write_arm(run, kv_map, f"export/{name}", model).model_copy(update={"command": command})
        run.path(f"export/{name}/told.json").write_bytes(run.path(f"export/{name}/map.json").read_bytes())
    helpers = {"smaller_map": arms.pop("smaller_map")}
    export = Export(
        target="transformers", arms=arms | {"incumbent": None}, arms_reason={"incumbent": "the plan names none"}, helpers=helpers
    )
    run.write(export, {}, DIGEST)
    plan = Plan(
        model=ModelChoice(folder=Path("model")), formats=Menu(k=("native",), v=("native",)), budget=Budget(bits=8),
        workload=Workload(trace=trace, warmup_requests=1, kv_memory_bytes=1_000_000), **settings,
    )  # fmt: skip
    return StageInput(run=run, plan=plan, progress=Silent(), key="key")


@pytest.fixture
def make_stage(tmp_path):
    """make_stage(fault="", extra=(), **plan settings) -> StageInput."""
    return lambda *args, **settings: build_stage(tmp_path, *args, **settings)


@pytest.fixture
def make_bench(make_stage):
    """The same, opened."""
    return lambda *args, **settings: open_bench(make_stage(*args, **settings))


@pytest.fixture(scope="session")
def good_rows(tmp_path_factory):
    """requests.jsonl of all arms replayed on a good engine: the unhurried truth that faulty engines are held against."""
    bench = open_bench(build_stage(tmp_path_factory.mktemp("good")))
    with ThreadPoolExecutor(1) as background:
        measure_arms(bench, background).result()
    return bench.stage.run.path("requests.jsonl").read_bytes()


@pytest.fixture
def replayed_bench(make_stage, good_rows):
    """A bench whose replays are done; only the servers of the checks have the fault."""

    def make(*args, **settings):
        stage = make_stage(*args, **settings)
        stage.run.path("requests.jsonl").write_bytes(good_rows)
        return open_bench(stage)

    return make
