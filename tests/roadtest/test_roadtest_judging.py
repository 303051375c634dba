"""Judging one answer, one refusal, one restart: pure, with made-up answers."""

import asyncio

import pytest

from kvassay.errors import EngineError
from kvassay.roadtest.asking import Answer, answer_digest, ask, judge
from kvassay.roadtest.bench import sample
from kvassay.roadtest.exhaustion import classify
from kvassay.roadtest.identity import differences
from kvassay.roadtest.shortage import shortage
from kvassay.roadtest.wrong_restart import detect_moved, move_layer
from kvassay.serving.completion import Completion
from kvassay.workload import Request


def completion(**changes):
    values = {
        "text": "abc", "token_ids": [1, 2, 3], "finish_reason": "length", "prompt_tokens": 10, "output_tokens": 3, "output_tokens_from": "usage",
        "error": None, "error_details": None, "status": 200, "sent_s": 1.0, "first_text_s": 2.0, "last_text_s": 3.0, "token_times_s": (2.0, 2.5, 3.0),
    }  # fmt: skip
    return Completion(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "outcome", "error"),
    [
        ({}, "ok", None),
        ({"error": "the stream broke off"}, "failed", "the stream broke off"),
        ({"status": 503}, "failed", "HTTP status 503"),
        ({"output_tokens": 0, "text": "", "first_text_s": None, "last_text_s": None}, "empty", "no text"),
        ({"text": "", "first_text_s": None, "last_text_s": None}, "empty", "no text"),
        ({"output_tokens": 2}, "failed", "2 of 3 tokens"),
        ({"output_tokens": 4}, "failed", "4 of 3 tokens"),
        ({"prompt_tokens": 9}, "failed", "counted 9 prompt tokens"),
    ],
)
def test_what_counts_as_an_answer(changes, outcome, error):
    found = judge(completion(**changes), 10, 3, 4.0)
    assert found.outcome == outcome
    assert found.error is None if error is None else error in found.error
    assert (found.sha256 is not None) == (outcome == "ok")


def test_a_request_without_an_end_is_given_up():
    class Deaf:
        async def complete(self, *args, **settings):
            await asyncio.sleep(30)

    found = asyncio.run(ask(Deaf(), [1], 3, limit_s=0.05))
    assert found.hung and found.outcome == "failed" and "no end within" in found.error


def test_digest_is_of_the_tokens_where_there_are_any():
    assert answer_digest([1, 2], "a") == answer_digest([1, 2], "b") != answer_digest([1, 3], "a")
    assert answer_digest(None, "a") != answer_digest(None, "b")


def refusal(status, error, hung=False, outcome="failed"):
    return Answer(outcome, error, status, None, 0, 0.0, None, None, 0.1, hung=hung)


@pytest.mark.parametrize(
    ("large", "alive", "behaviour"),
    [
        (refusal(400, "the server answered 400: this request needs 206 cache tokens, 180 are available"), True, "clean refusal"),
        (refusal(400, "the server answered 400: bad request"), True, "unclear refusal"),
        (refusal(400, "needs 2060 cache tokens, 1180 are available"), True, "unclear refusal"),
        (refusal(500, "needs 206 cache tokens, 180 are available"), True, "server error"),
        (refusal(None, "connection reset"), False, "crash"),
        (refusal(None, "no end within 60 s", hung=True), True, "never drains"),
        (refusal(200, None, outcome="ok"), True, "served"),
    ],
)
def test_how_an_engine_meets_a_request_too_large(large, alive, behaviour):
    assert classify(large, alive, needed_tokens=206, capacity_tokens=180) == behaviour


def test_shortage_by_hand():
    found = shortage([Request(0, 90, 10), Request(0, 1000, 24), Request(0, 40, 8), Request(0, 890, 6)], bytes_per_token=288)
    # 7/8 of 1,024 tokens is 896: exactly the last request.
    assert (found.largest, found.needed_tokens, found.capacity_tokens, found.kv_memory_bytes) == (1, 1024, 896, 896 * 288)
    assert found.fitting == (2, 0, 3)
    assert shortage([Request(0, 10, 2)] * 3, 1).fitting == ()


STATE = {
    "model_sha256": "m", "map_digest": "d", "layers": [{"index": 0, "k": "native"}, {"index": 1, "k": "int4_g32"}], "scales": "cast",
    "scales_sha256": None, "bytes_per_token": 288.0, "capacity_tokens": 100, "kv_memory_bytes": 28_800, "bytes_held": 5,
}  # fmt: skip


def test_states_differ_by_what_a_restart_must_keep():
    assert differences(STATE, STATE | {"bytes_held": 99}) == []
    assert differences(STATE, STATE | {"capacity_tokens": 99}) == ["capacity_tokens: 100 before, 99 after"]
    swapped = differences(STATE, STATE | {"layers": STATE["layers"][::-1]})
    assert [line[:7] for line in swapped] == ["layer 0", "layer 1"]
    assert differences(STATE, STATE | {"layers": STATE["layers"][:1]}) == ["layers: 2 before, 1 after"]
    assert differences(STATE | {"layers": []}, STATE | {"layers": []}) == ["layers: no list of layers"]
    with pytest.raises(EngineError, match="scales"):
        differences(STATE, {key: value for key, value in STATE.items() if key != "scales"})


def test_moving_a_layer_changes_the_map_and_keeps_its_price():
    layers = [{"k": "a", "v": "b"}, {"k": "a", "v": "b"}, {"k": "a", "v": "c"}]
    moved = move_layer(layers)
    assert moved == [{"k": "a", "v": "c"}, {"k": "a", "v": "b"}, {"k": "a", "v": "b"}]
    assert layers[0] == {"k": "a", "v": "b"}
    assert move_layer([{"k": "int4_g32", "v": "b"}] * 2)[0] == {"k": "native", "v": "b"}
    assert move_layer([{"k": "native", "v": "b"}])[0] == {"k": "fp8_e4m3", "v": "b"}


def test_a_refusal_counts_only_when_it_names_the_digest():
    def refuses(text):
        def start():
            raise EngineError(text)

        return detect_moved(None, STATE, start)

    assert refuses("map.json: digest does not match its content")[0]
    found, says = refuses("out of memory")
    assert not found and "not because of" in says


def test_sample_is_even_and_in_order():
    assert sample(list(range(10)), 3) == [1, 5, 8]
    assert sample([4, 5], 3) == [4, 5]
    assert sample([], 3) == []
