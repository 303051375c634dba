"""The reference server of this project: transformers with one packed cache object per layer."""

from kvassay.capabilities.capability import Capability
from kvassay.formats import FORMATS, NATIVE
from kvassay.version import TOOL_VERSION

TRANSFORMERS_REFERENCE = Capability(
    target="transformers",
    version=TOOL_VERSION,
    formats=(NATIVE, *FORMATS),
    per_layer=True,
    k_not_v=True,
    max_formats=None,
    prefill_reads_cache=True,
    concurrent_sequences=1,
    numerics="reference",
    scope="reference",
    source="kvassay.cache, tested in tests/cache",
    seen="2026-11",
)
