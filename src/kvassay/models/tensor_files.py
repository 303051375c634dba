"""Safetensors files of a model folder, checked whole without reading their tensors. No torch."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvassay.errors import BadInput
from kvassay.store import parse_json

MAX_HEADER_BYTES = 100 * 2**20
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class TensorInfo:
    """One tensor as its file's header describes it; `dtype` in safetensors' names (BF16, F32, …)."""

    dtype: str
    shape: tuple[int, ...]


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files that hold this model, by its index where there is one.

    Raises BadInput when there are none (only pickles are refused by name), or one that the index names is missing.
    """
    index = folder / INDEX
    if index.is_file():
        document = parse_json(index.read_bytes(), str(index))
        weight_map = document.get("weight_map") if isinstance(document, dict) else None
        if not isinstance(weight_map, dict) or not weight_map or not all(isinstance(name, str) for name in weight_map.values()):
            raise BadInput(f"{index}: no weight_map; get the model again")
        names = sorted(set(weight_map.values()))
        for name in names:
            if Path(name).name != name or not (folder / name).is_file():
                raise BadInput(f"{folder / name}: named in {INDEX} but missing; the model is half there, get it again")
        return [folder / name for name in names]
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    if pickles:
        raise BadInput(f"{folder}: only pickled weights ({pickles[0]}), which can run code when read; convert them to safetensors first")
    raise BadInput(f"{folder}: no model.safetensors and no {INDEX}; name a folder that transformers saved")


def tensor_table(path: Path) -> dict[str, TensorInfo]:
    """Every tensor of one safetensors file. Raises BadInput when the file is cut short, too long, or not safetensors."""
    size = path.stat().st_size
    with path.open("rb") as handle:
        start = handle.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= MAX_HEADER_BYTES:
            raise BadInput(f"{path}: not a safetensors file, or its beginning is torn; get the model again")
        raw = handle.read(length)
    if len(raw) < length:
        raise BadInput(f"{path}: cut short inside its header ({size} bytes); get the model again")
    try:
        header: dict[str, Any] = json.loads(raw)
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        ends = [int(entry["data_offsets"][1]) for entry in entries.values()]
        table = {name: TensorInfo(str(entry["dtype"]), tuple(int(d) for d in entry["shape"])) for name, entry in entries.items()}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{path}: damaged safetensors header ({error}); get the model again") from error
    expected = 8 + length + max(ends, default=0)
    if size != expected:
        what = "cut short" if size < expected else "longer than its header says"
        raise BadInput(f"{path}: {what} ({size} of {expected} bytes); get the model again")
    return table
