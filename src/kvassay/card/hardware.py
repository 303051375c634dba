"""Where a card is made: machine and package versions, read without importing any of them."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kvassay.records.card import Hardware

PACKAGES = (
    "aiohttp",
    "accelerate",
    "fastapi",
    "gguf",
    "huggingface_hub",
    "kvassay",
    "numpy",
    "pydantic",
    "safetensors",
    "scipy",
    "tokenizers",
    "torch",
    "transformers",
    "uvicorn",
)


@dataclass(frozen=True)
class Surroundings:
    """What a card states beside the artifacts of its run. `stage_seconds`: stage -> seconds it took."""

    hardware: Hardware
    packages: dict[str, str]
    stage_seconds: dict[str, float]


def this_machine() -> Hardware:
    """Processor, usable cores, memory and driver of this machine; no host name, no serial numbers."""
    import psutil

    gpu = gpu_name(Path("/proc/driver/nvidia"))
    return Hardware(
        cpu=cpu_name(Path("/proc/cpuinfo")) or platform.processor() or platform.machine(),
        cores=usable_cores(),
        memory_bytes=psutil.virtual_memory().total,
        gpu=gpu,
        gpu_reason=None if gpu else "no GPU driver on this machine: everything ran on the CPU",
        system=f"{platform.system()} {platform.release()} {platform.machine()}, Python {platform.python_version()}",
    )


def usable_cores() -> int:
    """Cores this process may run on, which a container can hold below those of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_name(cpuinfo: Path) -> str | None:
    """The first `model name` of a cpuinfo file; None where the system writes none (other systems, many ARM kernels)."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    names = (line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == "model name")
    return next((name for name in names if name), None)


def gpu_name(driver: Path) -> str | None:
    """Model and driver from an NVIDIA driver's files, "2x NVIDIA H200, driver 570.86"; None without a driver."""
    models = []
    for information in sorted(driver.glob("gpus/*/information")):
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("Model:"):
                models.append(line.partition(":")[2].strip())
    if not models:
        return None
    name = models[0] if len(set(models)) == 1 else ", ".join(sorted(set(models)))
    return f"{len(models)}x {name}, driver {driver_version(driver)}"


def driver_version(driver: Path) -> str:
    try:
        words = (driver / "version").read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return "unknown"
    return next((word for word in words if word[0].isdigit() and "." in word), "unknown")


def package_versions() -> dict[str, str]:
    """Versions of what the figures depend on, as installed where the card is made."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions
