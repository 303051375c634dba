"""One engine in a process group of its own: started, waited for, and always stopped."""

from __future__ import annotations

import atexit
import contextlib
import http.client
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from kvassay.errors import BadInput, EngineError
from kvassay.serving import guardian
from kvassay.serving.log_reason import PORT_IN_USE, reason, tail

PORT_ATTEMPTS = 3
GONE_WITHIN_S = 5.0
HOST = "127.0.0.1"
_LIVE: set[Server] = set()


class Server:
    """A running engine and a context manager that stops it. Also stopped at interpreter exit, and when this process is killed.

    pid is the engine's own (not its guardian's). ready_s: seconds from the start to the first good /health.
    """

    def __init__(self, process: subprocess.Popen[bytes], pid: int, port: int, log: Path, log_start: int) -> None:
        self.url = f"http://{HOST}:{port}"
        self.pid, self.port, self.log = pid, port, log
        self.ready_s = 0.0
        self._process, self._log_start = process, log_start
        self._owner = os.getpid()
        self._engine = _known(pid)
        _LIVE.add(self)

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        cwd: Path,
        log: Path,
        ready_timeout_s: float = 120,
        extra_env: Mapping[str, str] | None = None,
        health_path: str = "/health",
    ) -> Server:
        """Start `command` (argv; "{port}" in any argument is filled in; a first "python" is this interpreter) and wait for /health.

        Output is appended to `log`. Another port is tried when somebody takes the chosen one in the meantime.
        Raises EngineError with the reason from the log when the engine ends or does not answer in time; nothing is left running.
        """
        if not command or not any("{port}" in part for part in command):
            raise BadInput(f"engine command {list(command)}: names no {{port}}; add one, the engine is started on a free port")
        for attempt in range(1, PORT_ATTEMPTS + 1):
            server = _spawn(cls, command, cwd, log, extra_env or {})
            try:
                server._wait_ready(ready_timeout_s, health_path)
            except EngineError as error:
                server.kill()
                if PORT_IN_USE not in str(error) or attempt == PORT_ATTEMPTS:
                    raise
            except BaseException:
                server.kill()
                raise
            else:
                return server
        raise AssertionError("unreachable")

    def is_alive(self) -> bool:
        return self.exit_code() is None

    def exit_code(self) -> int | None:
        """None while it runs; negative for a signal. Leaves the zombie in place, so that its group's id cannot be reused meanwhile."""
        if self._process.returncode is not None:
            return self._process.returncode
        ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def exit_reason(self) -> str:
        """Why it ended (or, while it runs, the last it said), from the log."""
        return reason(tail(self.log, self._log_start), self.exit_code())

    def stop(self, timeout_s: float = 10) -> int | None:
        """SIGTERM to the group, SIGKILL after `timeout_s`. The engine's exit code, negative for a signal; fine to call twice."""
        family = self._family()
        try:
            if self.is_alive():
                self._signal(signal.SIGTERM)
                deadline_s = time.monotonic() + timeout_s
                while self.is_alive() and time.monotonic() < deadline_s:
                    time.sleep(0.02)
        finally:
            self._finish(family)
        return self._process.returncode

    def kill(self) -> int | None:
        """SIGKILL to the group at once."""
        self._finish(self._family())
        return self._process.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _wait_ready(self, timeout_s: float, health_path: str) -> None:
        started_s = time.monotonic()
        while True:
            if not self.is_alive():
                raise EngineError(f"the engine ended before it was ready: {self.exit_reason()}; its log is {self.log}")
            if _healthy(self.port, health_path) and self._listens():
                self.ready_s = time.monotonic() - started_s
                return
            if time.monotonic() - started_s > timeout_s:
                raise EngineError(
                    f"the engine did not answer {health_path} within {timeout_s:g} s: {self.exit_reason()}; its log is {self.log}"
                )
            time.sleep(0.05)

    def _listens(self) -> bool:
        """Whether it is this engine that answers, and not somebody who took the port meanwhile."""
        for process in self._family():
            try:
                mine = process.net_connections("tcp")
            except psutil.NoSuchProcess:
                continue
            except psutil.AccessDenied:
                return True
            if any(one.status == psutil.CONN_LISTEN and one.laddr.port == self.port for one in mine):
                return True
        return False

    def _family(self) -> list[psutil.Process]:
        roots = [root for root in (_known(self._process.pid) if self.is_alive() else None, self._engine) if root is not None]
        family = list(roots)
        for root in roots:
            with contextlib.suppress(psutil.Error):
                family += root.children(recursive=True)
        return family

    def _signal(self, number: int) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _finish(self, family: list[psutil.Process]) -> None:
        """Kill what is left of the group, and family members that left the group; psutil knows a reused pid from the old one."""
        self._signal(signal.SIGKILL)
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._process.wait()
        deadline_s = time.monotonic() + GONE_WITHIN_S
        while any(_occupies(process) for process in family) and time.monotonic() < deadline_s:
            time.sleep(0.01)
        _LIVE.discard(self)


def _spawn(kind: type[Server], command: Sequence[str], cwd: Path, log: Path, extra_env: Mapping[str, str]) -> Server:
    port = free_port()
    argv = [part.replace("{port}", str(port)) for part in command]
    if argv[0] == "python":
        argv[0] = sys.executable
    read_end, write_end = os.pipe()
    guard = [sys.executable, "-I", "-S", str(guardian.__file__), str(os.getpid()), str(write_end)]
    env = {**os.environ, "PYTHONUNBUFFERED": "1", **extra_env}
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            log_start = output.tell()
            process = subprocess.Popen(
                [*guard, *argv],
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(write_end,),
            )
    except OSError as error:
        os.close(read_end)
        raise EngineError(f"{error.filename}: the engine cannot be started ({error.strerror})") from error
    finally:
        os.close(write_end)
    try:
        return kind(process, _reported_pid(read_end) or process.pid, port, log, log_start)
    finally:
        os.close(read_end)


def _reported_pid(read_end: int) -> int | None:
    """None when the guardian could not start the engine; its log then says why."""
    ready, _, _ = select.select([read_end], [], [], 10.0)
    said = os.read(read_end, 32) if ready else b""
    return int(said) if said.strip().isdigit() else None


def _known(pid: int) -> psutil.Process | None:
    """psutil remembers when the process began, so a later process of the same pid is never taken for it."""
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


def _occupies(process: psutil.Process) -> bool:
    """Whether it still holds its memory and ports; a zombie holds neither."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def free_port() -> int:
    """A loopback port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _healthy(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=1.0)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@atexit.register
def _stop_all() -> None:
    for server in list(_LIVE):
        # A forked child has a copy of the table, but the engines belong to its parent.
        if server._owner == os.getpid():
            server.stop(timeout_s=3)
