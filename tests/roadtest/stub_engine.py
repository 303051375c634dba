"""A small engine in pure Python behind the real face, started from a real export folder; it can be told to go wrong.

Its greedy answer is a function of prompt and map digest, so arms differ and every answer can be checked.
"""

import argparse
import hashlib
import os
import sys
import time
from pathlib import Path

from kvassay.errors import KvassayError
from kvassay.records.kv_map import KVMap
from kvassay.serving.protocol import DoesNotFit, GeneratedToken, KVState
from kvassay.serving.serve import serve
from kvassay.store import parse_json
from kvassay.targets.launch import read_export


def read_map(folder: Path, check: bool) -> KVMap:
    if check:
        return read_export(folder)[0]
    return KVMap.model_validate(parse_json((folder / "map.json").read_bytes(), "map.json"))


class StubBackend:
    model_name = "stub"
    vocab_size = 10_000

    def __init__(self, folder, kv_memory_bytes, max_context_tokens, fault, token_delay_s):
        self.map = read_map(folder, check=fault not in ("unchecked", "lies"))
        self.fault, self.token_delay_s, self.kv_memory_bytes = fault, token_delay_s, kv_memory_bytes
        self.capacity = kv_memory_bytes // self.map.bytes_per_token
        self.limit = min(self.capacity, max_context_tokens or self.capacity)
        self.held = self.leaked = self.peak = 0
        self.salt = str(os.getpid()) if fault == "forgets" else ""
        self.layers = [layer.model_dump(include={"index", "k", "v"}) for layer in self.map.layers]
        if fault == "lies":
            # What the right map says, whatever was started.
            told = parse_json((folder / "told.json").read_bytes(), "told.json")
            self.layers = [{key: layer[key] for key in ("index", "k", "v")} for layer in told["layers"]]

    def encode(self, text):
        return list(text.encode())

    def decode(self, token_ids):
        return "".join(chr(token_id) for token_id in token_ids)

    def render_chat(self, messages):
        return [1]

    def check_fits(self, prompt_tokens, max_tokens):
        if prompt_tokens + max_tokens <= self.limit or self.fault == "serves_anyway":
            return
        if self.fault == "crashes":
            os._exit(9)
        if self.fault == "waits_for_ever":
            time.sleep(2.5)
        if self.fault == "unclear":
            raise KvassayError("no")
        if self.fault == "corrupts":
            self.salt = "corrupted"
        raise DoesNotFit(prompt_tokens + max_tokens, self.limit)

    def generate(self, prompt, params, cancel):
        self.check_fits(len(prompt), params.max_tokens)
        seed = hashlib.sha256(f"{self.map.digest}{self.salt}{list(prompt)}".encode()).digest()
        self.held = len(prompt)
        try:
            for number in range(params.max_tokens):
                time.sleep(self.token_delay_s)
                self.held += 1
                self.peak = max(self.peak, self.held)
                token = 97 + (seed[number % 32] + number) % 26
                yield GeneratedToken(token, chr(token), -0.5, (), "length" if number + 1 == params.max_tokens else None)
        finally:
            if self.fault == "leaks" and cancel.is_set():
                self.leaked += self.held
            self.held = 0

    def prompt_logprobs(self, prompt, top_k):
        return []

    def kv_state(self):
        price = self.map.bytes_per_token
        return KVState(
            model="stub", model_sha256=self.map.model, map_digest=self.map.digest, layers=tuple(self.layers), scales=self.map.scales,
            scales_sha256=None, bytes_held=(self.held + self.leaked) * price, bytes_peak=self.peak * price,
            tokens_held=self.held + self.leaked, bytes_per_token=float(price), capacity_tokens=self.capacity,
            kv_memory_bytes=self.kv_memory_bytes, weights_bytes=1000, engine="stub", engine_version="1", build="test",
        )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--export", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--kv-memory-bytes", type=int)
    parser.add_argument("--max-context-tokens", type=int)
    parser.add_argument("--fault", default="")
    parser.add_argument("--token-delay-ms", type=float, default=3.0)
    parser.add_argument("--holds-open")
    given = parser.parse_args()
    held_open = Path(given.holds_open).open() if given.holds_open else None  # noqa: SIM115
    try:
        serve(
            StubBackend(given.export, given.kv_memory_bytes, given.max_context_tokens, given.fault, given.token_delay_ms / 1000), given.port
        )
    except KvassayError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
