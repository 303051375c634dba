"""Errors that a user can act on. Each message says what is wrong, where, and what to do."""

from __future__ import annotations


class KvassayError(Exception):
    """Base of every error kvassay raises on purpose; `exit_code` is what the command ends with."""

    exit_code = 70


class BadInput(KvassayError):
    """Wrong use or bad input: a plan, model, trace, artifact or server answer that cannot be used."""

    exit_code = 2


class DamagedArtifact(BadInput):
    """A file of a run folder that is torn, altered, or made from another model or plan."""


class EngineError(BadInput):
    """An engine did not start, died, or gave an answer that cannot be used."""
