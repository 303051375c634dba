"""Readings from the text that vLLM prints when it starts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kvassay.errors import BadInput
from kvassay.geometry.engine.reading import Reading, token_count
from kvassay.geometry.engine.sizes import NUMBER, Size, parse_size

# A GPU worker's profile, its explicit budget, a CPU worker's budget; then the capacity, on one line or on two.
_AMOUNT = r"(-?[0-9.]{1,20}) ?(GiB)"
LOG_MEMORY = (
    re.compile(rf"Available KV cache memory: {_AMOUNT}"),
    re.compile(rf"reserved {_AMOUNT} memory for KV Cache"),
    re.compile(r"(?:Explicitly|Auto) set \((-?[0-9.]{1,20})/[0-9.]{1,20}\) (GiB) for KV cache"),
)
LOG_TOKENS = re.compile(r"KV cache size: ([0-9,]{1,24}) tokens")
# A start that begins, or gives up: what was said of memory before belongs to another.
LOG_OTHER_START = re.compile(
    r"vLLM API server version|Initializing a V[0-9] LLM engine|[Ee]ngine ?[Cc]ore (?:failed to start|initialization failed)"
)
LOG_LENGTH = re.compile(r"Maximum concurrency for ([0-9,]{1,24}) tokens per request: ([0-9.]{1,20})x")


@dataclass
class _Start:
    """What one start of an engine has said so far: a memory per worker, capacities once or per worker."""

    line: int = 0
    memories: list[Size] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    lengths: set[int] = field(default_factory=set)
    concurrency: list[float] = field(default_factory=list)


def is_vllm_log(text: str) -> bool:
    """Whether the text says how many tokens a cache has, in vLLM's words."""
    return LOG_TOKENS.search(text) is not None


def readings_of_log(text: str, name: str) -> Iterator[Reading]:
    """The readings of every start in a log. Raises BadInput naming `name` and the line."""
    start = _Start()
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{name}: line {number}"
        memory = next((seen for pattern in LOG_MEMORY if (seen := pattern.search(line))), None)
        if LOG_OTHER_START.search(line) or (memory and start.tokens):
            if start.tokens:
                yield from _readings_of(start, name)
            start = _Start()
        # An engine that finds too little memory prints a negative figure and then gives up.
        if memory and not memory[1].startswith("-"):
            start.memories.append(parse_size(memory[1] + memory[2], f"{where}: memory"))
        if seen := LOG_TOKENS.search(line):
            start.line = start.line or number
            start.tokens.append(token_count(seen[1], f"{where}: tokens"))
        if seen := LOG_LENGTH.search(line):
            start.lengths.add(token_count(seen[1], f"{where}: max length"))
            start.concurrency.append(float(seen[2]) if NUMBER.fullmatch(seen[2]) else math.nan)
    if start.tokens:
        yield from _readings_of(start, name)


def _readings_of(start: _Start, name: str) -> Iterator[Reading]:
    """One reading, or one per worker where workers report different capacities."""
    where = f"{name}: line {start.line}"
    memories, tokens = sorted(start.memories, key=lambda size: size.bytes), sorted(start.tokens)
    if not memories or memories[0].bytes < 1:
        raise BadInput(f"{where}: a cache of {tokens[0]:,} tokens without the memory that it takes on a line before it")
    if len(start.lengths) > 1:
        raise BadInput(f"{where}: one start of the engine names {len(start.lengths)} max lengths; cut the log into one start each")
    # The smallest worker decides for all, unless each reports its own.
    if len(set(tokens)) == 1:
        memories, tokens = memories[:1], tokens[:1]
    if len(memories) != len(tokens):
        raise BadInput(f"{where}: {len(tokens)} different capacities and memory on {len(memories)} lines; cut the log into one start each")
    length = next(iter(start.lengths), None)
    concurrency = start.concurrency[0] if len(start.concurrency) == 1 and math.isfinite(start.concurrency[0]) else None
    for memory, count in dict.fromkeys(zip(memories, tokens, strict=True)):
        yield Reading(memory.bytes, count, length, where, memory.rounding_bytes, concurrency)
