"""Check `wrong_restart`: the negative controls. A restart with something else than what was frozen must be noticed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from kvassay.errors import EngineError
from kvassay.records.kv_map import KVMap
from kvassay.records.roadtest import Check
from kvassay.roadtest.bench import Bench
from kvassay.roadtest.fresh import fresh_run
from kvassay.roadtest.identity import differences, state_problems
from kvassay.roadtest.trial import try_requests
from kvassay.serving.compare_state import compare_state
from kvassay.store import write_atomic
from kvassay.targets.launch import read_export


def wrong_restart(bench: Bench) -> Check:
    """Two controls: a layer moved under the recorded digest, and another arm started in the map's place.

    The second needs no further start: the state that another arm's own server told in its replay is judged by the comparison that
    judges a restart.
    """
    run, arm = bench.stage.run, bench.arms["map"]
    exported = read_export(run.path(arm.folder))[0]
    before = bench.ledger.of("state", "map")[-1]["state"]
    unlike = [name for name, each in bench.arms.items() if each.map_digest != arm.map_digest]
    others = {name: bench.ledger.of("state", name)[-1]["state"] for name in unlike}
    with fresh_run(run, arm, bench.model, "wrong-restart") as fresh:
        path = fresh.path(arm.folder, "map.json")
        document = json.loads(path.read_bytes())
        moved = move_layer(document["layers"])
        write_atomic(path, (json.dumps(document | {"layers": moved}, indent=2) + "\n").encode())

        def start() -> Mapping[str, Any]:
            return try_requests(bench, fresh, arm, "roadtest-wrong-restart", bench.kv_memory_bytes, []).state

        return judge_wrong_restart(exported, before, start, others)


def judge_wrong_restart(
    exported: KVMap, before: Mapping[str, Any], start_moved: Callable[[], Mapping[str, Any]], others: Mapping[str, Mapping[str, Any]]
) -> Check:
    """`start_moved` starts the export with the moved layer and gives its state; it raises EngineError when the server refuses."""
    moved_found, moved_says = detect_moved(exported, before, start_moved)
    unseen = [name for name, state in others.items() if not differences(before, state) or not compare_state(exported, state)]
    evidence: dict[str, str | int | float | bool | None] = {
        "moved_layer_detected": moved_found,
        "moved_layer": moved_says,
        "other_arms_tried": ", ".join(others),
        "other_arms_detected": len(others) - len(unseen),
    }
    if not moved_found:
        return Check(verdict="failed", reason=f"a layer moved under the recorded digest was not detected: {moved_says}", evidence=evidence)
    if unseen:
        return Check(verdict="failed", reason=f"{', '.join(unseen)} served in place of the map was not detected", evidence=evidence)
    if not others:
        return Check(
            verdict="not_run", reason="no other arm was measured, so another map in its place could not be tried", evidence=evidence
        )
    reason = f"a moved layer and {len(others)} other arms in place of the map were all detected"
    return Check(verdict="passed", reason=reason, evidence=evidence)


def detect_moved(exported: KVMap, before: Mapping[str, Any], start_moved: Callable[[], Mapping[str, Any]]) -> tuple[bool, str]:
    """Whether the moved layer was noticed, and how: by a refusal that names the digest, or by the comparison of states."""
    try:
        state = start_moved()
    except EngineError as error:
        named = "digest" in str(error).lower()
        return named, f"refused to start: {error}" if named else f"did not start, but not because of the map's digest: {error}"
    found = state_problems(exported, before, state)
    if not found:
        return False, "it started and told the same state as the right map"
    return True, f"started, and the comparison of states shows {found[0]}"


def move_layer(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same layers with the formats of two differing ones exchanged; where all are equal, the first gets another K format."""
    moved = [dict(layer) for layer in layers]
    first = moved[0]
    for other in moved[1:]:
        if (first["k"], first["v"]) != (other["k"], other["v"]):
            for tensor in ("k", "v"):
                first[tensor], other[tensor] = other[tensor], first[tensor]
            return moved
    first["k"] = "native" if first["k"] != "native" else "fp8_e4m3"
    return moved
