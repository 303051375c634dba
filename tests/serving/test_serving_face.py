"""The HTTP face over a fake engine in a real server process."""

import asyncio
import itertools
import json
import time

import aiohttp
import pytest

from kvassay.serving.client import Client

ALPHABET_AFTER_C = [100, 101, 102, 103, 104, 105, 106, 107, 108, 109]


def call(server, path, body=None, raw=None, method=None):
    async def go():
        async with aiohttp.ClientSession() as session:
            data = raw if raw is not None else None if body is None else json.dumps(body)
            async with session.request(method or ("GET" if data is None else "POST"), server.url + path, data=data) as response:
                return response.status, await response.text()

    status, text = asyncio.run(go())
    return status, json.loads(text)


def events(server, path, body):
    async def go():
        async with aiohttp.ClientSession() as session, session.post(server.url + path, json=body) as response:
            assert response.status == 200 and response.content_type == "text/event-stream"
            return (await response.text()).split("\n\n")

    *found, done, tail = asyncio.run(go())
    assert (done, tail) == ("data: [DONE]", "")
    return [json.loads(one.removeprefix("data: ")) for one in found]


def complete(server, **body):
    return call(server, "/v1/completions", {"prompt": "abc", "temperature": 0} | body)


def metrics(server):
    async def go():
        async with Client(server.url) as client:
            return await client.metrics()

    return asyncio.run(go())


def wait_for(condition, seconds=3.0):
    deadline = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return value


def test_completion_has_text_ids_and_usage(server):
    status, body = complete(server, max_tokens=4, return_token_ids=True)
    choice = body["choices"][0]
    assert status == 200 and body["object"] == "text_completion" and body["model"] == "fake"
    assert (choice["text"], choice["token_ids"], choice["prompt_token_ids"]) == ("defg", [100, 101, 102, 103], [97, 98, 99])
    assert choice["finish_reason"] == "length" and choice["logprobs"] is None
    assert body["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def test_eos_ends_unless_ignored(server):
    _, ended = complete(server, max_tokens=12)
    _, went_on = complete(server, max_tokens=12, ignore_eos=True)
    assert (ended["choices"][0]["text"], ended["choices"][0]["finish_reason"]) == ("defghijklm", "stop")
    assert (went_on["choices"][0]["text"], went_on["choices"][0]["finish_reason"]) == ("defghijklmno", "length")


@pytest.mark.parametrize("prompt", [[97, 98, 99], ["abc"], [[97, 98, 99]]])
def test_prompt_forms_are_one_prompt(server, prompt):
    _, body = complete(server, prompt=prompt, max_tokens=1)
    assert body["choices"][0]["text"] == "d" and body["usage"]["prompt_tokens"] == 3


def test_default_is_sixteen_tokens(server):
    _, body = complete(server, ignore_eos=True)
    assert body["usage"]["completion_tokens"] == 16


@pytest.mark.parametrize(("stop", "text"), [("fg", "de"), (["xyz", "h"], "defg"), (["fgx"], "defghijklm")])
def test_stop_strings_span_tokens_and_are_never_shown(server, stop, text):
    _, body = complete(server, max_tokens=20, stop=stop)
    streamed = events(server, "/v1/completions", {"prompt": "abc", "max_tokens": 20, "temperature": 0, "stop": stop, "stream": True})
    assert body["choices"][0]["text"] == text and body["choices"][0]["finish_reason"] == "stop"
    assert "".join(chunk["choices"][0]["text"] for chunk in streamed) == text


def test_stream_is_one_chunk_a_token_and_the_first_has_text(server):
    body = {"prompt": "abc", "max_tokens": 3, "temperature": 0, "stream": True, "return_token_ids": True}
    chunks = events(server, "/v1/completions", body)
    assert [chunk["choices"][0]["text"] for chunk in chunks] == ["d", "e", "f"]
    assert [chunk["choices"][0]["token_ids"] for chunk in chunks] == [[100], [101], [102]]
    assert [chunk["choices"][0].get("prompt_token_ids") for chunk in chunks] == [[97, 98, 99], None, None]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "length"]
    assert len({chunk["id"] for chunk in chunks}) == 1 and all("usage" not in chunk for chunk in chunks)


