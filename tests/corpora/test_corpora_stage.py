"""The corpora stage: disjoint splits, no stored text, repeatable by seed, and text that may not be used is refused by name."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest

from kvassay.corpora.builtin import stdlib, topics
from kvassay.corpora.overlap import runs, shared_run
from kvassay.corpora.splits import load_split
from kvassay.corpora.tokens import ids_digest
from kvassay.errors import BadInput, DamagedArtifact
from kvassay.plan.schema import Plan, Seeds
from kvassay.records.corpora import Corpora
from kvassay.store import Run
from support.planted import make_planted_model
from support.small_run import SMALL_CORPORA, run_until, small_plan

SPLITS = ("scoring", "choice", "heldout")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_planted_model(tmp_path_factory.mktemp("planted"), layers=1)


@pytest.fixture(scope="module")
def drawn(planted: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Plan, Corpora]:
    plan = small_plan(planted)
    run = run_until(tmp_path_factory.mktemp("run"), plan, "prepare", "corpora")
    return run, plan, run.read(Corpora)


def write_files(folder: Path, texts: list[str]) -> tuple[Path, ...]:
    for number, text in enumerate(texts):
        (folder / f"text{number}.txt").write_text(text)
    return tuple(sorted(folder.glob("text*.txt")))


def words(seed: int, count: int = 400) -> str:
    """Text in which no two seeds share a run of tokens."""
    return " ".join(hashlib.sha256(f"{seed}:{i}".encode()).hexdigest()[:7] for i in range(count))


def user_plan(planted: Path, files: tuple[Path, ...], **changes: object) -> Plan:
    return small_plan(planted, corpora=SMALL_CORPORA.model_copy(update={"builtin": (), "files": files} | changes))


def test_splits_have_the_planned_sizes_and_kinds(drawn: tuple[Run, Plan, Corpora]) -> None:
    run, plan, corpora = drawn
    for name, documents, tokens in (("scoring", 2, 48), ("choice", 3, 32), ("heldout", 3, 32)):
        rows = load_split(run, plan, corpora, name)
        assert [len(row) for row in rows] == [tokens] * documents
        split = corpora.splits[name]
        assert split.total_tokens == documents * tokens
        assert sum(split.mix.values()) == pytest.approx(1)
        assert set(split.mix) == {"topics", "stdlib"}


def test_no_source_and_no_13_tokens_in_two_splits(drawn: tuple[Run, Plan, Corpora]) -> None:
    run, plan, corpora = drawn
    sources = {name: {d.source for d in corpora.splits[name].documents} for name in SPLITS}
    grams = {name: {gram for row in load_split(run, plan, corpora, name) for gram in runs(row, 13)} for name in SPLITS}
    for a, b in (("scoring", "choice"), ("scoring", "heldout"), ("choice", "heldout")):
        assert sources[a].isdisjoint(sources[b])
        assert grams[a].isdisjoint(grams[b])


def test_digests_are_over_little_endian_ids(drawn: tuple[Run, Plan, Corpora]) -> None:
    run, plan, corpora = drawn
    row = load_split(run, plan, corpora, "choice")[0]
    assert corpora.splits["choice"].documents[0].sha256 == hashlib.sha256(struct.pack(f"<{len(row)}I", *row)).hexdigest()
    assert ids_digest([1, 70000]) == hashlib.sha256(b"\x01\0\0\0\x70\x11\x01\0").hexdigest()


def test_no_text_is_stored(planted: Path, tmp_path: Path) -> None:
    texts = [words(seed) for seed in range(3)]
    run = run_until(tmp_path / "run", user_plan(planted, write_files(tmp_path, texts)), "prepare", "corpora")
    stored = run.path("corpora.json").read_text()
    assert not [word for text in texts for word in text.split() if word in stored]
    assert str(tmp_path) not in stored


def test_seed_decides(planted: Path, drawn: tuple[Run, Plan, Corpora], tmp_path: Path) -> None:
    same = run_until(tmp_path / "same", small_plan(planted), "prepare", "corpora").read(Corpora)
    other = run_until(tmp_path / "other", small_plan(planted, seeds=Seeds(corpora=7)), "prepare", "corpora").read(Corpora)
    assert same == drawn[2]
    assert other.splits["heldout"] != same.splits["heldout"]


def test_overlap_between_user_files_is_shown(planted: Path, tmp_path: Path) -> None:
    # Whatever the start, every passage of 48 or 32 tokens holds the shared sentence several times.
    shared = "the very same words stand here again "
    files = write_files(tmp_path, [shared * 40, shared * 41, shared * 42])
    with pytest.raises(BadInput, match="share") as caught:
        run_until(tmp_path / "run", user_plan(planted, files), "prepare", "corpora")
    message = str(caught.value)
    assert "very same words stand here" in message
    assert sum(f"text{number}.txt" in message for number in range(3)) == 2


def test_the_same_user_file_twice(planted: Path, tmp_path: Path) -> None:
    files = write_files(tmp_path, [words(0), words(1), words(0)])
    with pytest.raises(BadInput, match=r"text2\.txt and files:0:text0\.txt have the same content"):
        run_until(tmp_path / "run", user_plan(planted, files), "prepare", "corpora")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"\x00\x01\x02", "binary"),
        (b"caf\xe9 au lait", r"not UTF-8 text \(byte 3\)"),
        (None, "no such file"),
    ],
)
def test_unusable_user_file(planted: Path, tmp_path: Path, data: bytes | None, message: str) -> None:
    files = (*write_files(tmp_path, [words(seed) for seed in range(3)]), tmp_path / "bad.txt")
    if data is not None:
        files[-1].write_bytes(data)
    with pytest.raises(BadInput, match=rf"bad\.txt: {message}"):
        run_until(tmp_path / "run", user_plan(planted, files), "prepare", "corpora")


def test_too_few_and_too_short_user_files(planted: Path, tmp_path: Path) -> None:
    files = write_files(tmp_path, [words(0), words(1)])
    with pytest.raises(BadInput, match="give at least 3"):
        run_until(tmp_path / "run", user_plan(planted, files), "prepare", "corpora")
    files = write_files(tmp_path, [words(seed, 8) for seed in range(3)])
    with pytest.raises(BadInput, match="passages of"):
        run_until(tmp_path / "run2", user_plan(planted, files), "prepare", "corpora")


def test_changed_user_file_is_refused_later(planted: Path, tmp_path: Path) -> None:
    files = write_files(tmp_path, [words(seed) for seed in range(3)])
    plan = user_plan(planted, files)
    run = run_until(tmp_path / "run", plan, "prepare", "corpora")
    corpora = run.read(Corpora)
    before = load_split(run, plan, corpora, "heldout")
    source = corpora.splits["heldout"].documents[0].source.split(":")[2]
    assert load_split(run, plan, corpora, "heldout") == before
    (tmp_path / source).write_text(words(9))
    with pytest.raises(DamagedArtifact, match=f"{source} has changed"):
        load_split(run, plan, corpora, "heldout")


def test_altered_manifest_is_refused(drawn: tuple[Run, Plan, Corpora]) -> None:
    run, plan, corpora = drawn
    document = corpora.splits["choice"].documents[0]
    moved = document.model_copy(update={"start": document.start + 1})
    split = corpora.splits["choice"].model_copy(update={"documents": (moved, *corpora.splits["choice"].documents[1:])})
    altered = corpora.model_copy(update={"splits": {**corpora.splits, "choice": split}})
    with pytest.raises(DamagedArtifact, match="gives other tokens than recorded"):
        load_split(run, plan, altered, "choice")


def test_document_longer_than_the_context(planted: Path, tmp_path: Path) -> None:
    plan = small_plan(
        planted, corpora=SMALL_CORPORA.model_copy(update={"heldout": SMALL_CORPORA.heldout.model_copy(update={"tokens": 5000})})
    )
    with pytest.raises(BadInput, match=r"corpora\.heldout\.tokens: 5000 is beyond"):
        run_until(tmp_path / "run", plan, "prepare", "corpora")


def test_shared_run_is_as_long_as_the_shared_text() -> None:
    assert shared_run(list(range(40)), [99, *range(5, 25), 98], 13) == list(range(5, 25))
    assert shared_run(list(range(12)), list(range(12)), 13) == list(range(12))
    assert shared_run(list(range(12)), list(range(1, 13)), 13) is None


def test_builtin_text_is_plentiful_and_apart() -> None:
    code = stdlib()
    assert len(topics()) > 30
    assert len(code) > 100
    assert not [source.name for source in code if "pydoc_data" in source.name or "/test/" in source.name]
