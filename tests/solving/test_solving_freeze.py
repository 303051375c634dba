"""The choice from measured rungs, its reasons, and maps that belong to one model only."""

import json
import random

import pytest

from kvassay.errors import BadInput
from kvassay.plan.schema import Budget, Gates, Menu, ModelChoice, Plan, Workload
from kvassay.progress import Silent
from kvassay.records.base import Interval
from kvassay.records.frontier import Pair
from kvassay.records.ladder import Ladder, Rung
from kvassay.records.model import Model
from kvassay.solving.freeze import freeze
from kvassay.solving.kv_map import build_kv_map, check_kv_map, check_map_layers, map_digest, map_pairs, read_kv_map
from kvassay.stage import StageInput
from kvassay.store import Run
from support.small_geometry import MENU, small_geometry

GEOMETRY = small_geometry()
SHA = "a" * 64


def rung(name, kind, pairs, documents):
    from kvassay.geometry.price import bytes_per_token, effective_bits

    mean = sum(documents) / len(documents)
    return Rung(
        name=name,
        kind=kind,
        bits=effective_bits(GEOMETRY, pairs),
        bytes_per_token=bytes_per_token(GEOMETRY, pairs),
        pairs=tuple(pairs),
        predicted_kl_nats=mean,
        kl_nats=mean,
        kl_interval=Interval(low=mean, high=mean, level=0.95),
        kl_p99_nats=mean,
        per_document_nats=tuple(documents),
        within_budget=True,
    )


def around(mean, documents=20, spread=0.1, seed=0):
    source = random.Random(seed)
    return [mean * (1 + spread * source.uniform(-1, 1)) for _ in range(documents)]


def uniform(k, v, documents):
    return rung(f"{k}/{v}", "uniform", [Pair(k=k, v=v)] * 4, documents)


def mixed(name, fine_layers, documents):
    pairs = [Pair(k="int6_g64", v="int6_g64") if layer < fine_layers else Pair(k="int4_g64", v="int4_g64") for layer in range(4)]
    return rung(name, "mixed", pairs, documents)


def frozen(tmp_path, rungs, budget=None, gates=None, target="transformers"):
    run = Run(tmp_path)
    model = Model(
        source="x", source_kind="folder", revision=None, source_sha256=SHA, weights_sha256=SHA, tokenizer_sha256=SHA, folder="model",
        model_type="llama", native_dtype="bfloat16", vocab_size=1, weights_bytes=1, max_position_embeddings=1, trust_remote_code=False,
    )  # fmt: skip
    ladder = Ladder(dtype="float32", positions=1, documents=20, floor_nats=0.0, rungs=tuple(rungs))
    for record in (model, GEOMETRY, ladder):
        run.write(record, {}, SHA)
    plan = Plan(
        model=ModelChoice(folder=tmp_path),
        target=target,
        formats=Menu(k=MENU, v=MENU),
        budget=budget or Budget(bits=6.0),
        workload=Workload(trace=tmp_path / "t"),
        gates=gates or Gates(),
    )
    result = freeze(StageInput(run=run, plan=plan, progress=Silent(), key="k"))
    run.write(result, {}, SHA)
    return result


# bits: mixed with n of 4 layers int6 (6.5) and the rest int4 (4.5) has 4.5 + n / 2.
LOW, MIDDLE, OVER = mixed("low", 1, around(0.02)), mixed("middle", 3, around(0.010)), mixed("over", 4, around(0.001))


def test_the_least_measured_loss_within_the_budget_wins(tmp_path):
    result = frozen(
        tmp_path, [LOW, MIDDLE, uniform("int4_g64", "int4_g64", around(0.03, seed=1)), rung("huge", "mixed", OVER.pairs, around(0.001))]
    )
    assert (result.provenance.chosen_from, result.bits) == ("middle", 6.0)
    assert result.provenance.measured_kl_nats == pytest.approx(0.010, rel=0.1)
    assert result.recommended_arm == "map"
    assert "gain" in result.recommended_reason
    assert result.uniform is not None and result.uniform.layers[0].k == "int4_g64"
    assert result.smaller is not None and map_pairs(result.smaller) == LOW.pairs
    assert map_digest(result) == result.digest == map_digest(result.kv_map)
    assert result.provenance.budget == "6 bits per element"


def test_measured_not_predicted_decides(tmp_path):
    worse = rung("low", "mixed", LOW.pairs, around(0.001))
    assert frozen(tmp_path, [worse, MIDDLE]).provenance.chosen_from == "low"


def test_uniform_is_recommended_where_the_map_does_not_win(tmp_path):
    equal = uniform("int6_g64", "int4_g64", around(0.0101, spread=0.5, seed=3))
    result = frozen(tmp_path, [MIDDLE, equal])
    assert result.recommended_arm == "uniform"
    assert "not shown" in result.recommended_reason
    assert result.provenance.chosen_from == "middle", "the map is frozen even where it loses"


def test_uniform_has_no_more_bytes_than_the_map(tmp_path):
    better_but_larger = uniform("fp8_e4m3", "int6_g64", around(1e-5))
    result = frozen(tmp_path, [MIDDLE, better_but_larger])
    assert result.uniform is None
    assert "at most 768 bytes" in result.uniform_reason
    assert result.recommended_arm == "map"
    assert result.smaller is None and result.smaller_reason


