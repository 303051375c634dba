"""Prompts of exact length in the model's own tokens: a function of (pool, seed, request number) and nothing else.

Real text is cut, not random ids: engines with speculative decoding or token-dependent routing behave as with users' text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from kvassay.errors import BadInput
from kvassay.workload.request import Request


def prompt_tokens(pool: Sequence[int], seed: int, index: int, request: Request) -> list[int]:
    """`request.input_tokens` token ids: its shared blocks, then a stretch of `pool` that belongs to request `index`.

    A block's text depends on the seed and its id alone, so requests that name it truly share it. `pool` is read as a ring.
    Raises BadInput when it is empty.
    """
    if not pool:
        raise BadInput("prompts: the pool of text tokens is empty; give some text")
    prompt: list[int] = []
    for block in request.shared:
        prompt += stretch(pool, place(pool, seed, "block", block.id), block.tokens)
    own = request.input_tokens - len(prompt)
    if own < 0:
        raise BadInput(f"request {index}: shared blocks of {len(prompt)} tokens in a prompt of {request.input_tokens}")
    return prompt + stretch(pool, place(pool, seed, "request", str(index)), own)


def prompts_digest(prompts: Iterable[Sequence[int]]) -> str:
    """SHA-256 (hex) over the prompts' token ids, each prompt closed by a line end."""
    digest = hashlib.sha256()
    for prompt in prompts:
        digest.update(" ".join(map(str, prompt)).encode() + b"\n")
    return digest.hexdigest()


def place(pool: Sequence[int], seed: int, kind: str, name: str) -> int:
    """Where in the pool the text of (kind, name) begins."""
    data = hashlib.sha256(f"{seed}\0{kind}\0{name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(data[:8], "big") % len(pool)


def stretch(pool: Sequence[int], start: int, tokens: int) -> list[int]:
    """`tokens` ids of the ring `pool` from `start` on."""
    found: list[int] = []
    while len(found) < tokens:
        piece = pool[start : start + tokens - len(found)]
        found += piece
        start = 0
    return found
