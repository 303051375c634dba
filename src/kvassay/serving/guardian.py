"""The process between kvassay and an engine: it ends the engine's whole process group when kvassay dies, even by kill -9.

Run as a script by path, with the standard library only: `guardian.py PARENT_PID REPORT_FD ARGV...`. It is the leader of the
group, writes the engine's pid to REPORT_FD, and ends as the engine ended. A kernel parent-death signal would not do: it fires
when the *thread* that started the engine ends, and does not reach the engine's own children.
"""

import os
import select
import signal
import subprocess
import sys
import time

LOOK_EVERY_S = 0.25
GRACE_S = 3.0


def main() -> None:
    parent, report = int(sys.argv[1]), int(sys.argv[2])
    # A signal to the group is meant for the engine; the guardian stays until the engine has ended. A handler that does nothing,
    # because the engine would inherit SIG_IGN.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    try:
        engine = subprocess.Popen(sys.argv[3:], close_fds=True)
    except OSError as error:
        print(f"cannot start {sys.argv[3]}: {error.strerror}", file=sys.stderr)
        sys.exit(127)
    os.write(report, b"%d\n" % engine.pid)
    os.close(report)
    while not _ended_within(engine, LOOK_EVERY_S):
        if os.getppid() != parent:
            os.killpg(0, signal.SIGTERM)
            _ended_within(engine, GRACE_S)
            os.killpg(0, signal.SIGKILL)
    if engine.returncode < 0:
        signal.signal(-engine.returncode, signal.SIG_DFL) if -engine.returncode != signal.SIGKILL else None
        os.kill(os.getpid(), -engine.returncode)
    sys.exit(engine.returncode)


def _ended_within(engine: "subprocess.Popen[bytes]", seconds: float) -> bool:
    if not hasattr(os, "pidfd_open"):
        try:
            engine.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
    deadline = time.monotonic() + seconds
    handle = os.pidfd_open(engine.pid)
    try:
        while engine.poll() is None and (left := deadline - time.monotonic()) > 0:
            select.select([handle], [], [], left)
    finally:
        os.close(handle)
    return engine.poll() is not None


if __name__ == "__main__":
    main()
