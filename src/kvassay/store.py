"""The run folder: atomic JSON artifacts with content digests, and append-only row files.

A stage writes its side files first and its JSON artifact last, so the artifact is the commit mark of the stage.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from kvassay.errors import BadInput, DamagedArtifact
from kvassay.records.base import Header, Record, SideFile
from kvassay.version import TOOL_VERSION

UNDIGESTED_KEYS = frozenset({"created_at", "tool_version"})
MAX_ARTIFACT_BYTES = 256 * 2**20
MAX_ROWS_BYTES = 2**31
ROW_DIGEST = "row_sha256"

R = TypeVar("R", bound=Record)


def canonical_json(value: Any) -> bytes:
    """Canonical bytes of a JSON value: sorted keys, no spaces, UTF-8, NaN refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def json_digest(value: Any) -> str:
    """SHA-256 (hex) of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def content_digest(document: dict[str, Any]) -> str:
    """SHA-256 (hex) of an artifact without the keys that say when and by which build it was written."""
    return json_digest({k: v for k, v in document.items() if k not in UNDIGESTED_KEYS})


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes, read in pieces."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` so that a reader sees the old file or the new one, never a part, even after power loss.

    Raises BadInput when the disk refuses (full, read-only), naming the path; the old file stays as it was.
    """
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
        sync_folder(path.parent)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise BadInput(f"{path}: cannot be written ({error.strerror}); free space or choose another --out") from error


def read_bounded(path: Path, limit_bytes: int) -> bytes:
    """The bytes of a regular file. Never waits on a pipe and never reads a device without end.

    Raises FileNotFoundError, and BadInput for anything that is no regular file, is larger than `limit_bytes`, or cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadInput(f"{path}: not a regular file")
        with path.open("rb") as handle:
            data = handle.read(limit_bytes + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from error
    if len(data) > limit_bytes:
        raise BadInput(f"{path}: larger than {limit_bytes:,} bytes")
    return data


def sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def parse_json(data: bytes, where: str) -> Any:
    """Strict JSON: duplicate keys, NaN and Infinity are refused. Raises BadInput naming `where`."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = dict(pairs)
        if len(keys) != len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise ValueError(f"a key stands twice: {twice[:40]!r}")
        return keys

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(data, object_pairs_hook=unique, parse_constant=refuse)
    except RecursionError as error:
        raise BadInput(f"{where}: not valid JSON (nested too deep)") from error
    except ValueError as error:
        # Python says of an endless number which of its own limits to lift.
        why = "a number of too many digits" if "integer string conversion" in str(error) else error
        raise BadInput(f"{where}: not valid JSON ({why})") from error


