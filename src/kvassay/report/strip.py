"""The map as a heat strip: layers in groups, K over V, formats by colour and name, sensitivities below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from kvassay.card.wording import count, ranges, significant
from kvassay.formats import NATIVE, law
from kvassay.records import FrozenMap, Geometry, Scores
from kvassay.records.scores import Score

GROUP_LAYERS = 10
SHADES = 5
COLOURS = 7


@dataclass(frozen=True)
class Cell:
    """One square: short text, style class, and what it says in full."""

    short: str
    class_: str
    full: str


@dataclass(frozen=True)
class Group:
    """Up to GROUP_LAYERS layers that stand side by side; `formats` and `losses` have a row for K and one for V."""

    layers: tuple[int, ...]
    formats: dict[str, tuple[Cell, ...]]
    losses: dict[str, tuple[Cell, ...]]


@dataclass(frozen=True)
class LegendRow:
    cell: Cell
    bits: str
    k_layers: str
    v_layers: str


@dataclass(frozen=True)
class Strip:
    groups: tuple[Group, ...]
    legend: tuple[LegendRow, ...]
    sensitivity: str


def heat_strip(frozen: FrozenMap, geometry: Geometry, scores: Scores) -> Strip:
    """Everything the template needs to draw the map of this run."""
    dims = {layer.index: (layer.k_dim, layer.v_dim) for layer in geometry.owners}
    bits = {
        name: law(name, geometry.native_dtype).bits(dims[frozen.layers[0].index][0])
        for layer in frozen.layers
        for name in (layer.k, layer.v)
    }
    cells = format_cells(bits)
    tested = {tensor: reference_format(scores, tensor, geometry) for tensor in ("k", "v")}
    losses = {(each.layer, each.tensor): each for each in scores.scores if each.format == tested[each.tensor]}
    shade = shading(list(losses.values()))
    groups = []
    for start in range(0, len(frozen.layers), GROUP_LAYERS):
        part = frozen.layers[start : start + GROUP_LAYERS]
        groups.append(
            Group(
                layers=tuple(layer.index for layer in part),
                formats={"K": tuple(cells[layer.k] for layer in part), "V": tuple(cells[layer.v] for layer in part)},
                losses={t.upper(): tuple(shade_cell(losses.get((layer.index, t)), shade) for layer in part) for t in ("k", "v")},
            )
        )
    legend = tuple(
        LegendRow(
            cell=cells[name],
            bits=f"{value:.3g}",
            k_layers=ranges(layer.index for layer in frozen.layers if layer.k == name) or "none",
            v_layers=ranges(layer.index for layer in frozen.layers if layer.v == name) or "none",
        )
        for name, value in sorted(bits.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    return Strip(groups=tuple(groups), legend=legend, sensitivity=sensitivity_text(tested, scores))


def format_cells(bits: dict[str, float]) -> dict[str, Cell]:
    """A colour per format: native is grey, then the warmer the fewer bits; more formats than colours share the last one."""
    short = short_names(list(bits))
    others = sorted((name for name in bits if name != NATIVE), key=lambda name: (-bits[name], name))
    colour = {name: min(COLOURS - 1, 1 + place) for place, name in enumerate(others)} | {NATIVE: 0}
    return {name: Cell(short=short[name], class_=f"f{colour[name]}", full=name) for name in bits}


def short_names(names: Sequence[str]) -> dict[str, str]:
    """At most four characters each: "e4m3", "nv4", "i6", or "4:32" where two groups of the same bits stand side by side."""
    fixed = {"fp8_e4m3": "e4m3", "fp8_e5m2": "e5m2", "nvfp4": "nv4", "mxfp4": "mx4", "int8_token_head": "i8t", NATIVE: "nat"}
    affine = {name: name[3:].split("_g") for name in names if name.startswith("int") and "_g" in name}
    twice = [element for element, _ in affine.values()]
    return {
        name: (f"i{affine[name][0]}" if twice.count(affine[name][0]) == 1 else ":".join(affine[name]))
        if name in affine
        else fixed.get(name, name[:4])
        for name in names
    }


def reference_format(scores: Scores, tensor: str, geometry: Geometry) -> str | None:
    """The format of fewest bits that was scored for both K and V, else for this tensor: every layer is compared by the same one."""
    own = {each.format for each in scores.scores if each.tensor == tensor}
    both = own & {each.format for each in scores.scores if each.tensor != tensor}
    head = geometry.owners[0].k_dim
    candidates = sorted(both or own, key=lambda name: (law(name, geometry.native_dtype).bits(head), name))
    return candidates[0] if candidates else None


def shading(losses: list[Score]) -> tuple[float, float]:
    """Smallest and largest loss above the floor; (1, 1) when there is none."""
    seen = [each.kl_nats for each in losses if not each.at_floor and each.kl_nats > 0]
    return (min(seen), max(seen)) if seen else (1.0, 1.0)


def shade_cell(score: Score | None, shade: tuple[float, float]) -> Cell:
    if score is None:
        return Cell("", "s0", "not scored")
    if score.at_floor or score.kl_nats <= 0:
        return Cell("·", "s0", "at the noise floor")
    low, high = shade
    share = log(score.kl_nats / low) / log(high / low) if high > low else 1.0
    step = 1 + min(SHADES - 1, int(share * SHADES))
    milli = score.kl_nats * 1000
    short = significant(milli, 2) if milli < 100 else f"{milli:,.0f}" if milli < 1e4 else "≫"
    return Cell(short if milli >= 0.01 else "<.01", f"s{step}", f"{significant(score.kl_nats, 3)} nats")


def sensitivity_text(tested: dict[str, str | None], scores: Scores) -> str:
    k, v = tested["k"], tested["v"]
    which = f"{k}" if k == v else f"{k} for K, {v} for V"
    how = (
        f"by the sketch ({count(scores.probes, 'probe')} a document, to second order)"
        if scores.method == "sketch"
        else f"measured; a dot is at the noise floor of {significant(scores.floor_nats * 1000, 2)}"
    )
    return (
        f"Loss when this tensor of this layer alone is {which}: milli-nats per token, {count(scores.documents, 'document')}, "
        f"{count(scores.positions, 'position')}, {scores.dtype}, {how}"
    )
