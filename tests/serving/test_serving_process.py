"""Starting, watching and always stopping an engine process."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import psutil
import pytest

from kvassay.errors import BadInput, EngineError
from kvassay.serving import process
from kvassay.serving.process import Server

LIGHT_ENGINE = """
import http.server, os, signal, socketserver, subprocess, sys, time
class Ok(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
BEFORE
socketserver.TCPServer(("127.0.0.1", int(sys.argv[1])), Ok).serve_forever()
"""
CHILD = """
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-S", "-c", deaf], start_new_session=NEW)
print("child", child.pid, flush=True)
"""

# A shell starts what it runs in the background with SIGINT ignored, and children inherit that: the parent listens to it anyway.
PARENT = """
import signal, sys, time
from pathlib import Path
from kvassay.serving.process import Server
signal.signal(signal.SIGINT, signal.default_int_handler)
server = Server.start(sys.argv[2:], Path(sys.argv[1]), Path(sys.argv[1]) / "engine.log")
print(server.pid, server._process.pid, server.port, flush=True)
END
"""


def until_running(server):
    while json.loads(urllib.request.urlopen(server.url + "/health", timeout=5).read())["requests_running"] == 0:
        time.sleep(0.02)


def gone(pid, seconds=6.0):
    deadline = time.monotonic() + seconds
    while True:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)


def light(before=""):
    return ["python", "-S", "-c", LIGHT_ENGINE.replace("BEFORE", before), "{port}"]


def start(command, folder, **options):
    return Server.start(command, folder, folder / "logs" / "engine.log", **{"ready_timeout_s": 20} | options)


def test_start_serves_on_loopback_and_stop_is_graceful(fake_command, tmp_path):
    server = start(fake_command, tmp_path)
    assert server.is_alive() and server.exit_code() is None and 0 < server.ready_s < 20
    engine = psutil.Process(server.pid)
    assert "fake_engine.py" in engine.cmdline()[1] and os.getpgid(server.pid) != os.getpgid(0)
    listening = [one.laddr for one in engine.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    assert [(address.ip, address.port) for address in listening] == [("127.0.0.1", server.port)]
    assert server.stop() == 0 and not server.is_alive() and gone(server.pid, 0)
    assert server.stop() == 0 and server.kill() == 0


def test_a_first_python_is_this_interpreter_and_the_environment_joins(tmp_path):
    code = "import os, sys; raise ValueError(sys.executable + os.environ['EXTRA_WORD'])"
    with pytest.raises(EngineError, match=sys.executable + "there"):
        start(["python", "-c", code, "{port}"], tmp_path, extra_env={"EXTRA_WORD": "there"})


@pytest.mark.parametrize(
    ("fail", "reason"),
    [("value_error", r"ValueError: the planted reason \(exit code 1\)"), ("kill", "killed by SIGKILL, perhaps out of memory")],
)
def test_an_early_end_is_noticed_at_once_with_its_reason(fake_command, tmp_path, fail, reason):
    started = time.monotonic()
    with pytest.raises(EngineError, match=reason):
        start([*fake_command, "--fail", fail], tmp_path, ready_timeout_s=60)
    assert time.monotonic() - started < 10


def test_an_engine_that_never_gets_ready_is_ended(tmp_path):
    code = "import os, time; print('pid', os.getpid(), flush=True); time.sleep(60)"
    with pytest.raises(EngineError, match="did not answer /health within 1 s"):
        start(["python", "-c", code, "{port}"], tmp_path, ready_timeout_s=1)
    assert gone(int((tmp_path / "logs" / "engine.log").read_text().split()[1]), 0)


@pytest.mark.parametrize("command", [["no-such-engine-anywhere", "{port}"], ["/dev/null", "{port}"]])
def test_a_command_that_cannot_start_says_so(tmp_path, command):
    with pytest.raises(EngineError, match=f"cannot start {command[0]}"):
        start(command, tmp_path)


def test_commands_without_a_port_and_folders_that_are_not_there_are_bad_input(tmp_path):
    with pytest.raises(BadInput, match="port"):
        start(["python", "-c", "pass"], tmp_path)
    with pytest.raises(EngineError, match="nowhere"):
        start(["python", "{port}"], tmp_path / "nowhere")


def test_another_port_is_tried_when_the_first_is_taken(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = [taken.getsockname()[1], process.free_port()]
        monkeypatch.setattr(process, "free_port", lambda: ports.pop(0))
        with start(light(), tmp_path) as server:
            assert server.port != taken.getsockname()[1] and ports == []


@pytest.mark.parametrize("engine", ["light", "face"])
def test_a_port_that_stays_taken_is_named(fake_command, engine, tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(process, "free_port", lambda: taken.getsockname()[1])
        monkeypatch.setattr(process, "PORT_ATTEMPTS", 2 if engine == "light" else 1)
        with pytest.raises(EngineError, match="port in use"):
            start(light() if engine == "light" else fake_command, tmp_path)


def test_a_stranger_on_the_port_is_not_taken_for_the_engine(server, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "free_port", lambda: server.port)
    with pytest.raises(EngineError, match="did not answer"):
        start(["python", "-c", "import time; time.sleep(30)", "{port}"], tmp_path, ready_timeout_s=1)


@pytest.mark.parametrize("new_session", [False, True])
def test_stop_ends_children_that_ignore_the_signal_or_left_the_group(tmp_path, new_session):
    with start(light(CHILD.replace("NEW", str(new_session))), tmp_path) as server:
        child = int((tmp_path / "logs" / "engine.log").read_text().split()[1])
        assert psutil.pid_exists(child)
    assert gone(server.pid, 0) and gone(child, 1)


def test_an_engine_deaf_to_sigterm_is_killed_in_time(tmp_path):
    server = start(light("signal.signal(signal.SIGTERM, signal.SIG_IGN)"), tmp_path)
    started = time.monotonic()
    assert server.stop(timeout_s=0.5) == -signal.SIGKILL and time.monotonic() - started < 2 and gone(server.pid, 1)


@contextlib.contextmanager
def parent_with_engine(tmp_path, end):
    log = (tmp_path / "parent.log").open("wb")
    arguments = [sys.executable, "-c", PARENT.replace("END", end), str(tmp_path), *light()]
    parent = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        yield parent, [int(word) for word in parent.stdout.readline().split()]
    finally:
        parent.kill()
        parent.wait()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_engine_ends_when_its_parent_is_killed(tmp_path, number):
    with parent_with_engine(tmp_path, "time.sleep(60)") as (parent, (engine, guardian, _)):
        assert psutil.pid_exists(engine)
        parent.send_signal(number)
        parent.wait(5)
        assert gone(engine) and gone(guardian)


def test_the_engine_ends_at_interpreter_exit_but_not_when_only_its_thread_ends(tmp_path):
    end = "print(sys.stdin.readline(), flush=True)"
    in_thread = PARENT.replace("END", end).replace(
        "server = ", "import threading; box = []; t = threading.Thread(target=lambda: box.append("
    )
    in_thread = in_thread.replace('"engine.log")', '"engine.log"))); t.start(); t.join(); server = box[0]; time.sleep(1)')
    arguments = [sys.executable, "-c", in_thread, str(tmp_path), *light()]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        engine, guardian, _ = (int(word) for word in parent.stdout.readline().split())
        assert psutil.Process(engine).status() != psutil.STATUS_ZOMBIE
        parent.communicate("go\n", timeout=10)
        assert parent.returncode == 0 and gone(engine, 1) and gone(guardian, 1)


def test_killing_the_guardian_is_an_end_and_leaves_nothing(tmp_path):
    server = start(light(), tmp_path)
    os.kill(server._process.pid, signal.SIGKILL)
    assert gone(server._process.pid) and not server.is_alive()
    server.stop()
    assert gone(server.pid, 1)


@pytest.mark.parametrize(("prompt", "seconds", "code"), [("[97]", 3, 0), ("[251]", 5, 0)])
def test_sigterm_in_the_middle_of_a_request_ends_with_code_0(fake_command, tmp_path, prompt, seconds, code):
    """The second backend sleeps 20 s in its prefill and hears nothing."""
    with start([*fake_command, "--token-delay-ms", "50", "--capacity", "4000"], tmp_path) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            body = f'{{"prompt": {prompt}, "max_tokens": 3000, "ignore_eos": true, "stream": true}}'
            connection.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            until_running(server)
            started = time.monotonic()
            assert server.stop(timeout_s=15) == code and time.monotonic() - started < seconds
            said = b""
            while piece := connection.recv(65536):
                said += piece
        assert b"server_stopping" in said or prompt == "[251]"


def test_a_short_request_is_finished_before_the_end(fake_command, tmp_path):
    with (
        start([*fake_command, "--token-delay-ms", "100"], tmp_path) as server,
        socket.create_connection(("127.0.0.1", server.port)) as connection,
    ):
        body = '{"prompt": "abc", "max_tokens": 8, "temperature": 0}'
        connection.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        until_running(server)
        assert server.stop() == 0
        said = b""
        while piece := connection.recv(65536):
            said += piece
    assert b'"text":"defghijk"' in said
