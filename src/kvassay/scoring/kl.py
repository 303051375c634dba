"""Forward KL in FP32, stable down to rounding: a format that loses 1e-8 nats must not drown in the cancellation of two logs."""

from __future__ import annotations

import torch
from torch import Tensor

# Elements per tile: the few tensors of this size that one tile needs stay in a core's second-level cache.
TILE_ELEMENTS = 1 << 18

# Up to here exp(difference) neither overflows nor loses the small terms; beyond it the plain formula has no cancellation left to fear.
SMALL_DIFFERENCE = 20.0


def forward_kl(reference_logits: Tensor, candidate_logits: Tensor, reference_probabilities: Tensor | None = None) -> Tensor:
    """KL(reference || candidate) per position, in nats, FP32.

    reference_logits, candidate_logits: [..., vocabulary]; the result is [...]. NaN or Inf in a position gives NaN there.
    reference_probabilities: softmax of the reference where the caller keeps it for many candidates (a quarter of the time).
    Raises ValueError when the shapes differ.

    With d = candidate − reference and E the mean under the reference, KL = log E[exp(d − E[d])]: nothing large is subtracted
    from something large, and identical logits give exactly 0.
    """
    if reference_logits.shape != candidate_logits.shape:
        raise ValueError(f"shapes {list(reference_logits.shape)} and {list(candidate_logits.shape)} differ")
    vocabulary = reference_logits.shape[-1]
    reference, candidate = reference_logits.reshape(-1, vocabulary), candidate_logits.reshape(-1, vocabulary)
    result = torch.empty(reference.shape[0], dtype=torch.float32, device=reference.device)
    kept = None if reference_probabilities is None else reference_probabilities.reshape(-1, vocabulary)
    step = max(1, TILE_ELEMENTS // vocabulary)
    for start in range(0, reference.shape[0], step):
        tile = slice(start, start + step)
        known = reference[tile].float()
        result[tile] = _tile(known.softmax(-1) if kept is None else kept[tile], known, candidate[tile].float())
    return result.view(reference_logits.shape[:-1])


def _tile(p: Tensor, reference: Tensor, candidate: Tensor) -> Tensor:
    """KL of a few positions, [positions, vocabulary] -> [positions]; p = softmax(reference)."""
    difference = candidate - reference
    difference -= torch.linalg.vecdot(p, difference).unsqueeze(-1)
    low, high = difference.aminmax()
    if -low <= SMALL_DIFFERENCE and high <= SMALL_DIFFERENCE:
        # The mean was taken out only up to rounding; what is left of it goes here.
        rest = torch.linalg.vecdot(p, difference)
        kl: Tensor = torch.log1p(torch.linalg.vecdot(p, difference.expm1_())) - rest
    else:
        kl = torch.linalg.vecdot(p, reference.log_softmax(-1) - candidate.log_softmax(-1))
    return kl
