"""A random two-layer Llama with heads of 128 elements, so that every format is legal, and its geometry."""

from __future__ import annotations

from functools import cache

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from kvassay.geometry.price import priced
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry, Layer

LAYERS, KV_HEADS, HEAD_DIM, VOCABULARY = 2, 2, 128, 97
DTYPE_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


def tiny_geometry(dtype: torch.dtype, k_dim: int = HEAD_DIM, v_dim: int = HEAD_DIM, kind: str = "full", first: int = 0) -> Geometry:
    """Geometry of the tiny model, or of one that differs from it in what is given."""
    layers = tuple(
        Layer(
            index=first + index,
            kind=kind,
            owner=True,
            reads_from=None,
            kv_heads=KV_HEADS,
            k_dim=k_dim,
            v_dim=v_dim,
            window=8 if kind == "sliding" else None,
            module=f"model.layers.{index}.self_attn",
        )
        for index in range(LAYERS)
    )
    return priced(
        model_type="llama",
        native_dtype=DTYPE_NAMES[dtype],
        assumptions=(),
        max_position_embeddings=256,
        layers=layers,
        context_tokens=256,
    )


def uniform(k: str, v: str) -> list[Pair]:
    """The same formats in both layers."""
    return [Pair(k=k, v=v)] * LAYERS


@cache
def tiny_llama(dtype: torch.dtype) -> LlamaForCausalLM:
    """Weights large enough for peaked logits and a cache whose rounding matters."""
    torch.manual_seed(11)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        max_position_embeddings=256,
        initializer_range=0.3,
    )
    return LlamaForCausalLM(config).to(dtype).eval().requires_grad_(False)


def tiny_prompt(tokens: int = 40) -> torch.Tensor:
    """Token ids [1, tokens]."""
    return torch.randint(0, VOCABULARY, (1, tokens), generator=torch.Generator().manual_seed(12))
