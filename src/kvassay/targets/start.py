"""Start one exported arm as a server process."""

from __future__ import annotations

from collections.abc import Mapping

from kvassay.records.export import ArmExport
from kvassay.serving.process import Server
from kvassay.store import Run


def arm_command(arm: ArmExport, kv_memory_bytes: int, max_context_tokens: int | None = None) -> list[str]:
    """The arm's argument list, all but the port filled in."""
    command = [part.replace("{kv_memory_bytes}", str(kv_memory_bytes)) for part in arm.command]
    return command if max_context_tokens is None else [*command, "--max-context-tokens", str(max_context_tokens)]


def start_arm(
    run: Run,
    arm: ArmExport,
    *,
    log_name: str,
    kv_memory_bytes: int,
    max_context_tokens: int | None = None,
    extra_env: Mapping[str, str] | None = None,
) -> Server:
    """Start the arm in its export folder and wait until it is healthy; its log is RUN/logs/<log_name>.log.

    Raises EngineError with the reason taken from the log when it does not start.
    """
    log = run.path("logs", f"{log_name}.log")
    return Server.start(
        arm_command(arm, kv_memory_bytes, max_context_tokens),
        run.path(arm.folder),
        log,
        extra_env={"HF_HUB_OFFLINE": "1", **(extra_env or {})},
    )