def test_stream_usage_comes_last_and_only_when_asked(server):
    body = {"prompt": "abc", "max_tokens": 2, "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
    *chunks, last = events(server, "/v1/completions", body)
    assert [chunk["usage"] for chunk in chunks] == [None, None]
    assert last["choices"] == [] and last["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def test_chat_renders_messages_and_streams_a_role_first(server):
    messages = [{"role": "user", "content": [{"type": "text", "text": "say "}, {"type": "text", "text": "abc"}]}]
    status, whole = call(server, "/v1/chat/completions", {"messages": messages, "max_tokens": 2, "temperature": 0})
    chunks = events(server, "/v1/chat/completions", {"messages": messages, "max_tokens": 2, "temperature": 0, "stream": True})
    assert status == 200 and whole["choices"][0]["message"] == {"role": "assistant", "content": "de"}
    assert whole["usage"]["prompt_tokens"] == len("<user>say abc")
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [{"role": "assistant", "content": ""}, {"content": "d"}, {"content": "e"}]


@pytest.mark.parametrize(
    ("messages", "word"),
    [
        ([], "messages"),
        ([{"role": "user"}], "both text"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "both text"),
        ([{"role": "unknown", "content": "a"}], "no such role"),
    ],
)
def test_a_chat_that_cannot_be_rendered_is_a_bad_request(server, messages, word):
    status, body = call(server, "/v1/chat/completions", {"messages": messages})
    assert status == 400 and word in body["error"]["message"]


def test_chat_without_a_limit_may_fill_the_cache(server):
    messages = [{"role": "user", "content": "abc"}]
    _, body = call(server, "/v1/chat/completions", {"messages": messages, "temperature": 0, "ignore_eos": True})
    assert body["usage"]["total_tokens"] == 128 and body["choices"][0]["finish_reason"] == "length"


def test_token_logprobs_in_both_forms(server):
    _, text = complete(server, max_tokens=2, logprobs=2)
    _, ids = complete(server, max_tokens=2, logprobs=1, return_tokens_as_token_ids=True)
    messages = [{"role": "user", "content": "c"}]
    _, chat = call(server, "/v1/chat/completions", {"messages": messages, "max_tokens": 1, "logprobs": True, "top_logprobs": 1})
    assert text["choices"][0]["logprobs"] == {
        "tokens": ["d", "e"],
        "token_logprobs": [-0.25, -0.25],
        "top_logprobs": [{"a": -0.5, "b": -1.5}, {"a": -0.5, "b": -1.5}],
        "text_offset": [0, 1],
    }
    assert ids["choices"][0]["logprobs"]["tokens"] == ["token_id:100", "token_id:101"]
    alternative = {"token": "a", "logprob": -0.5, "bytes": [97]}
    assert chat["choices"][0]["logprobs"]["content"] == [{"token": "d", "logprob": -0.25, "bytes": [100], "top_logprobs": [alternative]}]


def test_prompt_logprobs_in_vllms_shape(server):
    expected = {"97": {"logprob": -1.0, "rank": 1}, "98": {"logprob": -2.0, "rank": 2}}
    _, body = complete(server, prompt=[200, 97, 65], max_tokens=1, prompt_logprobs=2)
    assert body["choices"][0]["prompt_logprobs"] == [None, expected, expected | {"65": {"logprob": -9999.0, "rank": 77}}]
    assert body["usage"]["completion_tokens"] == 1
    _, without_generation = complete(server, prompt=[200, 97, 65], max_tokens=0, prompt_logprobs=0)
    assert without_generation["choices"][0]["prompt_logprobs"][1:] == [
        {"97": {"logprob": -9999.0, "rank": 77}},
        {"65": {"logprob": -9999.0, "rank": 77}},
    ]
    assert without_generation["usage"]["completion_tokens"] == 0


def test_nan_is_an_error_and_never_a_number(server):
    status, body = complete(server, prompt=[253, 97], max_tokens=0, prompt_logprobs=1)
    assert status == 500 and "NaN" in body["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_what_does_not_fit_is_refused_with_numbers_and_the_process_survives(server, stream):
    status, body = complete(server, prompt=[97] * 100, max_tokens=29, stream=stream)
    error = body["error"]
    assert (status, error["type"], error["needed_tokens"], error["available_tokens"]) == (400, "exceed_context_size_error", 129, 128)
    status, fits = complete(server, prompt=[97] * 100, max_tokens=28, ignore_eos=True)
    assert status == 200 and fits["usage"]["total_tokens"] == 128


@pytest.mark.parametrize("stream", [False, True])
def test_an_engine_that_raises_gives_500_and_the_process_survives(server, stream):
    status, body = complete(server, prompt=[255], stream=stream)
    assert status == 500 and body["error"]["type"] == "engine_error" and "planted failure" in body["error"]["message"]
    assert complete(server, max_tokens=1)[0] == 200


def test_a_failure_in_the_middle_of_a_stream_is_an_event_without_done(server):
    async def go():
        body = {"prompt": [254], "max_tokens": 5, "stream": True}
        async with aiohttp.ClientSession() as session, session.post(server.url + "/v1/completions", json=body) as response:
            return (await response.text()).split("\n\n")

    *chunks, error, tail = asyncio.run(go())
    assert len(chunks) == 2 and tail == "" and json.loads(error.removeprefix("data: "))["error"]["code"] == 500


def test_a_backend_that_ends_without_a_reason_is_no_success(server):
    status, body = complete(server, prompt=[252])
    assert status == 500 and "finish_reason" in body["error"]["message"]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "prompt"),
        ({"prompt": ""}, "not empty"),
        ({"prompt": []}, "not empty"),
        ({"prompt": ["a", "b"]}, "2 prompts"),
        ({"prompt": [1, -1]}, "prompt"),
        ({"prompt": [1, True]}, "prompt"),
        ({"prompt": [1, 256]}, "vocabulary of 256"),
        ({"prompt": "a", "max_tokens": 0}, "max_tokens"),
        ({"prompt": "a", "max_tokens": 2**21}, "max_tokens"),
        ({"prompt": "a", "max_tokens": "5"}, "max_tokens"),
        ({"prompt": "a", "temperature": -1}, "temperature"),
        ({"prompt": "a", "n": 2}, "n: this server supports only 1"),
        ({"prompt": "a", "top_p": 0.5}, "top_p"),
        ({"prompt": "a", "echo": True}, "echo"),
        ({"prompt": "a", "stop": [""]}, "stop"),
        ({"prompt": "a", "prompt_logprobs": 1, "stream": True}, "stream"),
        ({"prompt": "a", "prompt_logprobs": 5000}, "prompt_logprobs"),
        ([], "JSON object"),
    ],
)
def test_bad_bodies_are_refused_in_one_sentence(server, body, word):
    status, answer = call(server, "/v1/completions", body)
    assert status == 400 and answer["error"]["type"] == "invalid_request_error" and word in answer["error"]["message"]


