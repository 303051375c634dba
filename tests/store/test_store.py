"""The run folder: digests, atomic writes, rows after kill -9, refusals by name."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvassay.errors import BadInput, DamagedArtifact
from kvassay.records import ARTIFACTS, Ladder, Record
from kvassay.store import Rows, Run, canonical_json, content_digest, json_digest, parse_json, write_atomic

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def empty_ladder() -> Ladder:
    return Ladder(dtype="float32", positions=0, documents=0, floor_nats=0.0, rungs=())


@given(st.dictionaries(st.text(), json_values))
def test_digest_does_not_depend_on_key_order(value: dict) -> None:
    assert json_digest(value) == json_digest(dict(reversed(list(value.items()))))


@given(json_values)
def test_canonical_json_reads_back(value: object) -> None:
    assert json.loads(canonical_json(value)) == value


def test_canonical_json_by_hand() -> None:
    assert canonical_json({"b": [1, 2.5], "a": "é"}) == '{"a":"é","b":[1,2.5]}'.encode()


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        canonical_json(float("nan"))


def test_content_digest_forgets_when_and_by_whom() -> None:
    assert content_digest({"x": 1, "created_at": "now", "tool_version": "1"}) == content_digest({"x": 1, "created_at": "then"})


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', "NaN", "[Infinity]", "{", "[" * 100_000])
def test_hostile_json_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput, match=r"x\.json: not valid JSON"):
        parse_json(text.encode(), "x.json")


def test_write_atomic_leaves_the_old_file_when_the_disk_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.json"
    write_atomic(target, b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(BadInput, match=r"a\.json: cannot be written \(No space left on device\)"):
        write_atomic(target, b"new")
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_artifact_round_trip_and_header(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.write(empty_ladder(), {"frontier.json": "0" * 64}, "1" * 64)
    assert run.read(Ladder) == empty_ladder()
    assert run.header(Ladder).inputs == {"frontier.json": "0" * 64}
    first = run.digest("ladder.json")
    run.write(empty_ladder(), {"frontier.json": "0" * 64}, "1" * 64)
    assert run.digest("ladder.json") == first


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text[: len(text) // 2], "not valid JSON"),
        (lambda text: text.replace('"positions": 0', '"positions": -1'), "positions"),
        (lambda text: text.replace('"rungs"', '"rings"'), "rungs"),
        (lambda text: text.replace("kvassay.ladder/1", "kvassay.ladder/9"), "schema"),
        (lambda text: "[]", "not a JSON object"),
    ],
)
def test_damage_is_named(tmp_path: Path, damage, says: str) -> None:
    run = Run(tmp_path)
    run.write(empty_ladder(), {}, "1" * 64)
    path = tmp_path / "ladder.json"
    path.write_text(damage(path.read_text()))
    with pytest.raises(DamagedArtifact, match=rf"ladder\.json.*{says}"):
        run.read(Ladder)


def test_every_artifact_has_its_own_name_and_schema() -> None:
    assert len({kind.artifact for kind in ARTIFACTS}) == len({kind.schema_id for kind in ARTIFACTS}) == len(ARTIFACTS)
    assert all(issubclass(kind, Record) and kind.model_json_schema()["properties"] for kind in ARTIFACTS)


def test_rows_survive_a_torn_last_line(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "r.jsonl", "key")
    rows.append({"n": 1})
    rows.append({"n": 2})
    whole = rows.path.read_bytes()
    for cut in range(len(whole) - 8, len(whole)):
        rows.path.write_bytes(whole[:cut])
        assert rows.load() == [{"n": 1}]
    rows.append({"n": 3})
    assert rows.load() == [{"n": 1}, {"n": 3}]


def test_rows_torn_in_the_first_line_start_anew(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "r.jsonl", "key")
    rows.path.write_bytes(b'{"ke')
    assert rows.load() == []
    rows.append({"n": 1})
    assert rows.load() == [{"n": 1}]


def test_rows_of_another_key_or_damaged_are_refused(tmp_path: Path) -> None:
    Rows(tmp_path / "r.jsonl", "key").append({"n": 1})
    with pytest.raises(DamagedArtifact, match="another model, plan or version"):
        Rows(tmp_path / "r.jsonl", "other").load()
    path = tmp_path / "r.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"n":1', b'"n":') + b'{"n":2}\n')
    with pytest.raises(DamagedArtifact, match="line 2"):
        Rows(path, "key").load()


@pytest.mark.parametrize("change", [(b'"n":1', b'"n":2'), (b'"n":1', b'"m":1'), (b'"row_sha256"', b'"row_sha"'), (b'{"n"', b'{"x":[],"n"')])
def test_a_row_that_was_changed_is_refused(tmp_path: Path, change: tuple[bytes, bytes]) -> None:
    rows = Rows(tmp_path / "r.jsonl", "key")
    rows.append({"n": 1})
    rows.path.write_bytes(rows.path.read_bytes().replace(*change))
    with pytest.raises(DamagedArtifact, match="line 2: not as kvassay wrote it"):
        rows.load()


def test_a_row_reads_back_as_json_keeps_it(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "r.jsonl", "key")
    rows.append({"by_id": {2: 0.1, 10: -1e-7}, "pair": ("a", None)})
    assert rows.load() == [{"by_id": {"2": 0.1, "10": -1e-7}, "pair": ["a", None]}]


@pytest.mark.parametrize("place", ["folder", "pipe", "device", "dead link"])
def test_what_is_no_regular_file_is_refused_without_reading_it(tmp_path: Path, place: str) -> None:
    run = Run(tmp_path)
    for name in (Ladder.artifact, "r.jsonl", "logs/stage_seconds.json"):
        path = run.path(name)
        path.parent.mkdir(exist_ok=True)
        if place == "folder":
            path.mkdir()
        elif place == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero" if place == "device" else "nowhere")
    with pytest.raises(DamagedArtifact, match="not a regular file"):
        run.has(Ladder)
    with pytest.raises(DamagedArtifact, match=r"not a regular file|missing"):
        run.read(Ladder)
    if place != "dead link":
        with pytest.raises(DamagedArtifact, match="not a regular file"):
            Rows(run.path("r.jsonl"), "key").load()
    assert run.stage_seconds() == {}


@pytest.mark.parametrize("text", ["[1,", "[]", '{"score": "x"}', '{"score": [1]}', '{"score": -1}'])
def test_an_unreadable_note_of_stage_times_stops_nothing(tmp_path: Path, text: str) -> None:
    run = Run(tmp_path)
    run.path("logs").mkdir()
    run.path("logs", "stage_seconds.json").write_text(text)
    assert run.stage_seconds() == {}


def test_side_file_changes_and_escapes_are_refused(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    write_atomic(run.path("weights.bin"), b"1234")
    listed = empty_ladder().model_copy(update={"side_files": (run.side_file("weights.bin"),)})
    run.check_side_files(listed)
    run.path("weights.bin").write_bytes(b"1235")
    with pytest.raises(DamagedArtifact, match=r"weights\.bin: differs"):
        run.check_side_files(listed)
    (tmp_path / "outside").write_bytes(b"1234")
    escape = listed.side_files[0].model_copy(update={"path": "../outside"})
    with pytest.raises(DamagedArtifact, match="outside the run folder"):
        run.check_side_files(listed.model_copy(update={"side_files": (escape,)}))
