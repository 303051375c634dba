"""Compare the price of every architecture with what transformers really holds: `make oracle-geometry`."""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kvassay.errors import BadInput
from kvassay.geometry.config import AS_CONFIGURED, read_geometry
from kvassay.geometry.price import native_pairs, with_price
from kvassay.records.geometry import Geometry, Layer
from oracle.held import all_names, hold_apart, prepare
from oracle.policies import Priced, adjustments
from oracle.run import ENCODER_TOKENS

EXPANDED = "a latent is expanded to all heads"
WRITER = re.compile(r"(?P<cache>.*?)layers\.(?P<layer>\d+)\.(?P<method>\w+)$")


@dataclass(frozen=True)
class Comparison:
    """One model. verdict: equal, explained, unexplained, refused or skipped; reason: why, for the last three.

    held, priced: bytes at each number of tokens. policies: names with their bytes, where they say most.
    strangers: "layer: the reader's module, transformers' module" where they differ.
    """

    name: str
    verdict: str
    tokens: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    priced: tuple[int, ...] = ()
    policies: tuple[tuple[str, int], ...] = ()
    reason: str = ""
    strangers: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        return self.verdict in ("equal", "explained")

    @property
    def is_no_shape(self) -> bool:
        """Whether this is a further shape that the class does not take."""
        return "/" in self.name and self.verdict == "skipped"


def compare(run: dict[str, Any]) -> Comparison:
    """The held bytes of one run beside the price of the config.json it would be saved with, as a latent, else expanded."""
    if run["status"] != "ran":
        return Comparison(run["name"], "skipped", reason=run["reason"])
    with tempfile.TemporaryDirectory() as folder:
        path, whole = Path(folder) / "config.json", Path(folder) / "whole.json"
        path.write_text(json.dumps(run["config"]))
        whole.write_text(json.dumps(run["whole"]))
        try:
            latent = _against(run, path, whole, "latent")
            return latent if latent.is_right else min(_against(run, path, whole, "expanded"), latent, key=lambda each: not each.is_right)
        except BadInput as error:
            return Comparison(run["name"], "refused", reason=str(error).removeprefix(folder))


def _against(run: dict[str, Any], path: Path, whole: Path, mla: Any) -> Comparison:
    choice = replace(AS_CONFIGURED, mla=mla, encoder_tokens=ENCODER_TOKENS)
    tokens, held, priced, problems = [], [], [], []
    policies: dict[str, int] = {}
    for each in run["held"]:
        geometry = read_geometry(path, each["tokens"], choice)
        if read_geometry(whole, each["tokens"], choice).layers != geometry.layers:
            problems.append("with its defaults written out the same config has another price")
        found = adjustments(Priced(geometry, each["tokens"], run["whole"], run["language"]))
        tokens.append(each["tokens"])
        held.append(sum(tensor["bytes"] for tensor in each["tensors"]))
        priced.append(geometry.total_bytes)
        problems += _residuals(each, geometry, found)
        sums: Counter[str] = Counter()
        for name, _, count in found:
            sums[name] += count
        policies |= {name: count for name, count in sums.items() if abs(count) >= abs(policies.get(name, 0))}
    if mla == "expanded" and any(layer.kind == "mla" for layer in geometry.layers):
        policies[EXPANDED] = 0
    verdict = "unexplained" if problems else "explained" if policies else "equal"
    strangers = tuple(_strangers(run, geometry.layers))
    reason = "; ".join(dict.fromkeys(problems))
    return Comparison(run["name"], verdict, tuple(tokens), tuple(held), tuple(priced), tuple(policies.items()), reason, strangers)