@pytest.mark.parametrize("raw", ["{", '{"prompt": NaN}', "[" * 100_000, '{"prompt": "a", "prompt": "b"}', b"\xff\xfe"])
def test_what_is_no_json_is_refused(server, raw):
    status, answer = call(server, "/v1/completions", raw=raw)
    assert status == 400 and "JSON" in answer["error"]["message"]


def test_greedy_requests_may_name_sampling_fields_that_change_nothing(server):
    assert complete(server, max_tokens=1, top_p=0.9, top_k=5, n=1, presence_penalty=0.0, logit_bias=None, user="x")[0] == 200


def test_an_oversized_body_is_refused(server):
    assert call(server, "/v1/completions", raw=b"x" * 200_001)[0] == 413

    async def unannounced():
        async def pieces():
            for _ in range(30):
                yield b"x" * 10_000

        async with aiohttp.ClientSession() as session, session.post(server.url + "/v1/completions", data=pieces()) as response:
            return response.status

    assert asyncio.run(unannounced()) == 413


def test_a_body_that_never_arrives_is_given_up(server):
    async def go():
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        line = await asyncio.wait_for(reader.readline(), 5)
        writer.close()
        return line

    assert b" 408 " in asyncio.run(go())


def test_another_model_unknown_paths_and_methods_answer_in_openai_form(server):
    assert complete(server, model="other")[0] == 404
    for status, answer in (call(server, "/v1/nothing"), call(server, "/v1/completions", method="GET")):
        assert status in (404, 405) and answer["error"]["type"] == "invalid_request_error"


def test_models_health_and_kv_state(server):
    assert call(server, "/v1/models")[1]["data"][0]["id"] == "fake"
    assert call(server, "/health") == (200, {"status": "ok", "max_concurrent_sequences": 1, "requests_running": 0, "requests_waiting": 0})
    complete(server, max_tokens=5)
    state = call(server, "/kv_state")[1]
    assert state["tokens_held"] == 8 and state["bytes_held"] == 8 * 32 and state["capacity_tokens"] == 128
    assert state["layers"] == [{"index": 0, "k": "native", "v": "native"}] and state["max_concurrent_sequences"] == 1


