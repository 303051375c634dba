"""The stage score by the sketch: rows on disk as they come, scores with their standard errors, and the sketch itself beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kvassay.plan.schema import Menu
from kvassay.progress import Progress
from kvassay.records.geometry import Geometry
from kvassay.records.scores import Score
from kvassay.scoring.exact import grouped
from kvassay.scoring.perturb import Candidate
from kvassay.scoring.sketch import candidates_of, kl_of, sketch_documents
from kvassay.store import Rows, Run, write_atomic

SKETCH = "sketch.safetensors"
# A document's draws depend on its number and the probe's, not on what ran before or beside it.
DOCUMENTS_APART = 1_000_003


def sketch_rows(
    model: Any, geometry: Geometry, documents: Sequence[Sequence[int]], menu: Menu, probes: int, seed: int, rows: Rows, progress: Progress
) -> Tensor:
    """z [documents, probes, candidates, owner layers], going on after the documents that `rows` already holds."""
    candidates = candidates_of(menu)
    finished = {row["first"]: row["z"] for row in rows.load()}
    with progress.step("sketching", len(documents)) as step:
        for first, group in grouped(documents, model.device):
            if first not in finished:
                seeds = [[seed + DOCUMENTS_APART * (first + at) + probe for at in range(len(group))] for probe in range(probes)]
                z = sketch_documents(model, len(geometry.owners), group, candidates, seeds).tolist()
                rows.append({"first": first, "z": z})
                finished[first] = z
            step.advance(len(group))
    return torch.cat([torch.tensor(finished[first], dtype=torch.float32) for first in sorted(finished)])


def scores_of(z: Tensor, geometry: Geometry, candidates: Sequence[Candidate], positions: int) -> tuple[Score, ...]:
    """Mean KL of every candidate alone, its standard error over documents, and the mean of each document's probes."""
    per_document = kl_of(z, positions).mean(1)
    mean = per_document.mean(0)
    documents = len(per_document)
    error = per_document.std(0) / math.sqrt(documents) if documents > 1 else None
    return tuple(
        Score(
            layer=layer.index,
            tensor=candidate.tensor,
            format=candidate.format,
            kl_nats=float(mean[number, place]),
            standard_error_nats=None if error is None else float(error[number, place]),
            per_document_nats=tuple(per_document[:, number, place].tolist()),
            at_floor=False,
        )
        for place, layer in enumerate(geometry.owners)
        for number, candidate in enumerate(candidates)
    )


def save_sketch(run: Run, z: Tensor, positions: int, candidates: Sequence[Candidate], geometry: Geometry) -> None:
    """RUN/sketch.safetensors: `z`, and what its axes are."""
    from safetensors.torch import save

    axes = {
        "axes": "documents, probes, candidates, owner layers",
        "candidates": " ".join(f"{candidate.tensor}:{candidate.format}" for candidate in candidates),
        "owner_layers": " ".join(str(layer.index) for layer in geometry.owners),
        "positions_per_row": str(positions),
    }
    write_atomic(run.path(SKETCH), save({"z": z.contiguous()}, metadata=axes))
