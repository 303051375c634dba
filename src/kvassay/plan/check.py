"""What a well-formed plan may still get wrong: the target, files, and the model's own shapes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kvassay.capabilities import CAPABILITIES
from kvassay.capabilities.layouts import why_layout_unserved
from kvassay.errors import BadInput
from kvassay.formats import law
from kvassay.geometry.config import read_geometry
from kvassay.geometry.locate import PACKAGE, package_path
from kvassay.geometry.price import bytes_per_token, native_pairs
from kvassay.plan.budget import check_budget, token_budget
from kvassay.plan.problems import Problem
from kvassay.plan.schema import ModelChoice, Plan
from kvassay.records.geometry import Geometry
from kvassay.workload import read_trace

# Enough lines to see that a trace is one; the road test reads the rest.
LINES_TRIED = 1000
# The road test's servers try themselves with a few dozen tokens before they take requests.
LEAST_SERVED_TOKENS = 64


def target_problems(plan: Plan) -> Iterator[Problem]:
    """Formats that the target does not serve."""
    capability = CAPABILITIES[plan.target]
    for path, name in _named_formats(plan):
        if name not in capability.formats:
            yield Problem(path, f"{name} is not served by target {plan.target}")


def file_problems(plan: Plan) -> Iterator[Problem]:
    """Files and folders that are not there."""
    model = plan.model
    if model.folder and not model.folder.is_dir():
        yield Problem(("model", "folder"), f"{model.folder}: no such folder")
    if model.gguf and not model.gguf.is_file():
        yield Problem(("model", "gguf"), f"{model.gguf}: no such file")
    if model.package:
        try:
            package_path(model.package)
        except BadInput as error:
            yield Problem(("model", "package"), str(error))
    for at, file in enumerate(plan.corpora.files):
        if not file.is_file():
            yield Problem(("corpora", "files", at), f"{file}: no such file")
    try:
        read_trace(plan.workload.trace, plan.workload.format, min(plan.workload.limit or LINES_TRIED, LINES_TRIED))
    except BadInput as error:
        yield Problem(("workload", "trace"), str(error))


def model_problems(plan: Plan, geometry: Geometry | None = None) -> list[Problem]:
    """What the model's config or header forbids; nothing where a hub model is not in the local cache yet."""
    if geometry is None:
        try:
            geometry = geometry_of(plan.model)
        except BadInput as error:
            return [Problem(("model",), str(error))]
    if geometry is None:
        return []
    if why := why_layout_unserved(geometry):
        return [Problem(("model",), why)]
    problems = [*_format_problems(plan, geometry), *_length_problems(plan, geometry), *_memory_problems(plan, geometry)]
    if not problems:
        try:
            check_budget(token_budget(plan.budget, geometry), geometry, plan.formats, CAPABILITIES[plan.target])
        except BadInput as error:
            problems.append(Problem(_budget_path(plan), str(error).removeprefix("budget: ")))
    return problems


def geometry_of(model: ModelChoice) -> Geometry | None:
    """The model's geometry from its config or header, before anything loads; None for a hub model not in the local cache.

    Raises BadInput when the configuration cannot be read.
    """
    place = model_place(model)
    return None if place is None else read_geometry(place)


def model_place(model: ModelChoice) -> str | Path | None:
    """Where the model's configuration lies on this machine, without fetching anything; None when it is not here."""
    if model.package:
        return PACKAGE + model.package
    if model.folder or model.gguf:
        return model.folder or model.gguf
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(model.hub, "config.json", revision=model.revision)
    return found if isinstance(found, str) else None


def _named_formats(plan: Plan) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for tensor in ("k", "v"):
        for at, name in enumerate(getattr(plan.formats, tensor)):
            yield ("formats", tensor, at), name
        if plan.incumbent:
            yield ("incumbent", tensor), getattr(plan.incumbent, tensor)


def _format_problems(plan: Plan, geometry: Geometry) -> Iterator[Problem]:
    dims = {
        "k": sorted({layer.k_dim for layer in geometry.owners}),
        "v": sorted({layer.v_dim for layer in geometry.owners}),
    }
    for path, name in _named_formats(plan):
        for dim in dims[str(path[1])]:
            if why := law(name, geometry.native_dtype).why_illegal(dim):
                yield Problem(path, why)


def _length_problems(plan: Plan, geometry: Geometry) -> Iterator[Problem]:
    longest = geometry.max_position_embeddings
    if longest is None:
        return
    too_long = f"longer than the model's context of {longest:,} tokens"
    for split in ("scoring", "choice", "heldout"):
        if (tokens := getattr(plan.corpora, split).tokens) > longest:
            yield Problem(("corpora", split, "tokens"), f"{tokens:,} is {too_long}")
    for at, tokens in enumerate(plan.tasks.retrieval.lengths if plan.tasks.retrieval else ()):
        if tokens > longest:
            yield Problem(("tasks", "retrieval", "lengths", at), f"{tokens:,} is {too_long}")


def _memory_problems(plan: Plan, geometry: Geometry) -> Iterator[Problem]:
    """A server needs some tokens of room before it serves anything; the road test comes too late to find that out."""
    needed_bytes = LEAST_SERVED_TOKENS * bytes_per_token(geometry, native_pairs(geometry))
    if plan.workload.kv_memory_bytes < needed_bytes:
        yield Problem(
            ("workload", "kv_memory_bytes"),
            f"{plan.workload.kv_memory_bytes:,} bytes do not hold {LEAST_SERVED_TOKENS} tokens in native formats; "
            f"give at least {needed_bytes:,}",
        )


def _budget_path(plan: Plan) -> tuple[str, ...]:
    named = ("bits", "bytes_per_token", "gib", "smallest")
    return ("budget", next(name for name in named if getattr(plan.budget, name) is not None))
