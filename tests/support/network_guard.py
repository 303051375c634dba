"""Notes every connection that would leave the machine, in each Python process started with `guarded_environment`."""

from __future__ import annotations

import os
from pathlib import Path

OFFLINE_GUARD = """
import os, sys
LOCAL = ("127.", "::1", "localhost", "0.0.0.0")
def guard(event, arguments):
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
    elif event == "socket.getaddrinfo":
        address = (arguments[0] or "",)
    else:
        return
    if isinstance(address, tuple) and not str(address[0] or "127.").startswith(LOCAL):
        with open(os.environ["KVASSAY_TEST_NETWORK_LOG"], "a") as log:
            log.write(f"{event} {address}\\n")
sys.addaudithook(guard)
"""


def network_log(folder: Path) -> Path:
    """Exists once something tried to leave the machine; one line per try."""
    return folder / "network.log"


def guarded_environment(folder: Path) -> dict[str, str]:
    """An environment in which every Python process notes a connection that would leave the machine."""
    guard = folder / "guard"
    guard.mkdir(exist_ok=True)
    (guard / "sitecustomize.py").write_text(OFFLINE_GUARD)
    return os.environ | {"PYTHONPATH": str(guard), "KVASSAY_TEST_NETWORK_LOG": str(network_log(folder))}
