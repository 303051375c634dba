"""Exact isolated forward KL: every K and every V of every owner layer in every format, one at a time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kvassay.errors import BadInput
from kvassay.formats import NATIVE, law
from kvassay.plan.schema import Menu
from kvassay.progress import Progress
from kvassay.records.geometry import Geometry
from kvassay.records.scores import Score
from kvassay.scoring.kl import forward_kl
from kvassay.scoring.perturb import Candidate, candidates_cache, last_place_cache
from kvassay.scoring.replay import Replay, decoder_layers
from kvassay.store import Rows

# Tokens of one forward: enough to keep the matrix units busy, few enough that the logits of a large vocabulary fit.
GROUP_TOKENS = 1024
# Bytes of FP32 logits of one forward, candidates side by side.
LOGITS_BYTES = 256 * 2**20


@dataclass(frozen=True)
class IsolatedScores:
    """Scores of all candidates, and how they were made. layer_forwards = decoder layers run x documents."""

    scores: tuple[Score, ...]
    floor_nats: float
    why_no_reuse: str | None
    layer_forwards: int


def score_layers(
    model: Any, geometry: Geometry, documents: Sequence[Sequence[int]], menu: Menu, floor_multiple: float, rows: Rows, progress: Progress
) -> IsolatedScores:
    """Score every candidate, going on after the layers that `rows` already holds.

    documents: token ids, all of one length. Raises BadInput when logits are NaN or infinite, or when a candidate that stores
    fewer bits than native changes nothing at all.
    """
    finished = {row["layer"]: row for row in rows.load()}
    layers = decoder_layers(model, geometry)
    with progress.step("reference forwards", len(documents)) as step:
        replays = []
        for start, group in grouped(documents, model.device):
            replays.append(Replay(model, layers, geometry, group, start))
            step.advance(len(group))
        floor = floor_kl(replays)
        overhead = sum(replay.layer_forwards for replay in replays)
    candidates = [Candidate("k", name) for name in menu.k if name != NATIVE] + [Candidate("v", name) for name in menu.v if name != NATIVE]
    owners = geometry.owners
    with progress.step("scoring layers", sum(cost(geometry, place) for place in range(len(owners)))) as step:
        for place, layer in enumerate(owners):
            if layer.index not in finished:
                before = sum(replay.layer_forwards for replay in replays)
                per_candidate = score_one_layer(geometry, replays, place, candidates)
                row = {
                    "layer": layer.index,
                    "layer_forwards": sum(replay.layer_forwards for replay in replays) - before,
                    "scores": [
                        {"tensor": c.tensor, "format": c.format, "per_document": kl}
                        for c, kl in zip(candidates, per_candidate, strict=True)
                    ],
                }
                rows.append(row)
                finished[layer.index] = row
            step.advance(cost(geometry, place))
    ordered = [finished[layer.index] for layer in owners]
    return IsolatedScores(
        scores=tuple(as_score(row["layer"], score, floor, floor_multiple) for row in ordered for score in row["scores"]),
        floor_nats=floor,
        why_no_reuse=next((replay.why_not for replay in replays if replay.why_not), None),
        layer_forwards=overhead + sum(int(row["layer_forwards"]) for row in ordered),
    )


def grouped(documents: Sequence[Sequence[int]], device: Any) -> list[tuple[int, Tensor]]:
    """Documents of one length as [documents, tokens] tensors of at most GROUP_TOKENS tokens, each with its first document's number."""
    size = max(1, GROUP_TOKENS // len(documents[0]))
    return [(start, torch.tensor(documents[start : start + size], device=device)) for start in range(0, len(documents), size)]


def floor_kl(replays: Sequence[Replay]) -> float:
    """Mean KL of the reference against itself with every K and V one unit in the last place away: nothing smaller can be seen."""
    total = torch.cat([forward_kl(r.reference, r.logits(last_place_cache(len(r.owners)))).flatten() for r in replays])
    return max(0.0, total.mean().item())


def score_one_layer(geometry: Geometry, replays: Sequence[Replay], place: int, candidates: Sequence[Candidate]) -> list[list[float]]:
    """Mean KL per document of every candidate of owner layer number `place`; candidates run side by side as far as logits fit."""
    layer = geometry.owners[place]
    result: list[list[float]] = [[] for _ in candidates]
    for replay in replays:
        copies = max(1, LOGITS_BYTES // (4 * replay.reference.numel()))
        for start in range(0, len(candidates), copies):
            some = candidates[start : start + copies]
            cache = candidates_cache(len(geometry.owners), place, some, len(replay.input_ids))
            logits = replay.logits(cache, layer.index, len(some))
            for number, part in enumerate(torch.split(logits, len(replay.input_ids))):
                candidate = some[number]
                kl = forward_kl(replay.reference, part, replay.probabilities)
                refuse_silent(geometry, layer.index, candidate, replay.reference, part, kl)
                result[start + number].extend(kl.double().mean(-1).tolist())
    return result


def refuse_silent(geometry: Geometry, layer: int, candidate: Candidate, reference: Tensor, logits: Tensor, kl: Tensor) -> None:
    """Raise BadInput when the candidate gives NaN, or the very same logits though it stores fewer bits than native."""
    where = f"layer {layer}, {candidate.tensor.upper()} in {candidate.format}"
    if not torch.isfinite(kl).all():
        document, position = (int(x) for x in (~torch.isfinite(kl)).nonzero()[0])
        raise BadInput(f"{where}: NaN or infinite logits at position {position} of document {document}; leave this format out of the plan")
    fewer_bits = law(candidate.format, geometry.native_dtype).element_bits < law(NATIVE, geometry.native_dtype).element_bits
    if fewer_bits and not kl.any() and torch.equal(reference, logits):
        raise BadInput(f"{where}: quantization never engaged, the logits are those of the reference; this model does not read its cache")


def as_score(layer: int, row: dict[str, Any], floor: float, floor_multiple: float) -> Score:
    """Mean and standard error over documents."""
    values = [float(value) for value in row["per_document"]]
    mean = statistics.fmean(values)
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return Score(
        layer=layer,
        tensor=row["tensor"],
        format=row["format"],
        kl_nats=mean,
        standard_error_nats=error,
        per_document_nats=tuple(values),
        at_floor=mean <= floor_multiple * floor,
    )


def cost(geometry: Geometry, place: int) -> int:
    """Decoder layers a replay of owner layer number `place` runs, for the progress bar."""
    return len(geometry.layers) - geometry.owners[place].index
