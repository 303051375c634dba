"""Memory figures of one Linux process, read from /proc (see proc_pid_smaps(5) and proc_pid_status(5))."""

from __future__ import annotations

from pathlib import Path


def pss_bytes(pid: int) -> int | None:
    """Proportional set size; None when the process is gone, not ours to read, or the kernel has no smaps_rollup."""
    return _field(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")


def high_water_bytes(pid: int) -> int:
    """Largest resident set size so far (VmHWM), 0 where unknown."""
    return _field(Path(f"/proc/{pid}/status"), "VmHWM:") or 0


def _field(path: Path, name: str) -> int | None:
    try:
        for line in path.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None