class Run:
    """One run folder. Paths inside artifacts are relative to it, so a copied or moved folder stays valid."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, *parts: str) -> Path:
        return self.folder.joinpath(*parts)

    def has(self, kind: type[Record]) -> bool:
        """Whether the artifact is there. Raises DamagedArtifact when something else is in its place: a folder, a device, a dead link."""
        path = self.path(kind.artifact)
        if path.is_file():
            return True
        if os.path.lexists(path):
            raise DamagedArtifact(f"{path}: not a regular file; remove it to make the artifact again")
        return False

    def document(self, name: str) -> dict[str, Any]:
        """The raw JSON object of artifact `name`. Raises DamagedArtifact when missing, oversized or not an object."""
        path = self.path(name)
        try:
            document = parse_json(read_bounded(path, MAX_ARTIFACT_BYTES), str(path))
        except FileNotFoundError:
            raise DamagedArtifact(f"{path}: missing; run the stage that writes it first") from None
        except BadInput as error:
            raise DamagedArtifact(f"{error}; delete the file to make it again") from error
        if not isinstance(document, dict):
            raise DamagedArtifact(f"{path}: not a JSON object; delete the file to make it again")
        return document

    def digest(self, name: str) -> str:
        """Content digest of artifact `name`."""
        return content_digest(self.document(name))

    def header(self, kind: type[Record]) -> Header:
        """The header of an artifact: schema, inputs, settings digest. Raises DamagedArtifact."""
        document = self.document(kind.artifact)
        try:
            return Header.model_validate({k: document.get(k) for k in Header.names()})
        except ValidationError as error:
            raise DamagedArtifact(f"{self.path(kind.artifact)}: {first_problem(error)}; delete the file to make it again") from None

    def read(self, kind: type[R]) -> R:
        """The artifact of `kind`, validated against its schema. Raises DamagedArtifact naming the field."""
        path = self.path(kind.artifact)
        document = self.document(kind.artifact)
        if document.get("schema") != kind.schema_id:
            raise DamagedArtifact(f"{path}: schema is {document.get('schema')!r}, this build reads {kind.schema_id!r}")
        try:
            return kind.model_validate({k: v for k, v in document.items() if k not in Header.names()})
        except ValidationError as error:
            raise DamagedArtifact(f"{path}: {first_problem(error)}; delete the file to make it again") from None

    def write(self, record: Record, inputs: dict[str, str], settings_sha256: str) -> None:
        """Commit a stage: header and body in one file, written atomically, last of all files of the stage."""
        header = Header(
            schema_id=record.schema_id,
            tool_version=TOOL_VERSION,
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            inputs=inputs,
            settings_sha256=settings_sha256,
        )
        document = header.model_dump(mode="json", by_alias=True) | record.model_dump(mode="json", by_alias=True)
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        write_atomic(self.path(record.artifact), text.encode())

    def note_stage_seconds(self, stage: str, seconds: float) -> None:
        """Remember how long a stage took, for the card; not an artifact, and nothing depends on it."""
        write_atomic(self.path("logs", "stage_seconds.json"), canonical_json(self.stage_seconds() | {stage: round(seconds, 2)}))

    def stage_seconds(self) -> dict[str, float]:
        """Seconds per stage, as far as they are known: a note that cannot be read is a note that is not there."""
        path = self.path("logs", "stage_seconds.json")
        try:
            noted = parse_json(read_bounded(path, MAX_ARTIFACT_BYTES), str(path))
        except (FileNotFoundError, BadInput):
            return {}
        known = noted.items() if isinstance(noted, dict) else ()
        return {stage: float(seconds) for stage, seconds in known if type(seconds) in (int, float) and 0 <= seconds < 1e9}

    def side_file(self, name: str) -> SideFile:
        """Path, size and digest of a file of this run, to be listed in the artifact that commits it."""
        path = self.path(name)
        return SideFile(path=name, bytes=path.stat().st_size, sha256=file_digest(path))

    def check_side_files(self, record: Record) -> None:
        """Raise DamagedArtifact when a side file is missing, outside the run, or differs from its listed digest."""
        root = self.folder.resolve()
        for side in record.side_files:
            path = self.path(side.path)
            if not path.resolve().is_relative_to(root):
                raise DamagedArtifact(f"{path}: listed in {record.artifact} but outside the run folder")
            if not path.is_file():
                raise DamagedArtifact(f"{path}: listed in {record.artifact} but missing")
            if path.stat().st_size != side.bytes or file_digest(path) != side.sha256:
                raise DamagedArtifact(f"{path}: differs from what {record.artifact} recorded; delete {record.artifact} to make both again")


class Rows:
    """Append-only JSONL of finished work, so that kill -9 loses at most the row being written.

    The first line names what the rows belong to (`key`); rows of another key are refused, never mixed in. Every row carries the
    digest of its content, so that a reader may trust its keys and figures: a changed row is damage, not a measurement.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self.key = key

    def load(self) -> list[dict[str, Any]]:
        """Finished rows; a torn last line is cut. Raises DamagedArtifact for any other damage or a foreign key."""
        try:
            lines = read_bounded(self.path, MAX_ROWS_BYTES).split(b"\n")
        except FileNotFoundError:
            return []
        except BadInput as error:
            raise DamagedArtifact(f"{error}; delete it to start this stage again") from error
        torn = lines.pop()
        if torn:
            with self.path.open("r+b") as handle:
                handle.truncate(self.path.stat().st_size - len(torn))
                os.fsync(handle.fileno())
        if not lines:
            return []
        if self._row(lines[0], 1) != {"key": self.key}:
            raise DamagedArtifact(f"{self.path}: rows of another model, plan or version; delete the file to start this stage again")
        return [self._whole_row(line, number) for number, line in enumerate(lines[1:], start=2)]

    def append(self, row: dict[str, Any]) -> None:
        """Add one finished row, durable when this returns."""
        new = not self.path.exists() or self.path.stat().st_size == 0
        data = (canonical_json({"key": self.key}) + b"\n" if new else b"") + canonical_json(row | {ROW_DIGEST: row_digest(row)}) + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as handle:
                handle.write(data)
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            raise BadInput(f"{self.path}: cannot be written ({error.strerror}); finished rows are kept") from error

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.load())

    def _whole_row(self, line: bytes, number: int) -> dict[str, Any]:
        row = self._row(line, number)
        if row.pop(ROW_DIGEST, None) != row_digest(row):
            raise DamagedArtifact(f"{self.path}, line {number}: not as kvassay wrote it; delete the file to start this stage again")
        return row

    def _row(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            row = parse_json(line, f"{self.path}, line {number}")
        except BadInput as error:
            raise DamagedArtifact(f"{error}; delete the file to start this stage again") from error
        if not isinstance(row, dict):
            raise DamagedArtifact(f"{self.path}, line {number}: not an object; delete the file to start this stage again")
        return row


def row_digest(row: dict[str, Any]) -> str:
    """Digest of a row as it reads back from its line: JSON has texts for keys and no tuples."""
    return json_digest(json.loads(canonical_json(row)))


def first_problem(error: ValidationError) -> str:
    """One sentence for the first problem pydantic found: where and what."""
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in problem["loc"]) or "document"
    return f"{where}: {problem['msg']}"
