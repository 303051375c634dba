"""The user's own text files. They are read where they are; a run keeps only their names and digests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kvassay.corpora.source_text import SourceText
from kvassay.errors import BadInput

KIND = "files"
MAX_FILE_BYTES = 64 * 2**20


def user_files(paths: Sequence[Path]) -> list[SourceText]:
    """UTF-8 text files in the plan's order, named by place and file name.

    Raises BadInput naming the file when it is missing, empty, too large, or not UTF-8 text, or when one stands twice.
    """
    texts = [SourceText(f"files:{number}:{path.name}", KIND, read_text(path)) for number, path in enumerate(paths)]
    first_with: dict[str, str] = {}
    for text in texts:
        if text.sha256 in first_with:
            raise BadInput(
                f"corpora.files: {text.name} and {first_with[text.sha256]} have the same content; splits would share text, so name it once"
            )
        first_with[text.sha256] = text.name
    return texts


def read_text(path: Path) -> str:
    """The text of one user file. Raises BadInput naming it."""
    try:
        if not path.is_file():
            raise BadInput(f"corpora.files: {path}: no such file; correct the path in the plan")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadInput(f"corpora.files: {path}: larger than {MAX_FILE_BYTES} bytes; give a part of it")
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"corpora.files: {path}: cannot be read ({error.strerror})") from error
    if b"\0" in data:
        raise BadInput(f"corpora.files: {path}: binary, not text; give UTF-8 text files")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"corpora.files: {path}: not UTF-8 text (byte {error.start}); convert it first") from error
    if not text.strip():
        raise BadInput(f"corpora.files: {path}: empty; give a file with text or leave it out")
    return text
