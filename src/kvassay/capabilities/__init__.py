"""Engines by target name."""

from kvassay.capabilities.capability import Capability
from kvassay.capabilities.transformers_reference import TRANSFORMERS_REFERENCE

__all__ = ["CAPABILITIES", "Capability"]

CAPABILITIES: dict[str, Capability] = {each.target: each for each in (TRANSFORMERS_REFERENCE,)}
