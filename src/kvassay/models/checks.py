"""Is a safetensors folder a whole model whose parts belong together? Asked before anything heavy starts. No torch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvassay.errors import BadInput
from kvassay.models.tensor_files import TensorInfo, tensor_table, weight_files
from kvassay.store import parse_json

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model")

# Config keys that every decoder needs, each under the names that model families use.
NEEDED_KEYS = {
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads"),
    "vocab_size": ("vocab_size",),
    "max_position_embeddings": ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length"),
}
TORCH_DTYPES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
EMBEDDING_NAMES = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embed_in.weight", "tok_embeddings.weight")


@dataclass(frozen=True)
class ModelFacts:
    """What a model folder says about itself. native_dtype in torch's names; weights_bytes = size of the safetensors files."""

    model_type: str
    native_dtype: str
    vocab_size: int
    max_position_embeddings: int
    weight_files: tuple[Path, ...]
    weights_bytes: int


def check_folder(folder: Path) -> ModelFacts:
    """Facts of a whole model. Raises BadInput naming the file and key that is missing, torn, or does not match."""
    config = read_config(folder)
    values = {name: positive_int(folder, config, names) for name, names in NEEDED_KEYS.items()}
    files = weight_files(folder)
    table = {name: info for path in files for name, info in tensor_table(path).items()}
    if not table:
        raise BadInput(f"{files[0]}: holds no tensors; get the model again")
    rows = embedding_rows(table)
    if rows is not None and rows < values["vocab_size"]:
        raise BadInput(
            f"{folder}: config.json says vocab_size {values['vocab_size']}, the embedding has only {rows} rows; get the model again"
        )
    check_tokenizer(folder, rows if rows is not None else values["vocab_size"], config)
    return ModelFacts(
        model_type=str(config["model_type"]),
        native_dtype=native_dtype(folder, config, table),
        vocab_size=values["vocab_size"],
        max_position_embeddings=values["max_position_embeddings"],
        weight_files=tuple(files),
        weights_bytes=sum(path.stat().st_size for path in files),
    )


def read_config(folder: Path) -> dict[str, Any]:
    """config.json, with a nested text model's keys on top. Raises BadInput when it is missing or names no model type."""
    path = folder / "config.json"
    if not path.is_file():
        raise BadInput(f"{path}: missing; name a folder that transformers saved")
    config = parse_json(path.read_bytes(), str(path))
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise BadInput(f"{path}: no model_type; get the model again")
    nested = config.get("text_config")
    return config | {k: v for k, v in nested.items() if k != "model_type"} if isinstance(nested, dict) else config


def positive_int(folder: Path, config: dict[str, Any], names: tuple[str, ...]) -> int:
    """The first of `names` that config.json has. Raises BadInput when it has none, or not a positive whole number."""
    for name in names:
        value = config.get(name)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
                raise BadInput(f"{folder / 'config.json'}: {name} is {value!r}, not a positive whole number; get the model again")
            return value
    raise BadInput(f"{folder / 'config.json'}: no {names[0]}; the config is not whole, get the model again")


def native_dtype(folder: Path, config: dict[str, Any], table: dict[str, TensorInfo]) -> str:
    """The dtype the model is served in: the config's, else that of most weights. Raises BadInput for another than 16 or 32 bits."""
    named = config.get("dtype") or config.get("torch_dtype")
    common = Counter(info.dtype for info in table.values()).most_common(1)[0][0]
    dtype = str(named).removeprefix("torch.") if named else TORCH_DTYPES.get(common, common)
    if dtype not in TORCH_DTYPES.values():
        raise BadInput(f"{folder}: weights are {dtype}; this build serves {', '.join(TORCH_DTYPES.values())}")
    return dtype


def embedding_rows(table: dict[str, TensorInfo]) -> int | None:
    """Rows of the token embedding, None when no tensor has a known embedding name."""
    rows = [info.shape[0] for name, info in table.items() if name.endswith(EMBEDDING_NAMES) and len(info.shape) == 2]
    return max(rows, default=None)


def check_tokenizer(folder: Path, model_tokens: int, config: dict[str, Any]) -> None:
    """Raise BadInput when there is no tokenizer, or it makes ids that the model has no row for."""
    present = [name for name in TOKENIZER_FILES if (folder / name).is_file()]
    if not present:
        raise BadInput(f"{folder}: no tokenizer ({', '.join(TOKENIZER_FILES[:2])}); put the model's own tokenizer files beside its weights")
    largest = largest_token_id(folder)
    if largest is None:
        return
    if largest >= model_tokens:
        raise BadInput(
            f"{folder / 'tokenizer.json'}: token ids go up to {largest}, the model knows only {model_tokens}; it belongs to another model"
        )
    for key in ("bos_token_id", "eos_token_id"):
        ids = config.get(key)
        for token in ids if isinstance(ids, list) else [ids]:
            if isinstance(token, int) and token > largest:
                raise BadInput(
                    f"{folder / 'tokenizer.json'}: has no token {token}, which config.json names as {key}; it belongs to another model"
                )


def largest_token_id(folder: Path) -> int | None:
    """The largest id of tokenizer.json; None without that file (its vocabulary is then known only to transformers)."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        return None
    from tokenizers import Tokenizer

    try:
        return max(Tokenizer.from_file(str(path)).get_vocab(with_added_tokens=True).values(), default=-1)
    except Exception as error:  # tokenizers raises bare Exception
        raise BadInput(f"{path}: not a tokenizer ({str(error)[:200]}); get the model again") from error
