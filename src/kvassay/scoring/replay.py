"""Run a model again from one decoder layer on: what lies before a disturbed layer does not change, so it is not computed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from kvassay.errors import BadInput
from kvassay.records.geometry import Geometry
from kvassay.scoring.perturb import untouched_cache

# A replay that reproduces the reference differs by rounding only; logits are of the order of ten.
SAME_LOGITS = 1e-4
# Up to this size the reference's probabilities are kept beside its logits.
KEPT_PROBABILITIES_BYTES = 512 * 2**20


def decoder_layers(model: nn.Module, geometry: Geometry) -> list[nn.Module]:
    """The modules of the decoder layers, found as parents of the attention modules that geometry names. Raises BadInput."""
    found = []
    for layer in geometry.layers:
        try:
            found.append(model.get_submodule(layer.module.rpartition(".")[0]))
        except AttributeError as error:
            raise BadInput(
                f"layer {layer.index}: this model has no module {layer.module}; delete geometry.json to make it again"
            ) from error
    return found


class Replay:
    """One group of documents: the reference's logits, and what every decoder layer gave in the reference forward.

    Layers before `first` are not run in `logits(cache, first)`: their outputs come from the reference. `why_not` is None when a
    replay reproduced the reference logits, else the reason why every forward is a whole one.
    """

    def __init__(self, model: Any, layers: Sequence[nn.Module], geometry: Geometry, input_ids: Tensor, first_document: int = 0) -> None:
        self.model, self.layers, self.input_ids = model, list(layers), input_ids
        self.owners = [layer.index for layer in geometry.owners]
        self.layer_forwards = 0
        self.outputs: list[Any] = []
        with self._recording():
            self.reference = self._forward(untouched_cache(len(self.owners)), 1)
        self.layer_forwards += len(self.layers) * len(input_ids)
        refuse_broken(self.reference, self.outputs, first_document)
        self.why_not = self._why_not(geometry)
        if self.why_not:
            self.outputs = []
        self.probabilities = self.reference.softmax(-1) if self.reference.nbytes <= KEPT_PROBABILITIES_BYTES else None

    def logits(self, cache: Any, first: int = 0, copies: int = 1) -> Tensor:
        """Logits [copies x documents, tokens, vocabulary] with `cache` in the cache's place, disturbing no layer before `first`."""
        skipped = 0 if self.why_not else first
        self.layer_forwards += (len(self.layers) - skipped) * copies * len(self.input_ids)
        with self._skipping(skipped, copies):
            return self._forward(cache, copies)

    def _forward(self, cache: Any, copies: int) -> Tensor:
        with torch.inference_mode():
            logits: Tensor = self.model(self.input_ids.repeat(copies, 1), past_key_values=cache, use_cache=True).logits
            return logits.float()

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Keep what each decoder layer returns."""
        self.outputs = [None] * len(self.layers)

        def keep(place: int) -> Any:
            def hook(module: nn.Module, arguments: Any, output: Any) -> None:
                self.outputs[place] = output

            return hook

        handles = [layer.register_forward_hook(keep(place)) for place, layer in enumerate(self.layers)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    @contextmanager
    def _skipping(self, count: int, copies: int) -> Iterator[None]:
        """The first `count` layers return what they returned in the reference forward, once per copy."""
        if count == 0:
            yield
            return
        known = repeated(self.outputs[count - 1], copies)
        try:
            for layer in self.layers[:count]:
                layer.forward = lambda *arguments, **named: known
            yield
        finally:
            for layer in self.layers[:count]:
                del layer.forward

    def _why_not(self, geometry: Geometry) -> str | None:
        """Try it on the reference itself: from the middle and from the last layer on."""
        if any(layer.reads_from is not None for layer in geometry.layers):
            return "layers of this model read each other's cache, so none can be left out"
        self.why_not = None
        for first in sorted({len(self.layers) // 2, len(self.layers) - 1} - {0}):
            difference = (self.logits(untouched_cache(len(self.owners)), first) - self.reference).abs().max().item()
            if not difference <= SAME_LOGITS:
                return f"replay from layer {first} changes the reference logits by up to {difference:.3g}"
        return None


def repeated(output: Any, copies: int) -> Any:
    """A layer's output (a tensor, or a tuple that begins with one), once per copy along the batch."""
    if copies == 1:
        return output
    if isinstance(output, Tensor):
        return output.repeat(copies, *[1] * (output.dim() - 1))
    return (repeated(output[0], copies), *output[1:])


def refuse_broken(logits: Tensor, outputs: Sequence[Any], first_document: int) -> None:
    """Raise BadInput naming document, position and the first layer after which NaN or infinity is seen."""
    broken = ~torch.isfinite(logits).all(-1)
    if not broken.any():
        return
    document, position = (int(x) for x in broken.nonzero()[0])
    hidden = [output if isinstance(output, Tensor) else output[0] for output in outputs]
    layer = next((place for place, states in enumerate(hidden) if not torch.isfinite(states).all()), None)
    where = f"first seen after decoder layer {layer}" if layer is not None else "first seen in the head"
    raise BadInput(
        f"the model gives NaN or infinite logits in document {first_document + document}, position {position}, {where};"
        " check its weights, or load another dtype (score.dtype)"
    )
