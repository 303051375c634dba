"""Where the plan's model lies on this machine. No torch, and no code of the named package runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kvassay.errors import BadInput
from kvassay.geometry.locate import package_path
from kvassay.models.loading import one_line
from kvassay.plan.schema import ModelChoice

# Never *.bin, *.pt or *.pth: a pickle runs code when it is read.
WEIGHT_PATTERNS = ("*.safetensors", "*.safetensors.index.json")
OTHER_PATTERNS = ("*.json", "*.jinja", "*.txt", "*.model", "*.tiktoken")
CODE_PATTERNS = ("*.py",)


@dataclass(frozen=True)
class Place:
    """A model on this machine: `path` is a folder (safetensors) or a GGUF file. `text` names it without machine paths."""

    kind: Literal["folder", "gguf", "package", "hub"]
    path: Path
    text: str
    revision: str | None = None

    @property
    def is_gguf(self) -> bool:
        return self.path.is_file()


def resolve(choice: ModelChoice) -> Place:
    """The place of the plan's model; a hub model is fetched through huggingface_hub's own cache.

    Raises BadInput naming what is missing and what to do.
    """
    if choice.folder:
        return Place("folder", existing_folder(choice.folder), choice.folder.name)
    if choice.gguf:
        return Place("gguf", existing_gguf(choice.gguf), choice.gguf.name)
    if choice.package:
        return Place("package", package_path(choice.package), choice.package)
    if choice.hub and choice.revision:
        return Place("hub", hub_snapshot(choice.hub, choice.revision, choice.trust_remote_code), choice.hub, choice.revision)
    raise BadInput("model: name exactly one of folder, gguf, package, hub (with revision)")


def existing_folder(path: Path) -> Path:
    if not path.is_dir():
        raise BadInput(f"model.folder: {path}: no such folder; correct the path in the plan")
    return path


def existing_gguf(path: Path) -> Path:
    if not path.is_file():
        raise BadInput(f"model.gguf: {path}: no such file; correct the path in the plan")
    return path


def hub_snapshot(repository: str, revision: str, with_code: bool) -> Path:
    """The pinned snapshot in huggingface_hub's cache, fetched when allowed (HF_HUB_OFFLINE is obeyed) and not there yet.

    Only safetensors, JSON and tokenizer files are asked for; Python files only when the plan trusts them.
    """
    from huggingface_hub import snapshot_download

    patterns = [*WEIGHT_PATTERNS, *OTHER_PATTERNS, *(CODE_PATTERNS if with_code else ())]
    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=patterns))
    except Exception as error:  # the client raises many kinds: offline, missing, gated, no disk
        raise BadInput(
            f"model.hub: {repository} at {revision} is not in the local cache and cannot be fetched ({one_line(error)})"
        ) from error
