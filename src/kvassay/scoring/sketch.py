"""The sketch: one forward and a few backward passes price every format of every layer's K and V.

At each position t a probe draws a token y_t ~ p_t from the reference and takes the gradient of Σ_t log p_t(y_t) to the stored K and V
themselves. A format that disturbs the cache by ΔK projects to z = ⟨∂/∂K, ΔK⟩, and to second order the KL of the disturbance is
E[z²] / 2 over the T positions of the row: the Fisher information is the covariance of those gradients. Projections add up over layers
and tensors before they are squared, so the same numbers price whole maps. There is no attention rerun and no noise floor: nothing
large is subtracted from anything large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import Cache

from kvassay.errors import BadInput
from kvassay.formats import NATIVE
from kvassay.numerics import disturb
from kvassay.plan.schema import Menu
from kvassay.scoring.perturb import Candidate, Untouched


class Recording(Untouched):
    """A layer that keeps nothing packed and remembers K and V of the forward, in its graph."""

    def change(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        self.k, self.v = k, v
        return k, v


def candidates_of(menu: Menu) -> tuple[Candidate, ...]:
    """K and V of every format of the menu apart; native disturbs nothing."""
    k = tuple(Candidate("k", name) for name in menu.k if name != NATIVE)
    return k + tuple(Candidate("v", name) for name in menu.v if name != NATIVE)


def sketch_documents(
    model: Any, owner_layers: int, input_ids: Tensor, candidates: Sequence[Candidate], seeds: Sequence[Sequence[int]]
) -> Tensor:
    """z [documents, probes, candidates, owner layers], FP32, of documents [documents, tokens]: one forward, and a backward per probe.

    seeds: for every probe one seed per document, so that what is drawn does not depend on what runs beside it. Raises BadInput when
    logits are NaN or infinite, or when the model does not read its cache.
    """
    layers = [Recording() for _ in range(owner_layers)]
    with torch.enable_grad():
        # One leaf at the bottom: K and V of every layer are then in one graph, and nothing of the weights is.
        embedded = model.get_input_embeddings()(input_ids).detach().requires_grad_(True)
        logits = model(inputs_embeds=embedded, past_key_values=Cache(layers=layers), use_cache=True).logits.float()
    if not torch.isfinite(logits).all():
        raise BadInput("scoring: NaN or infinite logits in the reference forward; check the model's weights")
    stored = [getattr(layer, name) for layer in layers for name in ("k", "v")]
    drawn = [draw(logits.detach(), each) for each in seeds]
    found = [gradients(logits, stored, each, keep_graph=probe < len(drawn) - 1) for probe, each in enumerate(drawn)]
    by_layer = [[each[2 * place : 2 * place + 2] for each in found] for place in range(owner_layers)]
    return torch.stack([_projections(layer, candidates, each) for layer, each in zip(layers, by_layer, strict=True)], -1)


def draw(logits: Tensor, seeds: Sequence[int]) -> Tensor:
    """One token per position [documents, positions, 1], drawn from the softmax of `logits` with one seed per document."""
    uniform = torch.stack([torch.rand(logits.shape[1], 1, generator=torch.Generator().manual_seed(seed)) for seed in seeds])
    cumulative = logits.softmax(-1).cumsum(-1)
    return torch.searchsorted(cumulative, uniform.to(logits.device)).clamp(max=logits.shape[-1] - 1)


def gradients(logits: Tensor, stored: Sequence[Tensor], drawn: Tensor, keep_graph: bool) -> tuple[Tensor, ...]:
    """Gradient of Σ_t log p_t(drawn_t) to every stored tensor. Raises BadInput when the logits do not depend on one of them."""
    with torch.no_grad():
        direction = logits.softmax(-1).neg_().scatter_add_(-1, drawn, torch.ones_like(drawn, dtype=logits.dtype))
    try:
        return torch.autograd.grad(logits, stored, direction, retain_graph=keep_graph)
    except RuntimeError as error:
        raise BadInput(f"scoring: the logits do not depend on the cache, so this model does not read it ({str(error)[:80]})") from error


def _projections(layer: Recording, candidates: Sequence[Candidate], gradients: Sequence[Sequence[Tensor]]) -> Tensor:
    """z [documents, probes, candidates] of one owner layer; gradients: K's and V's of every probe."""
    its = {"k": layer.k.detach(), "v": layer.v.detach()}
    found = []
    for candidate in candidates:
        tensor = its[candidate.tensor]
        change = (disturb(candidate.format, tensor).float() - tensor.float()).flatten(1)
        side = 0 if candidate.tensor == "k" else 1
        found.append(torch.stack([torch.linalg.vecdot(probe[side].float().flatten(1), change) for probe in gradients], -1))
    return torch.stack(found, -1)


def kl_of(z: Tensor, positions: int) -> Tensor:
    """Predicted KL per token in nats of each row's disturbance; `z` of any shape, already added up over what is disturbed at once."""
    return z.double().square() / (2 * positions)
