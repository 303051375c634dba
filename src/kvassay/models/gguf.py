"""Turn a GGUF file into a safetensors folder: transformers dequantizes, this only spares it doing the same work again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from kvassay.errors import BadInput
from kvassay.geometry.gguf.header import MAGIC, VERSIONS
from kvassay.models.loading import one_line
from kvassay.models.quiet import quiet_transformers


def check_gguf(path: Path) -> None:
    """Raise BadInput unless the file begins as a GGUF of a known version. Needs no torch."""
    with path.open("rb") as handle:
        start = handle.read(24)
    if len(start) < 24 or not start.startswith(MAGIC):
        raise BadInput(f"{path}: not a GGUF file, or its beginning is torn; get it again")
    version = int.from_bytes(start[4:8], "little")
    if version not in VERSIONS:
        raise BadInput(f"{path}: GGUF version {version}; this build reads {' and '.join(map(str, VERSIONS))}")


@contextmanager
def read_once() -> Iterator[None]:
    """Inside the block, gguf parses a file once and builds a name table once.

    transformers 5.19 parses the same file for config, weights and tokenizer, and builds the same name table for every submodule, and
    gguf takes each of 100,000 vocabulary strings through numpy's memmap: 9 s of the 11 s that a 98 MB file takes.
    """
    import gguf
    import numpy as np
    from transformers import modeling_gguf_pytorch_utils as legacy_loader

    class QuickReader(gguf.GGUFReader):  # type: ignore[misc]  # gguf has no types
        def _get(self, offset: int, dtype: Any, count: int = 1, override_order: str | None = None) -> Any:
            kind = np.dtype(dtype)
            values: Any = np.ndarray((int(count),), kind, np.asarray(self.data).data, int(offset))
            order = self.byte_order if override_order is None else override_order
            return values.view(kind.newbyteorder(order))

    reader, name_map = gguf.GGUFReader, gguf.get_tensor_name_map
    gguf.GGUFReader, gguf.get_tensor_name_map = lru_cache(QuickReader), lru_cache(name_map)
    # Its bar obeys no setting of transformers.
    bar, legacy_loader.tqdm = legacy_loader.tqdm, lambda items, **_: items
    try:
        yield
    finally:
        gguf.GGUFReader, gguf.get_tensor_name_map = reader, name_map
        legacy_loader.tqdm = bar


def convert(path: Path, folder: Path, advance: Any) -> None:
    """Write BF16 safetensors and the tokenizer of GGUF file `path` into `folder`; calls `advance()` after each of three parts.

    Raises BadInput naming the file when it is torn or of an architecture that transformers cannot dequantize, OSError when
    `folder` cannot be written.
    """
    check_gguf(path)
    try:
        import gguf  # noqa: F401
        import torch
        from safetensors import SafetensorError
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    except ImportError as error:
        raise BadInput(f"{path}: reading GGUF needs the extra kvassay[torch] ({error})") from error
    try:
        with quiet_transformers(), read_once():
            arguments = {"gguf_file": path.name, "local_files_only": True}
            model = AutoModelForCausalLM.from_pretrained(
                path.parent, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16, **arguments
            )
            advance()
            tokenizer = AutoTokenizer.from_pretrained(path.parent, **arguments)
            advance()
    except Exception as error:  # a hostile file fails anywhere in gguf, tokenizers or transformers
        raise BadInput(
            f"{path}: transformers cannot dequantize it ({one_line(error)}); the file is torn, or of an unknown architecture"
        ) from error
    try:
        with quiet_transformers():
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        drop_stray_tokens(folder / "tokenizer.json", model.config.vocab_size)
    except SafetensorError as error:  # how safetensors tells of a full disk
        raise OSError(one_line(error)) from error
    advance()


def drop_stray_tokens(path: Path, vocab_size: int) -> None:
    """Take out added tokens that the model has no row for: transformers' GPT-2 tokenizer adds <|endoftext|> to any vocabulary."""
    document = json.loads(path.read_bytes())
    document["added_tokens"] = [token for token in document["added_tokens"] if token["id"] < vocab_size]
    path.write_text(json.dumps(document, ensure_ascii=False, indent=2), "utf-8")
