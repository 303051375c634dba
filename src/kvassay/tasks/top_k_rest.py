"""Forward KL from the log-probabilities that a server gives: its top k tokens, and one bucket for the rest.

For a partition of the vocabulary into the tokens that both sides named and one rest, the log-sum inequality gives
Σ p log(p/q) over the rest ≥ P log(P/Q), with P and Q the masses of the rest. So the estimate is a lower bound of the full KL
(data processing), and equals it when both sides named every token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

# Masses of the rest are 1 minus a sum of rounded numbers: below this they are rounding, and must not enter a logarithm.
ROUNDING_MASS = 1e-6


def top_k_rest_kl(reference: Mapping[int, float], candidate: Mapping[int, float]) -> float:
    """KL(reference || candidate) in nats at one position, from {token id: log-probability in nats} of each side."""
    named = reference.keys() & candidate.keys()
    kl = math.fsum(math.exp(reference[token]) * (reference[token] - candidate[token]) for token in named)
    p_rest, q_rest = _rest(reference, named), _rest(candidate, named)
    return kl + p_rest * math.log(p_rest / q_rest)


def most_likely(logprobs: Mapping[int, float]) -> int:
    """The most likely token id; of equals the lowest."""
    return min(logprobs, key=lambda token: (-logprobs[token], token))


def _rest(logprobs: Mapping[int, float], named: set[int]) -> float:
    return max(1 - math.fsum(math.exp(logprobs[token]) for token in named), ROUNDING_MASS)
