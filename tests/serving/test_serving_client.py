"""The client against a server that follows a script of bad behaviour."""

import asyncio
import contextlib
import json

import pytest
from aiohttp import web

from kvassay.errors import EngineError
from kvassay.serving.client import Bounds, Client

QUICK = Bounds(connect_s=1, stall_s=0.3, total_s=1.0, small_s=1.0, max_event_bytes=20_000, max_answer_bytes=100_000)
DONE = b"data: [DONE]\n\n"
RESET = object()
STALL = object()


def chunk(text=None, finish=None, **more):
    return b"data: " + json.dumps({"choices": [{"index": 0, "text": text, "finish_reason": finish, **more}]}).encode() + b"\n\n"


def usage(**counts):
    return b"data: " + json.dumps({"choices": [], "usage": counts}).encode() + b"\n\n"


@contextlib.asynccontextmanager
async def scripted(*pieces, status=200, headers=None, models=None, metrics=b"", raw=None):
    """A server that answers completions with `pieces` (bytes, seconds to wait, RESET, STALL) or with `raw` in one body."""
    asked = []

    async def complete(request):
        asked.append(await request.json())
        if raw is not None:
            return web.Response(body=raw, status=status, headers={"Content-Type": "application/json"} | (headers or {}))
        response = web.StreamResponse(status=status, headers={"Content-Type": "text/event-stream"} | (headers or {}))
        await response.prepare(request)
        for piece in pieces:
            if piece is RESET:
                request.transport.abort()
                return response
            await (asyncio.sleep(30) if piece is STALL else asyncio.sleep(piece) if isinstance(piece, float) else response.write(piece))
        return response

    async def list_models(request):
        return web.json_response(models if models is not None else {"data": [{"id": "m", "owned_by": "somebody"}]})

    async def text(request):
        return web.Response(body=metrics)

    app = web.Application()
    app.add_routes(
        [
            web.post("/v1/completions", complete),
            web.post("/v1/chat/completions", complete),
            web.get("/v1/models", list_models),
            web.get("/metrics", text),
        ]
    )
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


def complete(*pieces, stream=True, chat=False, **script):
    async def go():
        async with scripted(*pieces, **script) as (url, asked), Client(url, bounds=QUICK) as client:
            answer = (
                client.chat([{"role": "user", "content": "x"}], 8, stream=stream) if chat else client.complete([1, 2], 8, stream=stream)
            )
            done = await asyncio.wait_for(answer, 5)
            return done, asked

    return asyncio.run(go())


def test_a_good_stream_and_what_was_asked():
    done, asked = complete(chunk("a"), 0.05, chunk("b", "length"), usage(prompt_tokens=2, completion_tokens=2), DONE)
    assert (done.text, done.finish_reason, done.error, done.status) == ("ab", "length", None, 200)
    assert (done.prompt_tokens, done.output_tokens, done.output_tokens_from) == (2, 2, "usage")
    assert done.sent_s < done.first_text_s < done.last_text_s and done.token_times_s == (done.first_text_s, done.last_text_s)
    assert done.last_text_s - done.first_text_s > 0.04
    assert asked == [
        {
            "prompt": [1, 2],
            "max_tokens": 8,
            "model": "m",
            "temperature": 0.0,
            "stream": True,
            "return_token_ids": True,
            "stream_options": {"include_usage": True},
        }
    ]


def test_role_empty_and_usage_chunks_are_no_text():
    role = b'data: {"choices": [{"delta": {"role": "assistant", "content": ""}}]}\n\n'
    word = b'data: {"choices": [{"delta": {"content": "hi"}}]}\n\n'
    end = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
    done, _ = complete(role, 0.1, b": a comment\n\n", word, end, usage(completion_tokens=1), DONE, chat=True)
    assert done.text == "hi" and len(done.token_times_s) == 1 and done.output_tokens == 1 and done.error is None
    assert done.first_text_s - done.sent_s > 0.09


