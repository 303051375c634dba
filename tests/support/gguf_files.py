"""GGUF headers made in memory: what a converter would write, and what it never should."""

import struct
from pathlib import Path
from typing import Any

UINT32, INT32, FLOAT32, BOOL, TEXT, ARRAY = 4, 5, 6, 7, 8, 9
CODES = {UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str, kind: int, raw: bytes) -> bytes:
    """One key and its value, of a type by its number in the specification."""
    return text(key) + struct.pack("<I", kind) + raw


def header(pairs: Any, version: int = 3, count: int | None = None) -> bytes:
    """A header of these pairs, without tensors; `count` lies about their number."""
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(pairs) if count is None else count) + b"".join(pairs)


def encoded(key: str, value: Any) -> bytes:
    """A pair of the type that llama.cpp's converter writes for such a value."""
    if isinstance(value, str):
        return pair(key, TEXT, text(value))
    if isinstance(value, list):
        kind = _kind(value[0])
        return pair(key, ARRAY, struct.pack("<IQ", kind, len(value)) + b"".join(struct.pack(CODES[kind], each) for each in value))
    kind = _kind(value)
    return pair(key, kind, struct.pack(CODES[kind], value))


def _kind(value: Any) -> int:
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, float):
        return FLOAT32
    return UINT32 if value >= 0 else INT32


def model(architecture: str, values: dict[str, Any]) -> bytes:
    """A header of one architecture: keys without their prefix, beside the bystanders that every file has."""
    bystanders = {"general.name": "some model", "general.file_type": 15, "tokenizer.ggml.model": "gpt2"}
    own = {f"{architecture}.{key}": value for key, value in values.items()}
    return header([encoded(key, value) for key, value in ({"general.architecture": architecture} | bystanders | own).items()])


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    return path
