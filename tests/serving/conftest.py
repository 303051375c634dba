"""Servers of the fake engine, each in a real process."""

import sys
from pathlib import Path

import pytest

from kvassay.serving.process import Server

FAKE_ENGINE = Path(__file__).parent / "fake_engine.py"


@pytest.fixture(scope="session")
def fake_command():
    return [sys.executable, str(FAKE_ENGINE), "--port", "{port}"]


@pytest.fixture(scope="session")
def server(fake_command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("engine")
    with Server.start(fake_command, folder, folder / "engine.log", ready_timeout_s=30) as running:
        yield running


@pytest.fixture(scope="session")
def slow_server(fake_command, tmp_path_factory):
    """30 ms a token, room for two waiting requests."""
    folder = tmp_path_factory.mktemp("slow_engine")
    command = [*fake_command, "--token-delay-ms", "30", "--max-waiting", "2", "--capacity", "4000"]
    with Server.start(command, folder, folder / "engine.log", ready_timeout_s=30) as running:
        yield running
