"""From what a user names (folder, config.json, GGUF file, package resource) to the one file that tells the geometry."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from kvassay.errors import BadInput
from kvassay.geometry.configuration.keys import shown

PACKAGE = "package:"


def locate(model: str | Path) -> Path:
    """The config.json or GGUF file of `model`: a folder, a file, or "package:import_name/file.gguf".

    Raises BadInput when nothing is there.
    """
    in_package = isinstance(model, str) and model.startswith(PACKAGE)
    path = package_path(str(model).removeprefix(PACKAGE)) if in_package else Path(model)
    try:
        if path.is_dir():
            return _inside(path)
        if path.is_file():
            return path
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{shown(str(model))}: not a path ({why})") from error
    raise BadInput(f"{path}: no such file or folder; give a model folder, a config.json, a GGUF file or {PACKAGE}NAME/FILE.gguf")


def package_path(resource: str) -> Path:
    """The file or folder "import_name/inner/path" of an installed package, found without importing the package.

    Raises BadInput when the package is not installed, holds nothing there, or the name leads out of it.
    """
    name, _, inner = resource.partition("/")
    if not name.isidentifier() or not inner or ".." in Path(inner).parts or Path(inner).is_absolute() or "\0" in inner:
        raise BadInput(f"{PACKAGE}{resource}: must be import_name/file.gguf")
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise BadInput(f"{PACKAGE}{resource}: package {name} is not installed here; install it, or name a folder or a GGUF file")
    for folder in spec.submodule_search_locations:
        path = Path(folder, inner)
        if path.exists():
            return path
    raise BadInput(f"{PACKAGE}{resource}: package {name} is installed but holds no {inner}")


def _inside(folder: Path) -> Path:
    config = folder / "config.json"
    if config.is_file():
        return config
    # A pipe of that name would be waited on.
    ggufs = sorted(path for path in folder.glob("*.gguf") if path.is_file())
    if len(ggufs) == 1:
        return ggufs[0]
    if ggufs:
        raise BadInput(f"{folder}: holds no config.json and {len(ggufs)} GGUF files; name one of them")
    raise BadInput(f"{folder}: holds no config.json and no GGUF file, so it is not a model folder")
