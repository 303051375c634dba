"""Compare the price of every architecture with what transformers really holds: `make oracle-geometry`."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvassay.errors import BadInput
from kvassay.geometry.config import geometry_of
from kvassay.geometry.configuration.language_model import language_model
from kvassay.geometry.layouts.latent import Latent
from kvassay.geometry.layouts.layout import Choice
from kvassay.records.geometry import Geometry
from oracle.held import ENCODER_TOKENS, all_model_types, hold_apart, prepare
from oracle.policies import adjustments


@dataclass(frozen=True)
class Comparison:
    """One model type. verdict: equal, explained, unexplained, refused or skipped; policies: names with their bytes at the longer run."""

    model_type: str
    verdict: str
    held_bytes: tuple[int, ...] = ()
    priced_bytes: tuple[int, ...] = ()
    policies: tuple[tuple[str, int], ...] = ()
    reason: str = ""
    modules_missing: int = 0


def compare(run: dict[str, Any]) -> Comparison:
    """The held bytes of one run beside the price of the same config.json, as a latent and expanded where there is one."""
    model_type = run["model_type"]
    if "skipped" in run:
        return Comparison(model_type, "skipped", reason=run["skipped"])
    attempts = []
    for mla in ("latent", "expanded"):
        try:
            attempts.append(_against(run, mla))
        except BadInput as error:
            return Comparison(model_type, "refused", reason=str(error))
    return min(attempts, key=lambda each: ("equal", "explained", "unexplained").index(each.verdict))


def _against(run: dict[str, Any], mla: Latent) -> Comparison:
    held, priced, residuals = [], [], []
    policies: tuple[tuple[str, int], ...] = ()
    for each in run["held"]:
        geometry = _price(run["config"], each["tokens"], mla)
        policies = tuple((name, count) for name, count in adjustments(geometry, run["config"], each["tokens"]) if count)
        held.append(sum(tensor["bytes"] for tensor in each["tensors"]))
        priced.append(geometry.total_bytes)
        residuals.append(held[-1] - priced[-1] - sum(count for _, count in policies))
    if mla == "expanded" and any(layer.kind == "mla" for layer in geometry.layers):
        policies = (("a latent is expanded to all heads", 0), *policies)
    verdict = "unexplained" if any(residuals) else "explained" if policies else "equal"
    known = set(run["modules"])
    missing = sum(layer.module not in known for layer in geometry.layers if layer.owner)
    return Comparison(
        run["model_type"], verdict, tuple(held), tuple(priced), policies, f"residual {residuals}" if any(residuals) else "", missing
    )


def _price(config: dict[str, Any], tokens: int, mla: Latent) -> Geometry:
    return geometry_of(language_model(config, _name(config)), tokens, Choice(mla=mla, encoder_tokens=ENCODER_TOKENS))


def _name(config: dict[str, Any]) -> str:
    """What a refusal calls the configuration."""
    return f"{config.get('model_type')}/config.json"


def main() -> int:
    """Print the table; exit code 1 when a difference is not explained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model_types", nargs="*", help="only these")
    parser.add_argument("--held", help="JSON lines of `python -m oracle.held` in place of running the models")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    explained: Counter[str] = Counter()
    missing: list[str] = []
    for run in _runs(arguments):
        row = compare(run)
        counts[row.verdict] += 1
        explained.update(name for name, _ in row.policies)
        if row.modules_missing:
            missing.append(row.model_type)
        print(_line(row), flush=True)
    print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    for name, count in explained.most_common():
        print(f"  {count:4} × {name}")
    if missing:
        print(f"modules named otherwise: {len(missing)}: {' '.join(missing)}")
    return 1 if counts["unexplained"] else 0


def _runs(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    if arguments.held:
        with Path(arguments.held).open() as lines:
            yield from (run for run in map(json.loads, lines) if not arguments.model_types or run["model_type"] in arguments.model_types)
        return
    prepare()
    for name in arguments.model_types or all_model_types():
        yield hold_apart(name)


def _line(row: Comparison) -> str:
    held, priced = ("/".join(f"{each:,}" for each in counts) for counts in (row.held_bytes, row.priced_bytes))
    why = row.reason or "; ".join(f"{name} ({count:+,})" for name, count in row.policies)
    return f"{row.model_type:28} {row.verdict:12} {held:>20} {priced:>20}  {' '.join(why.split())[:200]}"


if __name__ == "__main__":
    sys.exit(main())
