"""Start the reference server from an exported folder: `python -m kvassay.targets.reference_server --export DIR --port N …`."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

from kvassay.errors import KvassayError


def main() -> int:
    """Serve until SIGTERM. Returns 2 for bad input, said on stderr in one line."""
    parser = argparse.ArgumentParser(prog="kvassay.targets.reference_server", description=__doc__)
    parser.add_argument("--export", type=Path, required=True, help="folder with map.json and launch.json")
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    parser.add_argument("--kv-memory-bytes", type=int, required=True, help="bytes that the cache may take")
    parser.add_argument("--max-context-tokens", type=int, default=None, help="refuse longer requests")
    options = parser.parse_args()
    try:
        from kvassay.targets.launch import read_export

        # A map that was changed is refused before torch is loaded.
        read_export(options.export)
        # Loading makes a million objects that live as long as the process: collecting among them only delays the start.
        gc.disable()
        from kvassay.serving.serve import serve
        from kvassay.targets.transformers_engine import TransformersEngine

        engine = TransformersEngine(options.export, options.kv_memory_bytes, options.max_context_tokens)
        gc.freeze()
        gc.enable()
        serve(engine, port=options.port)
    except KvassayError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
