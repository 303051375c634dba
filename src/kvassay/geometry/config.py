"""A config.json or a GGUF header, read with bounds, becomes a Geometry."""

from __future__ import annotations

from pathlib import Path

from kvassay.errors import BadInput
from kvassay.geometry.dense import dense_geometry
from kvassay.geometry.gguf_header import MAGIC, read_header
from kvassay.geometry.gguf_keys import gguf_keys
from kvassay.geometry.keys import Keys
from kvassay.geometry.locate import locate
from kvassay.records.geometry import Geometry
from kvassay.store import parse_json

# Nested garbage of this size stays under 200 MB once parsed.
MAX_CONFIG_BYTES = 4 * 2**20


def read_geometry(model: str | Path, context_tokens: int | None = None) -> Geometry:
    """The cache layout of `model` and its native price for one request of `context_tokens` tokens.

    `model`: folder, config.json, GGUF file, or "package:import_name/file.gguf". Without `context_tokens` the model's own longest
    context is priced. Raises BadInput naming file and key for whatever is missing, impossible, or a layout that is not read yet.
    """
    return dense_geometry(read_keys(locate(model)), context_tokens)


def read_keys(path: Path) -> Keys:
    """The configuration keys of one file, under the names of transformers. Raises BadInput."""
    try:
        with path.open("rb") as handle:
            data = handle.read(4)
            if data == MAGIC:
                return gguf_keys(read_header(path), str(path))
            data += handle.read(MAX_CONFIG_BYTES + 1 - len(data))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from error
    if len(data) > MAX_CONFIG_BYTES:
        raise BadInput(f"{path}: larger than {MAX_CONFIG_BYTES:,} bytes, so not a config.json; a GGUF file begins with GGUF")
    values = parse_json(data, str(path))
    if not isinstance(values, dict):
        raise BadInput(f"{path}: not a JSON object, so not a config.json")
    return Keys(values, str(path))
