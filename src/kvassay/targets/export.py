"""Stage `export`: one folder per arm, from which the arm starts without anything else but the weights."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kvassay.errors import BadInput
from kvassay.formats import NATIVE
from kvassay.records.base import SideFile
from kvassay.records.export import ArmExport, Deployment, Export
from kvassay.records.frontier import Pair
from kvassay.records.geometry import Geometry
from kvassay.records.kv_map import FrozenMap, KVMap
from kvassay.records.model import Model
from kvassay.solving.kv_map import build_kv_map
from kvassay.stage import StageInput
from kvassay.store import Run, write_atomic
from kvassay.targets.launch import Launch, read_export

COMMAND = (
    "python",
    "-m",
    "kvassay.targets.reference_server",
    "--export",
    ".",
    "--port",
    "{port}",
    "--kv-memory-bytes",
    "{kv_memory_bytes}",
)
SUPPORTED = "served by kvassay's reference server, one sequence at a time"


def export(stage: StageInput) -> Export:
    """Write every arm and helper, re-open each, and list the files with their digests."""
    run, target = stage.run, stage.plan.target
    model, geometry, frozen = run.read(Model), run.read(Geometry), run.read(FrozenMap)

    def write_uniform(k: str, v: str, folder: str) -> ArmExport:
        return write_arm(run, uniform_map(run, model, geometry, k, v, target), folder, model)

    incumbent, worst = stage.plan.incumbent, worst_format(geometry)
    arms: dict[str, ArmExport | None] = {
        "native": write_uniform(NATIVE, NATIVE, "export/native"),
        "incumbent": write_uniform(incumbent.k, incumbent.v, "export/incumbent") if incumbent else None,
        "uniform": write_arm(run, frozen.uniform, "export/uniform", model) if frozen.uniform else None,
        "map": write_arm(run, frozen.kv_map, "export/map", model),
    }
    reasons = {
        "incumbent": "the plan names none",
        "uniform": frozen.uniform_reason or "no uniform pair was measured at no more bytes than the map",
    }
    reasons = {name: reason for name, reason in reasons.items() if arms[name] is None}
    helpers = {"canary": write_uniform(worst, worst, "export/canary")}
    if frozen.smaller:
        helpers["smaller_map"] = write_arm(run, frozen.smaller, "export/smaller_map", model)
    written = [each for each in (*arms.values(), *helpers.values()) if each]
    return Export(target=target, arms=arms, arms_reason=reasons, helpers=helpers, side_files=side_files(run, written))


def uniform_map(run: Run, model: Model, geometry: Geometry, k: str, v: str, target: str) -> KVMap:
    """The map that gives every owner layer the same pair. Raises BadInput where a format does not fit the head."""
    pairs = [Pair(k=k, v=v)] * len(geometry.owners)
    return build_kv_map(geometry, run.digest(Geometry.artifact), model.weights_sha256, target, pairs)


def worst_format(geometry: Geometry) -> str:
    """The coarsest format that fits every head: what the canary serves."""
    dims = {dim for layer in geometry.owners for dim in (layer.k_dim, layer.v_dim)}
    for group in (128, 64, 32):
        if all(dim % group == 0 for dim in dims):
            return f"int2_g{group}"
    raise BadInput(f"head sizes {sorted(dims)}: no 2-bit group divides them, so no canary can be served on this target")


def write_arm(run: Run, kv_map: KVMap, folder: str, model: Model) -> ArmExport:
    """Write map.json and launch.json of one arm into `folder` (relative to the run), and re-open them."""
    deployment: Deployment = "supported"
    up = "/".join([".."] * len(folder.split("/")))
    launch = Launch(
        model=f"{up}/{model.folder}",
        model_name=model.source.rsplit("/", 1)[-1],
        weights_sha256=model.weights_sha256,
        native_dtype=model.native_dtype,
        trust_remote_code=model.trust_remote_code,
        command=COMMAND,
    )
    for name, value in (("map.json", kv_map), ("launch.json", launch)):
        text = json.dumps(value.model_dump(mode="json"), indent=2) + "\n"
        write_atomic(run.path(folder, name), text.encode())
    written_map, written_launch = read_export(run.path(folder))
    if (written_map, written_launch) != (kv_map, launch):
        raise BadInput(f"{run.path(folder)}: what was read back differs from what was written; check the disk")
    return ArmExport(
        deployment=deployment,
        reasons=(SUPPORTED,),
        folder=folder,
        command=COMMAND,
        map_digest=kv_map.digest,
        bits=kv_map.bits,
        bytes_per_token=kv_map.bytes_per_token,
    )


def side_files(run: Run, arms: Sequence[ArmExport]) -> tuple[SideFile, ...]:
    """Every file that the arms are started from."""
    return tuple(run.side_file(f"{arm.folder}/{name}") for arm in arms for name in ("map.json", "launch.json"))
