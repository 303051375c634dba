"""Rows of the family tables: a public config.json and the bytes that its published architecture gives, worked out by hand."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvassay.geometry.config import read_geometry
from kvassay.geometry.layouts.layout import Choice
from kvassay.records.geometry import Geometry

# Keys that every config.json carries and no cache depends on.
BYSTANDERS = {
    "architectures": ["SomeForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": [2, 7], "hidden_act": "silu",
    "initializer_range": 0.02, "intermediate_size": 11008, "max_position_embeddings": 131072, "rms_norm_eps": 1e-06,
    "rope_scaling": None, "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "transformers_version": "4.40.0", "use_cache": True, "vocab_size": 32000,
}  # fmt: skip

Config = dict[str, Any]


def config(model_type: str, layers: int, hidden: int, heads: int, kv_heads: int | None = None, **more: Any) -> Config:
    """A config.json with the usual names; `more` adds keys or replaces bystanders."""
    shape = {"model_type": model_type, "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads}
    grouped = {} if kv_heads is None else {"num_key_value_heads": kv_heads}
    return BYSTANDERS | shape | grouped | more


def nested(model_type: str, text: Config, key: str = "text_config", **more: Any) -> Config:
    """A model whose language part sits under `key`, beside a vision tower with numbers of its own."""
    vision = {"model_type": "some_vision_model", "num_hidden_layers": 27, "hidden_size": 1152, "num_attention_heads": 16, "patch_size": 14}
    return {"architectures": ["SomeForConditionalGeneration"], "model_type": model_type, key: text, "torch_dtype": "bfloat16", "vision_config": vision} | more  # fmt: skip


@dataclass(frozen=True)
class Family:
    """One public model: bytes per token and request (BF16), and how many caches of each kind it has.

    all_tokens: left out, it is `growth`. cross_per_token: what `all_tokens` counts for layers that hold only encoder tokens.
    """

    name: str
    config: Config
    growth: int
    kinds: dict[str, int]
    all_tokens: int | None = None
    window: int = 0
    fixed: int = 0
    indexer: int = 0
    cross_per_token: int = 0
    options: dict[str, Any] = field(default_factory=dict)


def read_config(tmp_path: Path, values: Config, context_tokens: int | None = None, **options: Any) -> Geometry:
    """The geometry of a config.json with these keys."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values))
    return read_geometry(path, context_tokens, Choice(**options))


def assert_family(tmp_path: Path, row: Family, *, known: bool = True) -> Geometry:
    """The geometry of `row`, once every byte count, every kind and the totals at a short and a long context are right."""
    all_tokens = row.growth if row.all_tokens is None else row.all_tokens
    geometry = read_config(tmp_path, row.config, 7, **row.options)
    assert geometry.bytes.model_dump() == {
        "growth_per_token": row.growth,
        "all_tokens_per_token": all_tokens,
        "window_bytes": row.window,
        "fixed_per_request": row.fixed,
        "indexer_per_token": row.indexer,
    }
    assert Counter(layer.kind for layer in geometry.layers) == row.kinds
    assert geometry.native_dtype == "bfloat16"
    assert known is not any("standard layout assumed" in note for note in geometry.assumptions)
    # 7 tokens are fewer than any window, a million more than any.
    assert geometry.total_bytes == (all_tokens - row.cross_per_token + row.indexer) * 7 + row.fixed
    far = read_config(tmp_path, row.config, 1_000_000, **row.options)
    assert far.total_bytes == (row.growth + row.indexer) * 1_000_000 + row.window + row.fixed
    return geometry
