"""A bench of a few questions, in a run folder of its own."""

from __future__ import annotations

import pytest

from kvassay.evaluation.bench import Bench
from kvassay.store import Run
from support.fake_arms import arm, item


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch):
    """Durability is tested with the store; here it would only take time."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture
def bench():
    retrieval = tuple(item("retrieval", n, str(length), length) for length in (6, 9, 12) for n in range(8))
    short = tuple(item("short", n, "short", 3) for n in range(100, 116))
    documents = [[n, n, n + 1, n + 2, n] for n in range(6)]
    served = {name: arm(name) for name in ("native", "uniform", "map", "canary")}
    return Bench(
        served=served,
        compared=("uniform", "map"),
        canary_format="int2_g64",
        tasks={"retrieval": retrieval, "short": short},
        documents=documents,
    )


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)
