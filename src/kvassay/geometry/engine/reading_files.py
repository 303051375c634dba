"""Readings of an engine's log from a file: JSON, JSON lines, CSV, or the text that vLLM prints when it starts."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from kvassay.errors import BadInput
from kvassay.geometry.configuration.keys import shown
from kvassay.geometry.engine.reading import Reading, token_count
from kvassay.geometry.engine.sizes import MOST_BYTES, NUMBER, Size, parse_size
from kvassay.geometry.engine.vllm_log import is_vllm_log, readings_of_log
from kvassay.store import parse_json, read_bounded

MOST_FILE_BYTES, MOST_READINGS = 4 * 2**20, 10_000
MEMORY_KEYS, LENGTH_KEYS = ("memory", "memory_bytes", "memory_gib"), ("max_length", "max_model_len")


def read_readings(path: Path) -> tuple[Reading, ...]:
    """The readings in a file of at most 4 MiB, in its order. Raises BadInput naming the line."""
    try:
        data = read_bounded(path, MOST_FILE_BYTES)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; name a log of the engine, or JSON or CSV of readings") from None
    text = data.decode("utf-8-sig", errors="replace")
    name = str(path)
    if is_vllm_log(text):
        found = readings_of_log(text, name)
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
    tokens = token_count(values["tokens"], f"{where}: tokens")
    length = None if length_key is None else token_count(values[length_key], f"{where}: {length_key}")
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