def test_nothing_within_the_budget(tmp_path):
    with pytest.raises(BadInput, match=r"no mixed map within 4\.6 bits .* the smallest measured has 640"):
        frozen(tmp_path, [LOW, MIDDLE], Budget(bits=4.6))
    with pytest.raises(BadInput, match="none was measured"):
        frozen(tmp_path, [uniform("int4_g64", "int4_g64", around(0.01))])


def test_smallest_within_the_gates(tmp_path):
    budget = Budget(smallest="within gates")
    assert frozen(tmp_path, [LOW, MIDDLE], budget, Gates(kl_mean_nats=0.05)).provenance.chosen_from == "low"
    assert frozen(tmp_path, [LOW, MIDDLE], budget, Gates(kl_mean_nats=0.015)).provenance.chosen_from == "middle"
    with pytest.raises(BadInput, match=r"gates\.kl_mean_nats 0\.001: the best measured loses"):
        frozen(tmp_path, [LOW, MIDDLE], budget, Gates(kl_mean_nats=0.001))


def test_a_target_that_serves_only_uniform_pairs(tmp_path, monkeypatch):
    import dataclasses

    from kvassay.capabilities import CAPABILITIES

    monkeypatch.setitem(CAPABILITIES, "transformers", dataclasses.replace(CAPABILITIES["transformers"], per_layer=False))
    result = frozen(tmp_path, [uniform("int4_g64", "int4_g64", around(0.03)), uniform("int6_g64", "int4_g64", around(0.02))])
    assert result.provenance.chosen_from == "int6_g64/int4_g64"
    assert result.uniform is None and "only uniform" in result.uniform_reason


def test_different_documents_are_refused(tmp_path):
    with pytest.raises(BadInput, match="different documents"):
        frozen(tmp_path, [MIDDLE, uniform("int4_g64", "int4_g64", around(0.03, documents=19))])


def test_a_map_belongs_to_its_weights_geometry_and_content():
    kv_map = build_kv_map(GEOMETRY, "b" * 64, SHA, "transformers", LOW.pairs)
    check_kv_map(kv_map, GEOMETRY, "b" * 64, SHA)
    assert [layer.index for layer in kv_map.layers] == [0, 1, 2, 3]
    assert (kv_map.bits, kv_map.bytes_per_token, kv_map.scales) == (5.0, 640, "cast")
    for changed, words in (
        (lambda: check_kv_map(kv_map, GEOMETRY, "b" * 64, "c" * 64), "belongs to weights"),
        (lambda: check_kv_map(kv_map, GEOMETRY, "c" * 64, SHA), "belongs to geometry"),
        (lambda: check_kv_map(kv_map.model_copy(update={"target": "vllm"}), GEOMETRY, "b" * 64, SHA), "changed"),
        (lambda: check_map_layers(kv_map, small_geometry(layers=5)), "has 4 layers, the model has 5 owners"),
        (lambda: check_map_layers(kv_map, small_geometry(layers=3)), "names layer 3"),
        (lambda: check_map_layers(kv_map, small_geometry(kv_heads=3)), "not the price"),
        (lambda: build_kv_map(GEOMETRY, SHA, SHA, "transformers", LOW.pairs[:3]), "map has 3 layers"),
        (lambda: build_kv_map(GEOMETRY, SHA, SHA, "transformers", [Pair(k="int4_g128", v="native")] * 4), "layer 0: int4_g128: group 128 does not divide head_dim 64"),
    ):  # fmt: skip
        with pytest.raises(BadInput, match=words):
            changed()


def test_digest_covers_content_and_nothing_else():
    base = build_kv_map(GEOMETRY, SHA, SHA, "transformers", LOW.pairs)
    assert build_kv_map(GEOMETRY, SHA, SHA, "transformers", LOW.pairs).digest == base.digest
    others = [
        build_kv_map(GEOMETRY, "b" * 64, SHA, "transformers", LOW.pairs),
        build_kv_map(GEOMETRY, SHA, "b" * 64, "transformers", LOW.pairs),
        build_kv_map(GEOMETRY, SHA, SHA, "other", LOW.pairs),
        build_kv_map(GEOMETRY, SHA, SHA, "transformers", MIDDLE.pairs),
        build_kv_map(GEOMETRY, SHA, SHA, "transformers", LOW.pairs, scales="scales.safetensors"),
    ]
    assert len({base.digest, *(each.digest for each in others)}) == 6


def test_map_files_are_read_back_whole_or_refused(tmp_path):
    result = frozen(tmp_path, [LOW, MIDDLE])
    path = tmp_path / "map.json"
    assert read_kv_map(path) == result.kv_map
    document = json.loads(path.read_text())
    document["layers"][0]["k"] = "native"
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput, match="changed after it was frozen"):
        read_kv_map(path)
    for text in ("{}", "[]", "{", '{"model": 1}'):
        path.write_text(text)
        with pytest.raises(BadInput, match=r"map\.json"):
            read_kv_map(path)
