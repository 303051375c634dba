"""Check `abort`: clients that drop their connection in mid-answer leave nothing behind."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING

from kvassay.records.roadtest import Check
from kvassay.roadtest.asking import ask
from kvassay.roadtest.identity import number

if TYPE_CHECKING:
    from kvassay.serving.client import Client

STREAMS = 4
STORM_LIMIT_S = 60.0
SETTLE_LIMIT_S = 10.0
POLL_S = 0.05


async def abort_check(client: Client, url: str, prompt: list[int], max_tokens: int, probe: list[int], probe_tokens: int) -> Check:
    """Start STREAMS long answers, drop each after its first token, then judge the cache and the next answer.

    `prompt` with `max_tokens` is dropped; `probe` with `probe_tokens` is asked before and after. passed: the bytes held return to
    their idle level within SETTLE_LIMIT_S, and the probe is answered as before.
    """
    before = await ask(client, probe, probe_tokens)
    if not before.ok:
        return Check(verdict="not_run", reason=f"the server did not answer before the storm: {before.error}", evidence={})
    idle_bytes = int(number(await client.kv_state(), "bytes_held"))
    try:
        dropped = await asyncio.wait_for(storm(client, url, prompt, max_tokens), STORM_LIMIT_S)
    except TimeoutError:
        dropped = 0
    held_bytes, settle_s = await settle(client, idle_bytes)
    after = await ask(client, probe, probe_tokens)
    evidence: dict[str, str | int | float | bool | None] = {
        "streams": STREAMS,
        "dropped_after_first_token": dropped,
        "idle_bytes": idle_bytes,
        "held_bytes_after": held_bytes,
        "settle_s": round(settle_s, 3),
        "answer_as_before": after.ok and after.sha256 == before.sha256,
    }
    if dropped < STREAMS:
        reason = (
            f"only {dropped} of {STREAMS} streams gave a first token within {STORM_LIMIT_S:g} s: a dropped answer may still hold the engine"
        )
        return Check(verdict="failed", reason=reason, evidence=evidence)
    if held_bytes > idle_bytes:
        reason = f"{held_bytes - idle_bytes} cache bytes were still held {SETTLE_LIMIT_S:g} s after {STREAMS} dropped streams"
        return Check(verdict="failed", reason=reason, evidence=evidence)
    if not after.ok or after.sha256 != before.sha256:
        reason = f"the next request was not answered as before the storm: {after.error or 'another answer'}"
        return Check(verdict="failed", reason=reason, evidence=evidence)
    reason = f"{STREAMS} streams dropped after the first token; the cache returned to {idle_bytes} bytes and the next answer was the same"
    return Check(verdict="passed", reason=reason, evidence=evidence)


async def storm(client: Client, url: str, prompt: list[int], max_tokens: int) -> int:
    """Streams that gave a token before they were dropped."""
    model = (await client.models())[0]
    body = {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "stream": True, "ignore_eos": True}
    found = await asyncio.gather(*(drop_after_first_token(url, body) for _ in range(STREAMS)))
    return sum(found)


async def drop_after_first_token(url: str, body: dict[str, object]) -> bool:
    """Open a stream, close its connection at the first text; False when it ended without any."""
    import aiohttp

    try:
        async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/completions", json=body) as response:
            async for line in response.content:
                if line.startswith(b"data: {") and first_text(line):
                    response.close()
                    return True
    except (aiohttp.ClientError, OSError, ValueError):
        return False
    return False


def first_text(line: bytes) -> bool:
    """Whether an SSE data line of a completion carries text. Raises ValueError when it is not JSON."""
    choices = json.loads(line[len(b"data: ") :]).get("choices")
    return bool(choices and choices[0].get("text"))


async def settle(client: Client, idle_bytes: int) -> tuple[int, float]:
    """(bytes held, seconds waited) once the cache is back at `idle_bytes`, or at the limit."""
    started = time.monotonic()
    while True:
        held_bytes, waited_s = int(number(await client.kv_state(), "bytes_held")), time.monotonic() - started
        if held_bytes <= idle_bytes or waited_s > SETTLE_LIMIT_S:
            return held_bytes, waited_s
        await asyncio.sleep(POLL_S)
