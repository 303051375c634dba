"""A tiny engine in pure Python behind the real face. One token is one byte; it continues the alphabet from the last prompt byte.

Prompts that begin with a marker misbehave on purpose (see the constants).
"""

import argparse
import os
import threading
import time

from kvassay.errors import BadInput, KvassayError
from kvassay.serving.protocol import DoesNotFit, GeneratedToken, KVState, PromptLogprob
from kvassay.serving.requests import Limits
from kvassay.serving.serve import serve

CRASH_AT_ONCE, CRASH_AFTER_TWO, NOT_A_NUMBER, NEVER_FINISHES, DEAF = 255, 254, 253, 252, 251
VOCAB = 256
EOS_AFTER = 10
BYTES_PER_TOKEN = 32


class FakeBackend:
    model_name = "fake"
    vocab_size = VOCAB

    def __init__(self, capacity, token_delay_s):
        self.capacity, self.token_delay_s = capacity, token_delay_s
        self.held = self.peak = self.inside = 0
        self.notes = {"overlapped": False, "cancelled": 0, "finished": 0, "generated": 0, "threads": []}

    def encode(self, text):
        return list(text.encode())

    def decode(self, token_ids):
        return bytes(token_ids).decode(errors="replace")

    def render_chat(self, messages):
        if messages[0]["role"] == "unknown":
            raise BadInput("the template knows no such role")
        return list("".join(f"<{m['role']}>{m['content']}" for m in messages).encode())

    def check_fits(self, prompt_tokens, max_tokens):
        if prompt_tokens + max_tokens > self.capacity:
            raise DoesNotFit(prompt_tokens + max_tokens, self.capacity)

    def generate(self, prompt, params, cancel):
        self.inside += 1
        self.notes["overlapped"] |= self.inside > 1
        if threading.get_ident() not in self.notes["threads"]:
            self.notes["threads"].append(threading.get_ident())
        try:
            yield from self._generate(prompt, params, cancel)
        finally:
            self.inside -= 1
            self.notes["cancelled" if cancel.is_set() else "finished"] += 1

    def _generate(self, prompt, params, cancel):
        if prompt[0] == CRASH_AT_ONCE:
            raise RuntimeError("planted failure")
        if prompt[0] == DEAF:
            time.sleep(20)
        self.held, last = len(prompt), prompt[-1]
        for number in range(1, params.max_tokens + 1):
            time.sleep(self.token_delay_s)
            if cancel.is_set():
                return
            if prompt[0] == CRASH_AFTER_TWO and number == 3:
                raise RuntimeError("planted failure in the middle")
            if prompt[0] == NEVER_FINISHES and number == 3:
                return
            self.held += 1
            self.peak = max(self.peak, self.held)
            self.notes["generated"] += 1
            last = last + 1 if chr(last) in "abcdefghijklmnopqrstuvwxy" else ord("a")
            at_eos = number == EOS_AFTER and not params.ignore_eos
            finish = "stop" if at_eos else "length" if number == params.max_tokens else None
            top = tuple((97 + place, -0.5 - place) for place in range(params.top_logprobs))
            yield GeneratedToken(last, chr(last), -0.25, top, finish)
            if at_eos:
                return

    def prompt_logprobs(self, prompt, top_k):
        lead = float("nan") if prompt[0] == NOT_A_NUMBER else -1.0
        top = tuple((97 + place, lead - place) for place in range(top_k))
        return [PromptLogprob(prompt[0], None)] + [PromptLogprob(token, float("-inf"), top, rank=77) for token in prompt[1:]]

    def kv_state(self):
        return KVState(
            model="fake", model_sha256=None, map_digest="0" * 64, layers=({"index": 0, "k": "native", "v": "native"},), scales="cast",
            scales_sha256=None, bytes_held=self.held * BYTES_PER_TOKEN, bytes_peak=self.peak * BYTES_PER_TOKEN, tokens_held=self.held,
            bytes_per_token=BYTES_PER_TOKEN, capacity_tokens=self.capacity, kv_memory_bytes=self.capacity * BYTES_PER_TOKEN,
            weights_bytes=0, engine="fake", engine_version="1", build="test", extra=self.notes,
        )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--capacity", type=int, default=128)
    parser.add_argument("--token-delay-ms", type=float, default=0)
    parser.add_argument("--max-waiting", type=int, default=64)
    parser.add_argument("--fail", choices=["value_error", "kill", "silent"])
    given = parser.parse_args()
    if given.fail == "value_error":
        raise ValueError("the planted reason")
    if given.fail == "kill":
        os.kill(os.getpid(), 9)
    if given.fail == "silent":
        time.sleep(60)
    limits = Limits(max_body_bytes=200_000, body_timeout_s=1.0, max_waiting=given.max_waiting, finish_within_s=1.0, abort_within_s=0.5)
    try:
        serve(FakeBackend(given.capacity, given.token_delay_ms / 1000), given.port, limits=limits)
    except KvassayError as error:
        raise SystemExit(f"error: {error}") from None
