"""A random two-layer Llama and its geometry."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from kvassay.geometry.price import cache_bytes, request_parts
from kvassay.records.frontier import Pair
from kvassay.records.geometry import ByteParts, CacheBytes, Geometry, Layer

LAYERS, KV_HEADS, HEAD_DIM = 2, 2, 128
DTYPE_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


def make_geometry(dtype: torch.dtype, head_dim: int = HEAD_DIM, v_dim: int | None = None, **changes: object) -> Geometry:
    layers = tuple(
        Layer(
            **{
                **{"index": index, "kind": "full", "owner": True, "reads_from": None, "kv_heads": KV_HEADS, "k_dim": head_dim},
                **{"v_dim": v_dim or head_dim, "window": None, "module": f"model.layers.{index}.self_attn"},
                **changes,
            }
        )
        for index in range(LAYERS)
    )
    draft = Geometry(
        model_type="llama",
        native_dtype=DTYPE_NAMES[dtype],
        assumptions=(),
        max_position_embeddings=256,
        layers=layers,
        bytes=CacheBytes(growth_per_token=0, all_tokens_per_token=0, window_bytes=0, fixed_per_request=0),
        context_tokens=10,
        total_bytes=0,
        parts=ByteParts(payload=0, scales=0, padding=0),
    )
    native = (Pair(k="native", v="native"),) * LAYERS
    return draft.model_copy(update={"bytes": cache_bytes(draft, native), "parts": request_parts(draft, native, 10)})


def make_model(dtype: torch.dtype) -> LlamaForCausalLM:
    torch.manual_seed(11)
    config = LlamaConfig(
        vocab_size=97,
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


@pytest.fixture(scope="session")
def fp32_model() -> LlamaForCausalLM:
    return make_model(torch.float32)


@pytest.fixture(scope="session")
def bf16_model() -> LlamaForCausalLM:
    return make_model(torch.bfloat16)


@pytest.fixture(scope="session")
def prompt() -> torch.Tensor:
    return torch.randint(0, 97, (1, 40), generator=torch.Generator().manual_seed(12))
