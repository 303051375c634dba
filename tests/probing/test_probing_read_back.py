"""The server's own account against the map, and the expectation from the ladder."""

from __future__ import annotations

import pytest

from kvassay.probing.expected import expected_of, predicted_kl
from kvassay.probing.read_back import facts_of, number
from kvassay.records.base import Interval
from kvassay.records.export import ArmExport
from kvassay.records.frontier import Pair
from kvassay.records.kv_map import KVMap, MapLayer
from kvassay.records.ladder import Ladder, Rung

SHA = "ab" * 32


def kv_map(*pairs):
    layers = tuple(MapLayer(index=2 * i, module=f"layers.{2 * i}", k=k, v=v) for i, (k, v) in enumerate(pairs))
    return KVMap(model=SHA, geometry_sha256=SHA, target="t", layers=layers, scales="cast", bits=8, bytes_per_token=100, digest=SHA)


def state(the_map, **changes):
    layers = [{"index": each.index, "k": each.k, "v": each.v} for each in the_map.layers]
    return {"layers": layers, "map_digest": SHA} | changes


MAP = kv_map(("fp8_e4m3", "native"), ("int4_g64", "int4_g64"), ("native", "native"))


def test_a_server_that_runs_the_map():
    assert facts_of(state(MAP), MAP) == ()


def test_a_layer_left_native_is_named():
    layers = state(MAP)["layers"]
    layers[1] = {"index": 2, "k": "native", "v": "int4_g64"}
    assert facts_of(state(MAP, layers=layers), MAP) == ("layer 2 runs native/int4_g64, the map says int4_g64/int4_g64",)


def test_missing_extra_and_foreign():
    assert facts_of(state(MAP, layers=state(MAP)["layers"][:2]), MAP) == ("layer 4 runs nothing, the map says native/native",)
    assert "1 layers that the map does not name" in facts_of(state(MAP, layers=[*state(MAP)["layers"], {"index": 9}]), MAP)[0]
    assert "runs map cdcdcdcdcdcd" in facts_of(state(MAP, map_digest="cd" * 32), MAP)[0]


def test_many_differences_are_counted():
    big = kv_map(*[("fp8_e4m3", "fp8_e4m3")] * 6)
    told = facts_of(state(kv_map(*[("native", "native")] * 6)), big)
    assert len(told) == 4
    assert told[-1] == "3 more layers differ from the map"


@pytest.mark.parametrize("layers", [None, "all", [1, 2]])
def test_a_server_that_tells_nothing(layers):
    assert facts_of({"layers": layers}, MAP) == ("the engine does not tell the formats of its layers",)


@pytest.mark.parametrize("value", [None, "12", True, 0, -3, float("nan"), float("inf")])
def test_unusable_figures_are_none(value):
    assert number({"x": value}, "x") is None
    assert number({"x": 2}, "x") == 2.0
    assert number({}, "x") is None


def ladder(pairs, per_document):
    interval = Interval(low=0, high=1, level=0.95)
    rung = Rung(
        name="mixed-1", kind="mixed", bits=8, bytes_per_token=100, pairs=pairs, predicted_kl_nats=0.1, kl_nats=0.1,
        kl_interval=interval, kl_p99_nats=0.2, per_document_nats=per_document, within_budget=True,
    )  # fmt: skip
    return Ladder(dtype="float32", positions=10, documents=len(per_document), floor_nats=0, rungs=(rung,))


def arm(bytes_per_token):
    return ArmExport(
        deployment="supported", reasons=(), folder="x", command=("x",), map_digest=SHA, bits=8, bytes_per_token=bytes_per_token
    )


def test_expectation_takes_the_rung_of_exactly_this_map():
    pairs = tuple(Pair(k=layer.k, v=layer.v) for layer in MAP.layers)
    expected = expected_of(MAP, arm(100), arm(250), ladder(pairs, (0.1, 0.2)), 2)
    assert expected.predicted_kl_nats == (0.1, 0.2)
    assert (expected.quantized, expected.bytes_per_token, expected.capacity_ratio) == (True, 100, 2.5)
    assert predicted_kl(ladder(pairs, (0.1, 0.2)), pairs[::-1], 2)[0] is None
    assert "no such map" in predicted_kl(ladder(pairs, (0.1, 0.2)), pairs[::-1], 2)[1]
    assert "2 documents of this map, 3 are served" in predicted_kl(ladder(pairs, (0.1, 0.2)), pairs, 3)[1]


def test_an_all_native_map_is_not_quantized():
    native = kv_map(("native", "native"), ("native", "native"))
    assert expected_of(native, arm(100), arm(100), ladder((), (0.1, 0.2)), 2).quantized is False
