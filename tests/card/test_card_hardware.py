"""Machine facts from files of a made-up machine, and from this one."""

from __future__ import annotations

import platform
from pathlib import Path

from kvassay.card.hardware import cpu_name, gpu_name, package_versions, this_machine


def test_cpu_name_is_the_first_that_is_named(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Xeon (R) @ 2.1GHz: x\nmodel name\t: other\n")
    assert cpu_name(cpuinfo) == "Xeon (R) @ 2.1GHz: x"
    assert cpu_name(tmp_path / "missing") is None


def test_gpu_from_driver_files(tmp_path: Path) -> None:
    assert gpu_name(tmp_path) is None
    for slot in ("0000:01:00.0", "0000:02:00.0"):
        folder = tmp_path / "gpus" / slot
        folder.mkdir(parents=True)
        (folder / "information").write_text("Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-secret\n")
    assert gpu_name(tmp_path) == "2x NVIDIA H200, driver unknown"
    (tmp_path / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Mon\n")
    assert gpu_name(tmp_path) == "2x NVIDIA H200, driver 570.86.15"


def test_this_machine_names_no_host() -> None:
    machine = this_machine()
    assert machine.cores >= 1
    assert machine.memory_bytes > 2**28
    assert (machine.gpu is None) == (machine.gpu_reason is not None)
    host = platform.node()
    assert not host or len(host) < 4 or host not in machine.model_dump_json()
    assert package_versions()["pydantic"][0].isdigit()
