"""A small dense geometry, and scores for it, for tests that need no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvassay.geometry.config import geometry_of
from kvassay.geometry.configuration.language_model import language_model
from kvassay.records.geometry import Geometry
from kvassay.records.scores import Score, Scores

MENU = ("native", "fp8_e4m3", "int6_g64", "int4_g64")
LOSS = {"fp8_e4m3": 3e-4, "int6_g64": 2e-4, "int4_g64": 3e-3}


def small_geometry(layers: int = 4, kv_heads: int = 2, head_dim: int = 64, **more: object) -> Geometry:
    values = {
        "model_type": "llama",
        "num_hidden_layers": layers,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "dtype": "bfloat16",
    }
    return geometry_of(language_model(values | {"max_position_embeddings": 4096} | more, "config.json"))


def usual_loss(layer: int, tensor: str, name: str) -> float:
    """K hurts more than V, and early layers more than late ones."""
    return LOSS[name] * (3.0 if tensor == "k" else 1.0) / (1 + layer)


def small_scores(
    geometry: Geometry,
    formats: Sequence[str] = MENU,
    loss: Callable[[int, str, str], float] = usual_loss,
    floor_nats: float = 0.0,
) -> Scores:
    scores = tuple(
        Score(
            layer=layer.index,
            tensor=tensor,  # type: ignore[arg-type]
            format=name,
            kl_nats=loss(layer.index, tensor, name),
            standard_error_nats=None,
            per_document_nats=(),
            at_floor=loss(layer.index, tensor, name) < 3 * floor_nats,
        )
        for layer in geometry.owners
        for tensor in ("k", "v")
        for name in formats
        if name != "native"
    )
    return Scores(
        method="exact_isolated_kl",
        dtype="float32",
        numerics={},
        positions=100,
        documents=3,
        prefix_reuse=True,
        prefix_reuse_reason=None,
        layer_forwards=1,
        floor_nats=floor_nats,
        scores=scores,
    )