def test_all_backend_calls_come_from_one_thread_and_never_overlap(server):
    async def go():
        async with Client(server.url) as client:
            await asyncio.gather(*(client.complete("abc", 5) for _ in range(8)))
            return (await client.kv_state())["extra"]

    extra = asyncio.run(go())
    assert extra["overlapped"] is False and len(extra["threads"]) == 1


def test_metrics_are_prometheus_text_that_adds_up(server):
    before = metrics(server)
    complete(server, max_tokens=4)
    complete(server, prompt=[97] * 200)
    after = metrics(server)

    def grew(name):
        return after[name] - before[name]

    assert grew('kvassay_requests_total{outcome="ok"}') == 1 and grew('kvassay_requests_total{outcome="does_not_fit"}') == 1
    assert grew("kvassay_prompt_tokens_total") == 3 and grew("kvassay_generation_tokens_total") == 4
    assert grew("kvassay_time_to_first_token_seconds_count") == 1 and grew("kvassay_inter_token_seconds_count") == 3
    assert after["kvassay_kv_bytes_held"] == 7 * 32 and after["kvassay_kv_usage_ratio"] == round(7 / 128, 6)
    assert after['kvassay_inter_token_seconds_bucket{le="+Inf"}'] == after["kvassay_inter_token_seconds_count"]
    buckets = [value for name, value in after.items() if name.startswith("kvassay_time_to_first_token_seconds_bucket")]
    assert buckets == sorted(buckets)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_hangs_up_frees_the_engine(slow_server, stream):
    cancelled = metrics(slow_server)['kvassay_requests_total{outcome="cancelled"}']

    async def hang_up():
        timeout = aiohttp.ClientTimeout(total=0.3)
        body = {"prompt": "abc", "max_tokens": 3000, "ignore_eos": True, "stream": stream, "temperature": 0}
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(slow_server.url + "/v1/completions", json=body) as response,
        ):
            await response.read()

    with pytest.raises(TimeoutError):
        asyncio.run(hang_up())
    assert wait_for(lambda: call(slow_server, "/health")[1]["requests_running"] == 0)
    assert wait_for(lambda: metrics(slow_server)['kvassay_requests_total{outcome="cancelled"}'] == cancelled + 1)
    assert complete(slow_server, max_tokens=1)[1]["choices"][0]["text"] == "d"


async def metrics_when(client, condition):
    deadline = time.monotonic() + 5
    while not condition(found := await client.metrics()) and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    return found


def test_one_runs_two_wait_the_fourth_is_refused_and_metrics_answer_meanwhile(slow_server):
    async def go():
        async with Client(slow_server.url) as client:
            await client.models()
            asked = [asyncio.create_task(client.complete("abc", 20, ignore_eos=True)) for _ in range(4)]
            during = await metrics_when(client, lambda found: found["kvassay_requests_waiting"] == 2)
            return during, await asyncio.gather(*asked)

    during, answers = asyncio.run(go())
    assert (during["kvassay_requests_running"], during["kvassay_requests_waiting"]) == (1, 2)
    assert sorted(answer.status for answer in answers) == [200, 200, 200, 503]
    assert [answer.output_tokens for answer in answers if answer.error is None] == [20] * 3
    first = sorted(answer.first_text_s for answer in answers if answer.error is None)
    assert all(later - earlier > 0.55 for earlier, later in itertools.pairwise(first))


def test_a_waiting_client_that_hangs_up_leaves_the_line(slow_server):
    async def go():
        async with Client(slow_server.url) as client:
            await client.models()
            running = asyncio.create_task(client.complete("abc", 30, ignore_eos=True))
            await metrics_when(client, lambda found: found["kvassay_requests_running"] == 1)
            waiting = asyncio.create_task(client.complete("abc", 20))
            before = await metrics_when(client, lambda found: found["kvassay_requests_waiting"] == 1)
            waiting.cancel()
            after = await metrics_when(client, lambda found: found["kvassay_requests_waiting"] == 0)
            return before, after, await running

    before, after, running = asyncio.run(go())
    assert before["kvassay_requests_waiting"] == 1 and running.error is None and running.output_tokens == 30
    assert after["kvassay_requests_waiting"] == 0 and after["kvassay_requests_running"] == 1


def test_an_answer_is_not_held_back_by_the_network_stack(server):
    """Nagle's algorithm with delayed acknowledgements adds 40 ms to every answer after the first on a connection."""

    async def go():
        async with Client(server.url) as client:
            return [await client.complete("abc", 2) for _ in range(8)]

    assert min(done.last_text_s - done.sent_s for done in asyncio.run(go())[1:]) < 0.03