def test_several_tokens_in_a_chunk_are_one_time_and_all_counted():
    done, _ = complete(chunk("abc", token_ids=[7, 8, 9]), chunk("", token_ids=[10]), chunk("d", "stop", token_ids=[11]), DONE)
    assert done.token_ids == [7, 8, 9, 10, 11] and len(done.token_times_s) == 2
    assert (done.output_tokens, done.output_tokens_from) == (5, "token_ids")
    assert complete(chunk("abc"), chunk("d", "stop"), DONE)[0].output_tokens_from == "chunks"


def test_bytes_may_be_cut_anywhere_and_lines_may_end_in_cr_lf():
    whole = (chunk("é") + chunk("z", "stop") + DONE).replace(b"\n", b"\r\n")
    pieces = [part for byte in whole for part in (bytes([byte]),)]
    assert complete(*pieces)[0].text == "éz"
    several = b'data: {"choices":\ndata: [{"text": "q", "finish_reason": "stop"}]}\n\n'
    assert complete(several)[0].text == "q"


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ((chunk("a"), RESET), "ClientPayloadError|reset|Disconnected"),
        ((chunk("a"), STALL), "no answer in time"),
        ((chunk("a"),), "no finish_reason"),
        ((chunk("a"), DONE), "no finish_reason"),
        ((chunk("a"), b"data: {broken\n\n"), "no valid JSON"),
        ((chunk("a"), b"data: " + b"[" * 15_000 + b"\n\n"), "no valid JSON"),
        ((chunk("a"), b"data: 5\n\n"), "no object"),
        ((chunk("a"), b'data: {"choices": 7}\n\n'), "choices"),
        ((chunk("a"), b'data: {"error": {"message": "out of\\u0007 luck"}}\n\n'), "broke its answer off: out of  luck"),
        ((chunk("a"), b"data: " + b"x" * 30_000), "larger than 20000 bytes"),
        ((chunk("a"), b"data: x\n" * 10_000), "larger than 20000 bytes"),
        ((chunk("a"), *[b": " + b"x" * 9_000 + b"\n"] * 12), "larger than 100000 bytes"),
        ((chunk("a"), *[0.2, b": still here\n"] * 20), "no answer in time"),
    ],
)
def test_an_answer_that_goes_wrong_is_an_error_beside_what_came(pieces, error):
    done, _ = complete(*pieces)
    assert done.text == "a" and done.first_text_s is not None and done.status == 200
    assert any(word in done.error for word in error.split("|"))


@pytest.mark.parametrize("stream", [True, False])
def test_a_refusal_keeps_its_details(stream):
    body = {"error": {"message": "too long", "type": "exceed_context_size_error", "needed_tokens": 9, "available_tokens": 4}}
    done, _ = complete(status=400, raw=json.dumps(body).encode(), stream=stream)
    assert (done.status, done.error, done.first_text_s) == (400, "the server answered 400: too long", None)
    assert done.error_details["needed_tokens"] == 9 and done.output_tokens == 0


@pytest.mark.parametrize("raw", [b"<html>oops</html>", b"", b"[" * 50_000, b'"text"', b'{"message": 5}', b"\xff" * 10])
def test_any_500_is_an_error(raw):
    done, _ = complete(status=500, raw=raw)
    assert done.status == 500 and "500" in done.error and done.error.isprintable()


def test_a_whole_answer_and_broken_ones():
    good = {"choices": [{"text": "abc", "finish_reason": "stop"}], "usage": {"prompt_tokens": 2, "completion_tokens": 3}}
    assert complete(raw=json.dumps(good).encode(), stream=False)[0].output_tokens == 3
    assert "larger than" in complete(raw=b" " * 200_000, stream=False)[0].error
    assert "compresses" in complete(raw=b"abc", stream=False, headers={"Content-Encoding": "gzip"})[0].error
    lies = {"choices": [{"text": "abc", "finish_reason": "stop"}], "usage": {"prompt_tokens": -5, "completion_tokens": True}}
    assert complete(raw=json.dumps(lies).encode(), stream=False)[0].output_tokens_from == "chunks"


