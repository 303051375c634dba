"""The card: contract keys, no null without a reason, limits beside every headline figure, nothing that should not leave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from kvassay.card.build import build_card
from kvassay.card.evidence import RunRecords
from kvassay.card.limits import HEADLINES, uncovered
from kvassay.errors import BadInput
from kvassay.records.card import Card
from kvassay.records.roadtest import Check
from support import fixture_records as fixture

RECORDS = fixture.records()


def card_of(records: RunRecords = RECORDS) -> Card:
    return build_card(records, fixture.plan(), fixture.surroundings())


def document(card: Card) -> dict[str, Any]:
    return json.loads(card.model_dump_json())  # type: ignore[no-any-return]


def nulls(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Every null of a document that is not itself a reason, with the object it stands in."""
    if isinstance(value, dict):
        for key, each in value.items():
            if each is None and not key.endswith("_reason"):
                yield f"{where}.{key}", value
            yield from nulls(each, f"{where}.{key}")
    elif isinstance(value, list):
        for i, each in enumerate(value):
            yield from nulls(each, f"{where}[{i}]")


def test_contract_keys() -> None:
    card = document(card_of())
    assert {"verdict", "scope", "reasons"} <= card["decision"].keys()
    for name in ("native", "uniform", "map"):
        arm = card["arms"][name]
        assert isinstance(arm["payload_bytes_per_token"], int)
        assert {"process_peak_bytes", "device_total_bytes", "kv_pool_bytes", "weights_bytes"} <= arm["memory"].keys()
        assert {"output_tokens_per_s", "requests_per_s"} <= arm["throughput"].keys()
        for kind in ("ttft_ms", "tpot_ms"):
            assert {"p50", "p90", "p99"} <= arm[kind].keys()
        assert arm["decode_tokens_per_s"]["p50"] > 0
        for task in ("retrieval", "short"):
            assert {"score", "n", "sensitive"} <= arm["tasks"][task].keys()
    assert card["arms"]["native"]["kl_nats"] is None
    assert card["arms"]["native"]["kl_nats_reason"] == "baseline"
    assert {"mean", "p99", "estimator"} <= card["arms"]["map"]["kl_nats"].keys()
    assert set(card["checks"]) == {"exhaustion", "fallback", "restart", "wrong_restart", "abort"}
    assert all(check["verdict"] in ("passed", "failed", "not_run") for check in card["checks"].values())
    assert {"source_sha256", "weights_sha256"} <= card["model"].keys()
    assert {"name", "version", "build"} <= card["target"].keys()
    assert card["calibration"]["scales"] == "cast"
    assert card["calibration"]["value"] == 1.0
    assert card["calibration"]["corpus"]
    assert card["calibration"]["formats"] == ["fp8_e4m3", "nvfp4"]


def test_no_null_without_a_reason_beside_it() -> None:
    card = document(card_of())
    found = 0
    for where, parent in nulls(card):
        key = where.rsplit(".", 1)[-1]
        if where == f".arms.{key}":
            assert card["arms_reason"][key], where
        else:
            assert parent.get(f"{key}_reason"), where
        found += 1
    assert found > 5


def test_round_trip_and_schema() -> None:
    card = card_of()
    jsonschema.validate(document(card), Card.model_json_schema())
    assert Card.model_validate_json(card.model_dump_json()) == card


def test_the_same_records_make_the_same_card() -> None:
    assert card_of(fixture.records()) == card_of()


def test_figures_are_those_of_the_records() -> None:
    card = card_of()
    native, chosen = card.arms["native"], card.arms["map"]
    assert native is not None
    assert chosen is not None
    assert native.payload_bytes_per_token == 23040
    assert chosen.payload_saving == pytest.approx(1 - RECORDS.frozen.bytes_per_token / 23040)
    assert chosen.ttft_ms == RECORDS.roadtest.arms["map"].from_schedule.ttft_ms  # type: ignore[union-attr]
    assert chosen.measured_kl_nats == RECORDS.frozen.provenance.measured_kl_nats
    assert card.envelope.longest_context_tokens == 3216
    assert card.envelope.requests_per_arm == 40
    assert card.arms["incumbent"] is None
    assert card.arms_reason["incumbent"] == "the plan names none"


def test_every_headline_figure_has_its_limits() -> None:
    card = card_of()
    for arm in card.arms.values():
        assert arm is None or uncovered(arm, card.limits) == ()
    for limit in card.limits:
        assert limit.basis in ("modelled", "measured", "served")
        assert limit.sample
        assert limit.excludes
        assert limit.build
        assert "Fixture CPU" in limit.hardware
        assert limit.longest_context_tokens or limit.longest_context_tokens_reason


@pytest.mark.parametrize("figure", [*HEADLINES, "tasks.retrieval", "tasks.short"])
def test_a_figure_without_limits_is_found(figure: str) -> None:
    card = card_of()
    arm = card.arms["map"]
    assert arm is not None
    without = tuple(limit for limit in card.limits if figure not in limit.figures)
    assert len(without) == len(card.limits) - 1
    assert figure in uncovered(arm, without)


def test_no_absolute_path_leaves_the_machine() -> None:
    arm = RECORDS.export.arms["map"]
    assert arm is not None
    command = ("/home/someone/venv/bin/python", *arm.command[1:])
    export = RECORDS.export.model_copy(update={"arms": RECORDS.export.arms | {"map": arm.model_copy(update={"command": command})}})
    check = Check(
        verdict="failed", reason="see /home/someone/runs/logs/restart.log", evidence={"log": "/home/someone/runs/logs/restart.log"}
    )
    roadtest = RECORDS.roadtest.model_copy(
        update={"checks": RECORDS.roadtest.checks | {"restart": check}, "workload": "/home/someone/trace.jsonl"}
    )
    model = RECORDS.model.model_copy(update={"source": "/home/someone/models/smollm2"})
    card = card_of(replace(RECORDS, export=export, roadtest=roadtest, model=model))
    text = card.model_dump_json()
    assert "/home" not in text
    assert "someone" not in text
    assert card.model.source == "smollm2"
    assert card.checks["restart"].evidence["log"] == "restart.log"
    assert card.decision.reasons[0] == "restart: failed, see restart.log"


def test_a_check_the_road_test_does_not_know_is_not_run() -> None:
    checks = {name: check for name, check in RECORDS.roadtest.checks.items() if name != "fallback"}
    card = card_of(replace(RECORDS, roadtest=RECORDS.roadtest.model_copy(update={"checks": checks})))
    assert card.checks["fallback"].verdict == "not_run"
    assert card.checks["fallback"].reason


def test_a_recommended_uniform_is_judged_too() -> None:
    frozen = RECORDS.frozen.model_copy(update={"recommended_arm": "uniform", "recommended_reason": "the map is not shown to win"})
    decision = card_of(replace(RECORDS, frozen=frozen)).decision
    assert decision.arm == "map"
    assert decision.recommended_arm == "uniform"
    assert [other.arm for other in decision.other_arms] == ["uniform"]
    assert decision.other_arms[0].verdict == "abstain"
    assert not any(reason.startswith("recommended") for reason in decision.other_arms[0].reasons)


def test_artifacts_of_other_weights_or_targets_are_refused() -> None:
    other = RECORDS.model.model_copy(update={"weights_sha256": fixture.digest("other")})
    with pytest.raises(BadInput, match=r"map\.json: frozen for other weights"):
        card_of(replace(RECORDS, model=other))
    with pytest.raises(BadInput, match=r"roadtest\.json: made for target 'vllm'"):
        card_of(replace(RECORDS, roadtest=RECORDS.roadtest.model_copy(update={"target": "vllm"})))
