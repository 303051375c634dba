"""A config.json or a GGUF header, read with bounds, becomes a Geometry."""

from __future__ import annotations

from pathlib import Path

from kvassay.errors import BadInput
from kvassay.formats import NATIVE_DTYPES
from kvassay.geometry.configuration.keys import MOST_TOKENS, Keys
from kvassay.geometry.configuration.language_model import LanguageModel, language_model, native_dtype
from kvassay.geometry.layouts.draft import draft_of, own_draft_layers
from kvassay.geometry.layouts.layout import Choice, read_layers
from kvassay.geometry.locate import locate
from kvassay.geometry.price import priced
from kvassay.records.geometry import Geometry
from kvassay.store import parse_json

GGUF_MAGIC = b"GGUF"
# Nested garbage of this size stays under 200 MB once parsed.
MAX_CONFIG_BYTES = 4 * 2**20
CONTEXT_WITHOUT_LIMIT_TOKENS = 32_768
CONTEXT_KEYS = ("max_target_positions", "max_decoder_position_embeddings", "max_position_embeddings")
AS_CONFIGURED = Choice()


def read_geometry(model: str | Path, context_tokens: int | None = None, choice: Choice = AS_CONFIGURED) -> Geometry:
    """The cache layout of `model` and its native price for one request of `context_tokens` tokens.

    `model`: folder, config.json, GGUF file, or "package:import_name/file.gguf". Without `context_tokens` the model's own longest
    context is priced. Raises BadInput naming file and key for whatever is missing, impossible, or a layout that is not known.
    """
    return geometry_of(read_language_model(locate(model)), context_tokens, choice)


def geometry_of(model: LanguageModel, context_tokens: int | None = None, choice: Choice = AS_CONFIGURED) -> Geometry:
    """The geometry of an already read configuration. Raises BadInput."""
    keys = model.keys
    dtype = native_dtype(model, NATIVE_DTYPES)
    layers = read_layers(model, dtype, choice)
    longest = _longest_context(keys, filled_in=context_tokens is None)
    if context_tokens is None and longest is None:
        keys.note(f"max_position_embeddings is absent: priced at {CONTEXT_WITHOUT_LIMIT_TOKENS:,} tokens")
    context = (longest or CONTEXT_WITHOUT_LIMIT_TOKENS) if context_tokens is None else context_tokens
    if not 1 <= context <= MOST_TOKENS:
        raise BadInput(f"context {context:,}: must be from 1 to {MOST_TOKENS:,} tokens")
    geometry = priced(
        model_type=model.model_type,
        native_dtype=dtype,
        assumptions=tuple(keys.notes),
        max_position_embeddings=longest,
        layers=layers,
        context_tokens=context,
    )
    if drafted := own_draft_layers(keys, layers):
        source, draft_layers = drafted
        return geometry.model_copy(update={"draft": draft_of(geometry, source, draft_layers, context)})
    return geometry


def read_language_model(path: Path) -> LanguageModel:
    """The language model's keys of one file, under the names of transformers. Raises BadInput."""
    try:
        with path.open("rb") as handle:
            data = handle.read(4)
            if data == GGUF_MAGIC:
                from kvassay.geometry.gguf.header import read_header
                from kvassay.geometry.gguf.keys import gguf_keys

                keys = gguf_keys(read_header(path), str(path))
                return LanguageModel(keys, (), keys.model_type)
            data += handle.read(MAX_CONFIG_BYTES + 1 - len(data))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from error
    if len(data) > MAX_CONFIG_BYTES:
        raise BadInput(f"{path}: larger than {MAX_CONFIG_BYTES:,} bytes, so not a config.json; a GGUF file begins with GGUF")
    values = parse_json(data, str(path))
    if not isinstance(values, dict):
        raise BadInput(f"{path}: not a JSON object, so not a config.json")
    return language_model(values, str(path))


def _longest_context(keys: Keys, filled_in: bool) -> int | None:
    """The longest context that the file states; else what the class fills in, which is a guess that only a missing `--context` is worth."""
    for key in CONTEXT_KEYS:
        if keys.has(key) or (filled_in and keys.get(key) is not None):
            return keys.whole(key, MOST_TOKENS)
    return None
