"""model.json: which weights this run is about."""

from __future__ import annotations

from typing import ClassVar

from kvassay.records.base import NonNegativeInt, Record, Sha256


class Model(Record):
    """The prepared weights. `folder` (relative to the run) is a safetensors folder that transformers loads."""

    artifact: ClassVar[str] = "model.json"
    schema_id: ClassVar[str] = "kvassay.model/1"

    source: str
    source_kind: str
    revision: str | None
    source_sha256: Sha256
    weights_sha256: Sha256
    tokenizer_sha256: Sha256
    folder: str
    model_type: str
    native_dtype: str
    vocab_size: NonNegativeInt
    weights_bytes: NonNegativeInt
    max_position_embeddings: NonNegativeInt
    trust_remote_code: bool
