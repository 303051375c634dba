"""Where a plan's model is found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from kvassay.errors import BadInput
from kvassay.models.source import resolve
from kvassay.plan.schema import ModelChoice

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package whose code must not run."""
    root = tmp_path / "site" / "kvassay_weights_for_test"
    root.mkdir(parents=True)
    (root / "__init__.py").write_text("raise RuntimeError('imported')")
    (root / "tiny.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(str(root.parent))
    return root


def test_package_resource_is_found_without_running_the_package(package: Path) -> None:
    place = resolve(ModelChoice(package="kvassay_weights_for_test/tiny.gguf"))
    assert place.path == package / "tiny.gguf"
    assert place.is_gguf
    assert "kvassay_weights_for_test" not in sys.modules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kvassay_weights_for_test/other.gguf", "holds no other.gguf"),
        ("no_such_package_at_all/x.gguf", "is not installed"),
        ("kvassay_weights_for_test", "must be import_name"),
        ("kvassay_weights_for_test/../x.gguf", "must be import_name"),
    ],
)
def test_package_resource_refused(package: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        resolve(ModelChoice(package=text))


def test_missing_folder_and_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such folder"):
        resolve(ModelChoice(folder=tmp_path / "absent"))
    with pytest.raises(BadInput, match="no such file"):
        resolve(ModelChoice(gguf=tmp_path / "absent.gguf"))


def test_hub_offline_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(BadInput, match=f"someone/model at {COMMIT} is not in the local cache"):
        resolve(ModelChoice(hub="someone/model", revision=COMMIT))


@pytest.mark.parametrize("trusted", [False, True])
def test_hub_asks_for_no_pickle_and_for_code_only_when_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trusted: bool) -> None:
    import huggingface_hub

    asked: dict[str, Any] = {}

    def snapshot_download(repository: str, **arguments: Any) -> str:
        asked.update(arguments)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    place = resolve(ModelChoice(hub="someone/model", revision=COMMIT, trust_remote_code=trusted))
    assert (place.text, place.revision, asked["revision"]) == ("someone/model", COMMIT, COMMIT)
    assert not [pattern for pattern in asked["allow_patterns"] if pattern.endswith((".bin", ".pt", ".pth", "*"))]
    assert ("*.py" in asked["allow_patterns"]) is trusted