def _residuals(each: dict[str, Any], geometry: Geometry, found: Iterable[tuple[str, int | None, int]]) -> Iterator[str]:
    """Layers whose held bytes are not their priced bytes and adjustments; the whole, where the cache is not kept by layers."""
    by_layer = any(tensor["layer"] is not None for tensor in each["tensors"])
    residuals: Counter[int | None] = Counter()
    for tensor in each["tensors"]:
        residuals[tensor["layer"]] += tensor["bytes"]
    for layer in geometry.layers:
        alone = geometry.model_copy(update={"layers": (layer,)})
        residuals[layer.index if by_layer else None] -= with_price(alone, native_pairs(alone), each["tokens"]).total_bytes
    for _, index, count in found:
        residuals[index if by_layer else None] -= count
    wrong = {index: count for index, count in residuals.items() if count}
    if wrong:
        index, count = next(iter(wrong.items()))
        where = f"layer {index}" if index is not None else "what belongs to no layer"
        yield f"{each['tokens']} tokens: {len(wrong)} differ, {where} by {count:+,} bytes"


def _strangers(run: dict[str, Any], layers: Iterable[Layer]) -> Iterator[str]:
    """Layers whose module is not the one that put K and V, or the state, into the cache; nothing where no module is known to have."""
    writers = [(match, modules) for path, modules in run["writers"].items() if (match := WRITER.match(path))]
    for layer in layers:
        of_layer = [(match, modules) for match, modules in writers if int(match["layer"]) == layer.index]
        if layer.owner:
            cross = layer.kind == "cross" and any("cross" in match["cache"] for match, _ in of_layer)
            its = [modules for match, modules in of_layer if match["method"] == "update" and cross == ("cross" in match["cache"])]
        else:
            its = [modules for match, modules in of_layer if match["method"].endswith("_state")] if layer.states else []
        if its and not any(layer.module in modules or _is_inside(modules, layer) for modules in its):
            yield f"{layer.index} {layer.kind}: {layer.module}, not {its[0][0]}"


def _is_inside(modules: Iterable[str], layer: Layer) -> bool:
    return not layer.owner and any(each.startswith(f"{layer.module}.") for each in modules)


def main() -> int:
    """Print the table; exit code 1 when a difference is not explained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these, MODEL_TYPE or MODEL_TYPE/SHAPE")
    parser.add_argument("--held", type=Path, help="JSON lines of `python -m oracle.held` in place of running the models")
    arguments = parser.parse_args()
    rows = []
    for run in _runs(arguments.names, arguments.held):
        rows.append(row := compare(run))
        if not row.is_no_shape:
            print(line(row), flush=True)
    print("\n" + "\n".join(summary(rows)))
    return 0 if all(row.verdict != "unexplained" for row in rows) else 1


def _runs(names: list[str], held: Path | None) -> Iterator[dict[str, Any]]:
    if held:
        with held.open() as lines:
            yield from (run for run in map(json.loads, lines) if not names or run["name"] in names)
        return
    prepare()
    yield from map(hold_apart, names or all_names())


def line(row: Comparison) -> str:
    """One line of the table, at the largest number of tokens."""
    if not row.tokens:
        return f"{row.name:36} {row.verdict:12} {row.reason[:200]}"
    why = row.reason or "; ".join(f"{name} ({count:+,})" for name, count in row.policies)
    difference = row.held[-1] - row.priced[-1]
    return f"{row.name:36} {row.verdict:12} {row.tokens[-1]:4} {row.held[-1]:>10,} {row.priced[-1]:>10,} {difference:>+9,}  {why}".rstrip()


def summary(rows: list[Comparison]) -> Iterator[str]:
    """How many of each verdict, how often each policy, and which modules have another name."""
    for what, some in (
        ("model types", [row for row in rows if "/" not in row.name]),
        ("further shapes", [row for row in rows if "/" in row.name]),
    ):
        counts = Counter(row.verdict for row in some)
        ran = sum(count for verdict, count in counts.items() if verdict != "skipped")
        yield f"{what}: {ran} ran: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    yield "shapes that a class does not take: " + " ".join(row.name for row in rows if row.is_no_shape)
    for name, count in Counter(name for row in rows for name, _ in row.policies).most_common():
        yield f"  {count:4} × {name}"
    strange = [row for row in rows if row.strangers and "/" not in row.name]
    yield f"model types with modules of another name: {len(strange)}"
    yield from (f"  {row.name}: layer {row.strangers[0]} ({len(row.strangers)} such)" for row in strange)


if __name__ == "__main__":
    sys.exit(main())
