"""kvassay's own trace format: JSONL, one request a line, in order of arrival.

    {"arrival_s": 0.0, "input_tokens": 300, "output_tokens": 12}
    {"arrival_s": 1.7, "input_tokens": 450, "output_tokens": 8, "prefix": "system-a", "prefix_tokens": 64}

arrival_s: seconds, never going backwards. input_tokens: prompt length in the served model's tokens, the prefix included.
output_tokens: answer length. prefix and prefix_tokens, both or neither: the prompt begins with `prefix_tokens` tokens that are
the same in every request with that prefix. Other keys are refused.
"""

from __future__ import annotations

import math
from typing import Any

from kvassay.errors import BadInput
from kvassay.store import parse_json
from kvassay.workload.request import Request, SharedBlock

REQUIRED = frozenset({"arrival_s", "input_tokens", "output_tokens"})
OPTIONAL = frozenset({"prefix", "prefix_tokens"})
MAX_TOKENS = 10_000_000
MAX_PREFIX_CHARACTERS = 200


def parse_line(line: bytes) -> Request:
    """One request. Raises BadInput saying what is wrong with the line."""
    row = parse_json(line, "line")
    if not isinstance(row, dict):
        raise BadInput("not a JSON object")
    if missing := REQUIRED - row.keys():
        raise BadInput(f"{', '.join(sorted(missing))} missing")
    if unknown := row.keys() - REQUIRED - OPTIONAL:
        raise BadInput(f"unknown key {min(unknown)[:40]!r}")
    input_tokens, output_tokens = count(row, "input_tokens"), count(row, "output_tokens")
    return Request(arrival(row["arrival_s"]), input_tokens, output_tokens, shared(row, input_tokens))


def arrival(value: Any) -> float:
    """Seconds, finite and not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput("arrival_s is no number")
    try:
        seconds = float(value)
    except OverflowError:
        raise BadInput("arrival_s is out of range") from None
    if not math.isfinite(seconds) or seconds < 0:
        raise BadInput("arrival_s is negative or not finite")
    return seconds


def count(row: dict[str, Any], key: str) -> int:
    """A whole number of tokens from 1 on."""
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TOKENS:
        raise BadInput(f"{key} is no whole number from 1 to {MAX_TOKENS}")
    return value


def shared(row: dict[str, Any], input_tokens: int) -> tuple[SharedBlock, ...]:
    """The shared prefix, where the line names one."""
    if ("prefix" in row) != ("prefix_tokens" in row):
        raise BadInput("prefix and prefix_tokens stand together or not at all")
    if "prefix" not in row:
        return ()
    name = row["prefix"]
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_PREFIX_CHARACTERS:
        raise BadInput(f"prefix is no text of 1 to {MAX_PREFIX_CHARACTERS} characters")
    tokens = count(row, "prefix_tokens")
    if tokens > input_tokens:
        raise BadInput(f"prefix_tokens {tokens} is more than input_tokens {input_tokens}")
    return (SharedBlock(name, tokens),)
