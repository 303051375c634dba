"""The prepare stage: the plan's model as a safetensors folder inside the run, with its digests."""

from __future__ import annotations

import os
import shutil
from fnmatch import fnmatch
from pathlib import Path

from kvassay.errors import BadInput
from kvassay.models.checks import ModelFacts, check_folder
from kvassay.models.digest import tokenizer_digest, weights_digest
from kvassay.models.gguf import check_gguf, convert
from kvassay.models.source import CODE_PATTERNS, OTHER_PATTERNS, Place, resolve
from kvassay.models.tensor_files import INDEX
from kvassay.records.model import Model
from kvassay.stage import StageInput
from kvassay.store import Run, file_digest, json_digest, sync_folder

FOLDER = "model"
PARTIAL = "model.partial"


def prepare(stage: StageInput) -> Model:
    """RUN/model/ and its record. The folder appears whole or not at all; a killed attempt leaves only `model.partial`.

    Raises BadInput for a model that is missing, torn, pickled, or whose parts do not match, and for a full disk.
    """
    run, choice = stage.run, stage.plan.model
    place = resolve(choice)
    partial = run.path(PARTIAL)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        with stage.progress.step(f"preparing {place.text}", 5) as step:
            if place.is_gguf:
                check_gguf(place.path)
                convert(place.path, partial, step.advance)
                source_sha256 = file_digest(place.path)
            else:
                source_sha256 = take_folder(place, partial, choice.trust_remote_code)
                make_fast_tokenizer(place.path, partial, choice.trust_remote_code)
                step.advance(3)
            facts = check_folder(partial)
            step.advance()
            put_in_place(partial, run.path(FOLDER))
            record = model_record(run, place, facts, source_sha256, choice.trust_remote_code)
            step.advance()
    except OSError as error:
        raise BadInput(f"{partial}: cannot be written ({error.strerror or error}); free space or choose another --out") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return record


def take_folder(place: Place, partial: Path, with_code: bool) -> str:
    """Link (or copy, across file systems) the model's own files into `partial`: weights, JSON, tokenizer; code only when trusted.

    Returns the digest of what was taken, over sorted (file name, file digest).
    """
    facts = check_folder(place.path)
    patterns = (*OTHER_PATTERNS, *(CODE_PATTERNS if with_code else ()))
    others = [path for path in sorted(place.path.iterdir()) if path.is_file() and any(fnmatch(path.name, pattern) for pattern in patterns)]
    for path in (*facts.weight_files, *(path for path in others if not path.name.endswith(".index.json") or path.name == INDEX)):
        whole = path.resolve()
        try:
            os.link(whole, partial / path.name)
        except OSError:
            shutil.copyfile(whole, partial / path.name)
    return json_digest(sorted([path.name, file_digest(path)] for path in partial.iterdir()))


def make_fast_tokenizer(source: Path, partial: Path, trusted: bool) -> None:
    """Write tokenizer.json when the model has only the files of a slow tokenizer. Nothing linked from the source is written to."""
    target = partial / "tokenizer.json"
    if target.exists():
        return
    from kvassay.models.loading import load_tokenizer

    backend = getattr(load_tokenizer(source, trusted), "backend_tokenizer", None)
    if backend is None:
        raise BadInput(f"{source}: its tokenizer cannot be written as tokenizer.json; save the model with a fast tokenizer first")
    backend.save(str(target))


def put_in_place(partial: Path, folder: Path) -> None:
    """Make every file durable, then let the folder appear under its name at once."""
    for path in sorted(partial.iterdir()):
        with path.open("rb") as handle:
            os.fsync(handle.fileno())
    sync_folder(partial)
    # Without model.json beside it, an older folder is what a killed attempt left.
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)
    sync_folder(folder.parent)


def model_record(run: Run, place: Place, facts: ModelFacts, source_sha256: str, trusted: bool) -> Model:
    """The record of what lies in RUN/model/."""
    sides = tuple(run.side_file(f"{FOLDER}/{name}") for name in sorted(path.name for path in run.path(FOLDER).iterdir()))
    return Model(
        source=place.text,
        source_kind=place.kind,
        revision=place.revision,
        source_sha256=source_sha256,
        weights_sha256=weights_digest(run.path(FOLDER)),
        tokenizer_sha256=tokenizer_digest(run.path(FOLDER)),
        folder=FOLDER,
        model_type=facts.model_type,
        native_dtype=facts.native_dtype,
        vocab_size=facts.vocab_size,
        weights_bytes=facts.weights_bytes,
        max_position_embeddings=facts.max_position_embeddings,
        trust_remote_code=trusted,
        side_files=sides,
    )
