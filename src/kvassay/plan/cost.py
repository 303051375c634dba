"""What scoring and measuring cost, counted in forwards, and what one forward of the model costs."""

from __future__ import annotations

from dataclasses import dataclass

from kvassay.errors import BadInput
from kvassay.formats import NATIVE
from kvassay.geometry.config import read_language_model
from kvassay.geometry.configuration.keys import MOST_HEADS, MOST_LAYERS, MOST_WIDTH, Keys
from kvassay.geometry.locate import locate
from kvassay.plan.check import model_place
from kvassay.plan.schema import ModelChoice, Plan
from kvassay.records.geometry import Geometry

MANY_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "expert_count")


@dataclass(frozen=True)
class Cost:
    """forwards: passes over the layers, as many as whole forwards. heads: passes over the output layer. tokens: in each pass."""

    forwards: float
    heads: int
    tokens: int


@dataclass(frozen=True)
class Weights:
    """Parameters of a dense model: of all layers, and of the output layer; and the sizes its memory follows."""

    layers: int
    layer_parameters: int
    vocab_size: int
    hidden_size: int

    def flops(self, cost: Cost) -> float:
        """Floating-point operations: two per parameter and token."""
        per_token = cost.forwards * self.layers * self.layer_parameters + cost.heads * self.vocab_size * self.hidden_size
        return 2.0 * cost.tokens * per_token

    def memory_bytes(self, plan: Plan) -> float:
        """Weights, the logits of one scoring document three times over, and one hidden state per layer for prefix reuse."""
        element_bytes = 4 if plan.score.dtype == "float32" else 2
        weights = self.layers * self.layer_parameters + self.vocab_size * self.hidden_size
        tokens = plan.corpora.scoring.tokens
        logits = 3 * 4 * tokens * self.vocab_size
        states = element_bytes * plan.corpora.scoring.documents * tokens * self.layers * self.hidden_size
        return element_bytes * weights + logits + states


def score_cost(plan: Plan, geometry: Geometry) -> Cost:
    """The sketch: one forward, and a backward pass for each probe, which costs about two.

    Exact: one candidate per layer, tensor and format, layers below it not run again; reference and noise floor are two more.
    """
    layers, split = len(geometry.layers), plan.corpora.scoring
    tokens = split.documents * split.tokens
    if plan.score.method == "sketch":
        return Cost(1 + 2 * plan.score.probes, 1 + 2 * plan.score.probes, tokens)
    per_layer = sum(name != NATIVE for name in (*plan.formats.k, *plan.formats.v))
    layer_forwards = per_layer * sum(layers - layer.index for layer in geometry.owners)
    return Cost(layer_forwards / layers + 2, per_layer * len(geometry.owners) + 2, tokens)


def measure_cost(plan: Plan, geometry: Geometry) -> Cost:
    """Mixed maps, uniform pairs, the reference and the noise floor: each is a whole forward."""
    split, maps = plan.corpora.choice, plan.ladder.maps + plan.ladder.uniform + 2
    return Cost(maps, maps, split.documents * split.tokens)


def weights_of(model: ModelChoice) -> Weights | None:
    """The model's parameter counts from its configuration; None where it is not here, has experts, or does not state them."""
    place = model_place(model)
    if place is None:
        return None
    keys = read_language_model(locate(place)).keys
    try:
        return None if any(keys.has(key) for key in MANY_EXPERTS) else _dense_weights(keys)
    except BadInput:
        return None


def _dense_weights(keys: Keys) -> Weights:
    hidden, inner = keys.whole("hidden_size", MOST_WIDTH), keys.whole("intermediate_size", MOST_WIDTH)
    heads = keys.whole("num_attention_heads", MOST_HEADS)
    kv_heads = keys.whole("num_key_value_heads", MOST_HEADS) if keys.has("num_key_value_heads") else heads
    head_dim = keys.whole("head_dim", MOST_HEADS) if keys.has("head_dim") else hidden // heads
    attention = hidden * head_dim * (2 * heads + 2 * kv_heads)
    return Weights(
        layers=keys.whole("num_hidden_layers", MOST_LAYERS),
        layer_parameters=attention + 3 * hidden * inner,
        vocab_size=keys.whole("vocab_size", MOST_WIDTH),
        hidden_size=hidden,
    )
