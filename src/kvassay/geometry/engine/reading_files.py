"""Readings of an engine's log from a file: JSON, JSON lines, CSV, or the text that vLLM prints when it starts."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from kvassay.errors import BadInput
from kvassay.geometry.configuration.keys import MOST_TOKENS, shown
from kvassay.geometry.engine.memory import MOST_BYTES, Size, parse_size
from kvassay.store import parse_json, read_bounded

MOST_FILE_BYTES, MOST_READINGS = 4 * 2**20, 10_000
MEMORY_KEYS, LENGTH_KEYS = ("memory", "memory_bytes", "memory_gib"), ("max_length", "max_model_len")
WHOLE = re.compile(r"[0-9]{1,15}|[0-9]{1,3}(?:,[0-9]{3}){1,5}")
NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")

# vLLM: a GPU worker's profile, its explicit budget, a CPU worker's budget; then the capacity, on one line or on two.
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


@dataclass(frozen=True)
class Reading:
    """What one start of an engine said: memory for the cache, the tokens that it counts in there, and its longest context.

    where: file and line. memory_rounding_bytes: how far the exact memory may be from what was printed. concurrency: requests of
    `max_length` tokens that the engine says it serves at once, None where it says none.
    """

    memory_bytes: int
    tokens: int
    max_length: int | None
    where: str
    memory_rounding_bytes: float = 0.5
    concurrency: float | None = None

    @property
    def bytes_per_token(self) -> float:
        """Memory ÷ tokens: for a hybrid a mix of growing and fixed parts, and no constant of the model."""
        return self.memory_bytes / self.tokens

    @property
    def rounding(self) -> float:
        """How far `bytes_per_token` may be from the exact figure, as a share of it."""
        return self.memory_rounding_bytes / self.memory_bytes + 1 / self.tokens


def read_readings(path: Path) -> tuple[Reading, ...]:
    """The readings in a file of at most 4 MiB, in its order. Raises BadInput naming the line."""
    try:
        data = read_bounded(path, MOST_FILE_BYTES)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; name a log of the engine, or JSON or CSV of readings") from None
    text = data.decode("utf-8-sig", errors="replace")
    name = str(path)
    if LOG_TOKENS.search(text):
        found = _of_log(text, name)
    elif text.lstrip().startswith("["):
        found = _of_list(parse_json(text.encode(), name), name)
    elif text.lstrip().startswith("{"):
        found = _of_objects(text, name)
    else:
        found = _of_csv(text, name)
    readings = tuple(islice(found, MOST_READINGS + 1))
    if not readings:
        raise BadInput(f"{name}: holds no reading of memory and tokens")
    if len(readings) > MOST_READINGS:
        raise BadInput(f"{name}: more than {MOST_READINGS:,} readings; keep those of one model")
    return readings


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _of_list(values: Any, name: str) -> Iterator[Reading]:
    return (_of_object(each, f"{name}: reading {number}") for number, each in enumerate(values, 1))


def _of_objects(text: str, name: str) -> Iterator[Reading]:
    """One object per line, or a single object over several."""
    lines = list(islice(_lines(text), MOST_READINGS + 1))
    if lines[0][1].strip() == "{":
        lines = [(1, text)]
    for number, line in lines:
        where = f"{name}: line {number}"
        yield _of_object(parse_json(line.encode(), where), where)


def _of_csv(text: str, name: str) -> Iterator[Reading]:
    rows = csv.reader(text.split("\n"), strict=True)
    try:
        header = [column.strip().lower() for column in next(rows, [])]
        if "tokens" not in header or not set(MEMORY_KEYS) & set(header) or len(set(header)) != len(header):
            raise BadInput(
                f"{name}: line 1: neither a log of vLLM, nor JSON, nor CSV with the columns memory, tokens and max_length, each once"
            )
        for row in rows:
            where = f"{name}: line {rows.line_num}"
            if not row:
                continue
            if len(row) != len(header):
                raise BadInput(f"{where}: has {len(row):,} cells, the header has {len(header):,}")
            yield _of_object({key: cell.strip() for key, cell in zip(header, row, strict=True) if cell.strip()}, where)
    except csv.Error as error:
        raise BadInput(f"{name}: line {rows.line_num}: not CSV ({error})") from error


def _of_object(values: Any, where: str) -> Reading:
    if not isinstance(values, Mapping):
        raise BadInput(f"{where}: must be an object with memory, tokens and max_length, not {shown(values)}")
    memory_key, length_key = _one_of(values, MEMORY_KEYS, where), _one_of(values, LENGTH_KEYS, where)
    if memory_key is None or values.get("tokens") is None:
        raise BadInput(f"{where}: {'tokens' if memory_key else 'memory'}: missing; a reading has memory and tokens")
    memory = _memory(memory_key, values[memory_key], where)
    tokens = _count(values["tokens"], f"{where}: tokens")
    length = None if length_key is None else _count(values[length_key], f"{where}: {length_key}")
    return Reading(memory.bytes, tokens, length, where, memory.rounding_bytes)


def _one_of(values: Mapping[str, Any], keys: tuple[str, ...], where: str) -> str | None:
    there = [key for key in keys if values.get(key) is not None]
    if len(there) > 1:
        raise BadInput(f"{where}: {' and '.join(there)}: say one of them")
    return there[0] if there else None


def _memory(key: str, value: Any, where: str) -> Size:
    """A size with its unit, or a number of bytes or GiB."""
    where = f"{where}: {key}"
    if isinstance(value, str) and key == "memory" and not NUMBER.fullmatch(value):
        return _positive(parse_size(value, where), where)
    plain = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= MOST_BYTES and math.isfinite(value)
    if not (plain or (isinstance(value, str) and NUMBER.fullmatch(value))):
        raise BadInput(f"{where}: must be a positive number{' or a size such as 5.38GiB' if key == 'memory' else ''}, not {shown(value)}")
    if key == "memory_gib":
        return _positive(
            parse_size(f"{value if isinstance(value, str) else format(value, '.12f').rstrip('0').rstrip('.')}GiB", where), where
        )
    return _positive(parse_size(f"{value if isinstance(value, str) else int(value)}B", where), where)


def _positive(size: Size, where: str) -> Size:
    if size.bytes < 1:
        raise BadInput(f"{where}: must be more than 0 bytes")
    return size


def _count(value: Any, where: str) -> int:
    if isinstance(value, str) and WHOLE.fullmatch(value):
        value = int(value.replace(",", ""))
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_TOKENS:
        raise BadInput(f"{where}: must be a whole number from 1 to {MOST_TOKENS:,}, not {shown(value)}")
    return value


@dataclass
class _Start:
    """What one start of an engine has said so far: a memory per worker, capacities once or per worker."""

    line: int = 0
    memories: list[Size] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    lengths: set[int] = field(default_factory=set)
    concurrency: list[float] = field(default_factory=list)


def _of_log(text: str, name: str) -> Iterator[Reading]:
    start = _Start()
    for number, line in _lines(text):
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
            start.tokens.append(_count(seen[1], f"{where}: tokens"))
        if seen := LOG_LENGTH.search(line):
            start.lengths.add(_count(seen[1], f"{where}: max length"))
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
