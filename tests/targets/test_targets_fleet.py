"""Several arms side by side: all started, refusals told, all stopped whatever happens."""

from __future__ import annotations

import pytest

from kvassay.errors import EngineError
from kvassay.store import Run
from kvassay.targets import fleet as module
from kvassay.targets.fleet import kv_memory_for, start_fleet
from support.fake_arms import Counter, arm


class FakeServer:
    def __init__(self, name):
        self.name, self.stopped = name, 0

    def stop(self):
        self.stopped += 1


@pytest.fixture
def started(monkeypatch):
    """Servers by log name; the arm "broken" is refused, and "odd" fails in a way nobody foresaw."""
    servers = {}

    def start_arm(run, exported, *, log_name, kv_memory_bytes, extra_env):
        if log_name.endswith("broken"):
            raise EngineError("out of memory")
        if log_name.endswith("odd"):
            raise RuntimeError("odd")
        servers[log_name] = FakeServer(log_name)
        return servers[log_name]

    monkeypatch.setattr(module, "start_arm", start_arm)
    return servers


def test_all_start_and_all_stop_and_a_refusal_is_told(started, tmp_path):
    progress = Counter()
    arms = {name: arm(name) for name in ("native", "broken", "map")}
    with start_fleet(Run(tmp_path), arms, "probe", 100, progress) as fleet:
        assert set(fleet.servers) == {"native", "map"}
        assert fleet.refused == {"broken": "out of memory"}
        assert not any(server.stopped for server in started.values())
    assert {name: server.stopped for name, server in started.items()} == {"probe-native": 1, "probe-map": 1}
    assert progress.steps == [["starting", 3, 3]]


def test_all_stop_when_the_work_fails(started, tmp_path):
    with (
        pytest.raises(ZeroDivisionError),
        start_fleet(Run(tmp_path), {"native": arm("native"), "map": arm("map")}, "probe", 100, Counter()),
    ):
        raise ZeroDivisionError
    assert [server.stopped for server in started.values()] == [1, 1]


def test_an_unforeseen_failure_leaves_nothing_running(started, tmp_path):
    arms = {"native": arm("native"), "odd": arm("odd")}
    with pytest.raises(RuntimeError, match="odd"), start_fleet(Run(tmp_path), arms, "probe", 100, Counter()):
        pytest.fail("the work must not begin")
    assert [server.stopped for server in started.values()] == [1]


def test_memory_is_enough_for_the_hungriest_arm():
    thin, fat = arm("a"), arm("b").model_copy(update={"bytes_per_token": 23040})
    assert kv_memory_for([thin, fat], 4096) == 4096 * 23040
    assert kv_memory_for([thin], 1) == 16 * 2**20