def test_redirects_are_not_followed():
    assert complete(status=302, raw=b"", headers={"Location": "http://127.0.0.1:1/"})[0].status == 302


def test_a_server_that_is_not_there_is_an_error_and_unhealthy():
    async def go():
        async with Client("http://127.0.0.1:1", bounds=QUICK) as client:
            with pytest.raises(EngineError, match="kv_state"):
                await client.kv_state()
            return await client.complete("x", 1), await client.health()

    done, healthy = asyncio.run(go())
    assert done.status is None and "127.0.0.1:1" in done.error and healthy is False


@pytest.mark.parametrize("models", [{"data": []}, {"data": [{"name": "m"}]}, {"data": 5}, [], {}])
def test_a_server_that_names_no_model(models):
    assert "names no model" in complete(models=models)[0].error


def test_prompt_logprobs_of_another_server_ask_for_one_token():
    positions = [None, {"5": {"logprob": -0.5, "rank": 1, "decoded_token": "a"}, "2": {"logprob": -3, "rank": 9, "decoded_token": "b"}}]

    async def go(body):
        async with scripted(raw=json.dumps(body).encode()) as (url, asked), Client(url, bounds=QUICK) as client:
            return await client.prompt_logprobs([1, 2], 1), asked

    answer, asked = asyncio.run(go({"choices": [{"text": "x", "finish_reason": "length", "prompt_logprobs": positions}]}))
    assert answer == [None, {5: -0.5, 2: -3.0}] and asked[0]["max_tokens"] == 1 and asked[0]["prompt_logprobs"] == 1
    for broken in ({}, {"choices": [{}]}, {"choices": [{"prompt_logprobs": [None]}]}, {"choices": [{"prompt_logprobs": [None, {"x": 1}]}]}):
        with pytest.raises(EngineError, match="no prompt log-probabilities"):
            asyncio.run(go(broken))


def test_metrics_are_parsed_with_their_labels():
    async def go(text):
        async with scripted(metrics=text) as (url, _), Client(url, bounds=QUICK) as client:
            return await client.metrics()

    assert asyncio.run(go(b'# HELP x y\nx{a="b c"} 2\ny 1e3\n\n')) == {'x{a="b c"}': 2.0, "y": 1000.0}
    with pytest.raises(EngineError, match="metrics"):
        asyncio.run(go(b"x notanumber\n"))


def test_against_our_own_face(server):
    async def go():
        async with Client(server.url) as client:
            streamed, whole = await client.complete("abc", 5), await client.complete("abc", 5, stream=False, stop=["g"])
            cut = await client.complete("abc", 12, ignore_eos=True)
            chat = await client.chat([{"role": "user", "content": "abc"}], 2)
            refused = await client.complete([97] * 200, 5)
            logprobs = await client.prompt_logprobs([97, 98, 65], 2)
            with pytest.raises(EngineError, match="NaN"):
                await client.prompt_logprobs([253, 98], 2)
            return streamed, whole, cut, chat, refused, logprobs, await client.models(), await client.health()

    streamed, whole, cut, chat, refused, logprobs, models, healthy = asyncio.run(go())
    assert streamed.token_ids == [100, 101, 102, 103, 104] and len(streamed.token_times_s) == 5 and streamed.error is None
    assert whole.text == "def" and whole.finish_reason == "stop" and chat.text == "de"
    assert cut.output_tokens == 12 and cut.finish_reason == "length"
    assert refused.status == 400 and refused.error_details["available_tokens"] == 128
    assert logprobs == [None, {97: -1.0, 98: -2.0}, {97: -1.0, 98: -2.0, 65: -9999.0}]
    assert models == ["fake"] and healthy
