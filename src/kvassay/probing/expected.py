"""What the run expects of each arm: its price, and the joint KL that the ladder measured for exactly its map."""

from __future__ import annotations

from kvassay.formats import NATIVE
from kvassay.probing.observed import Expected
from kvassay.records.export import ArmExport
from kvassay.records.frontier import Pair
from kvassay.records.kv_map import KVMap
from kvassay.records.ladder import Ladder
from kvassay.solving.kv_map import map_pairs


def expected_of(kv_map: KVMap, arm: ArmExport, native: ArmExport, ladder: Ladder, documents: int) -> Expected:
    """Expectation of `arm`, whose exported map is `kv_map`, on the `documents` documents of the choice split."""
    pairs = map_pairs(kv_map)
    predicted, why = predicted_kl(ladder, pairs, documents)
    return Expected(
        quantized=pairs != (Pair(k=NATIVE, v=NATIVE),) * len(pairs),
        bytes_per_token=arm.bytes_per_token,
        capacity_ratio=native.bytes_per_token / arm.bytes_per_token,
        predicted_kl_nats=predicted,
        why_no_prediction=why,
    )


def predicted_kl(ladder: Ladder, pairs: tuple[Pair, ...], documents: int) -> tuple[tuple[float, ...] | None, str]:
    """Measured joint KL per document of the rung with exactly these pairs, or None and why not."""
    rung = next((rung for rung in ladder.rungs if rung.pairs == pairs), None)
    if rung is None:
        return None, "the ladder measured no such map, so nothing is predicted for it"
    if len(rung.per_document_nats) != documents:
        return None, f"the ladder measured {len(rung.per_document_nats)} documents of this map, {documents} are served"
    return rung.per_document_nats, ""
