"""From what a user names (folder, config.json, GGUF file, package resource) to the one file that tells the geometry."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from kvassay.errors import BadInput

PACKAGE = "package:"


def locate(model: str | Path) -> Path:
    """The config.json or GGUF file of `model`: a folder, a file, or "package:import_name/file.gguf".

    Raises BadInput when nothing is there.
    """
    if isinstance(model, str) and model.startswith(PACKAGE):
        return package_file(model.removeprefix(PACKAGE))
    path = Path(model)
    try:
        if path.is_dir():
            return _inside(path)
        if path.is_file():
            return path
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(model)[:200]!r}: not a path ({error})") from error
    raise BadInput(f"{path}: no such file or folder; give a model folder, a config.json, a GGUF file or {PACKAGE}NAME/FILE.gguf")


def package_file(resource: str) -> Path:
    """The file "import_name/file" inside an installed package, found without importing the package.

    Raises BadInput when the package is not installed, the file is missing, or the name leads out of the package.
    """
    name, _, inside = resource.partition("/")
    parts = Path(inside).parts
    if not name.isidentifier() or not parts or ".." in parts or Path(inside).is_absolute():
        raise BadInput(f"package {resource!r}: must be import_name/file.gguf")
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise BadInput(f"package {name}: not installed here; install it, or name a folder or a GGUF file")
    for folder in spec.submodule_search_locations:
        path = Path(folder, *parts)
        if path.is_file():
            return path
    raise BadInput(f"package {name}: holds no file {inside}")


def _inside(folder: Path) -> Path:
    config = folder / "config.json"
    if config.is_file():
        return config
    ggufs = sorted(folder.glob("*.gguf"))
    if len(ggufs) == 1:
        return ggufs[0]
    if ggufs:
        raise BadInput(f"{folder}: holds no config.json and {len(ggufs)} GGUF files; name one of them")
    raise BadInput(f"{folder}: holds no config.json and no GGUF file, so it is not a model folder")
