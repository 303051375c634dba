"""Writes map-17-fp8-keys.json and map-26-fp8-keys.json beside this file: python examples/qwen3-8b/make_maps.py [FOLDER]

V is NVFP4 in every layer. K is FP8 in 17 or 26 of the 36 layers and NVFP4 in the others. Which layers those are does not change
a byte; they are spread evenly here, because the choice itself takes a measurement.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kvassay.geometry.config import read_geometry
from kvassay.records.frontier import Pair
from kvassay.solving.kv_map import build_kv_map

HERE = Path(__file__).parent
# There are no weights here, and no run: digests that no model and no geometry.json has, so that no run takes these maps for its own.
NOTHING = "0" * 64
PROVENANCE = {
    "chosen_from": "illustrative: counts of FP8 and NVFP4 layers from a published study, positions spread evenly, nothing measured",
}


def pairs(layers: int, fp8_keys: int) -> list[Pair]:
    """`layers` pairs, FP8 keys in `fp8_keys` of them at even distances."""
    fp8 = [(at + 1) * fp8_keys // layers > at * fp8_keys // layers for at in range(layers)]
    return [Pair(k="fp8_e4m3" if each else "nvfp4", v="nvfp4") for each in fp8]


def main(folder: Path) -> None:
    geometry = read_geometry(HERE / "config.json")
    for fp8_keys in (17, 26):
        kv_map = build_kv_map(geometry, NOTHING, NOTHING, "illustrative", pairs(len(geometry.owners), fp8_keys))
        document = {"schema": "kvassay.map/1", **kv_map.model_dump(mode="json"), "provenance": PROVENANCE}
        (folder / f"map-{fp8_keys}-fp8-keys.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
