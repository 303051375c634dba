"""Text that every Python brings along: documentation topics (prose) and standard-library sources (code)."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from kvassay.corpora.source_text import SourceText
from kvassay.errors import BadInput

# Shorter sources give no choice of passage; longer ones (generated tables) cost tokenizing time.
MIN_CHARACTERS = 2_000
MAX_CHARACTERS = 200_000

# Not text that people wrote for readers: tests, tables, other packages, and pydoc_data, which is "topics" again.
SKIPPED_FOLDERS = frozenset(
    {"test", "tests", "idle_test", "site-packages", "dist-packages", "encodings", "pydoc_data", "__pycache__", "turtledemo"}
)


def topics() -> list[SourceText]:
    """CPython's documentation topics, each a source of its own."""
    import pydoc_data.topics

    return [
        SourceText(f"topics:{name}", "topics", text)
        for name, text in sorted(pydoc_data.topics.topics.items())
        if MIN_CHARACTERS <= len(text) <= MAX_CHARACTERS
    ]


def stdlib() -> list[SourceText]:
    """Standard-library modules, one source per file. Raises BadInput when this Python keeps no sources on disk."""
    root = Path(sysconfig.get_paths()["stdlib"])
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if SKIPPED_FOLDERS.intersection(parts[:-1]) or not MIN_CHARACTERS <= path.stat().st_size <= MAX_CHARACTERS:
            continue
        try:
            found.append(SourceText(f"stdlib:{'/'.join(parts)}", "stdlib", path.read_text("utf-8")))
        except UnicodeDecodeError:
            continue
    if not found:
        raise BadInput(f"{root}: this Python has no standard-library sources on disk; leave stdlib out of corpora.builtin")
    return found


BUILTIN = {"topics": topics, "stdlib": stdlib}
