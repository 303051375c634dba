"""Warm start of the commands that must answer at once: median of 5, in seconds.

.venv/bin/python benchmarks/startup.py MODEL_FOLDER_OR_GGUF
"""

import statistics
import subprocess
import sys
import time

MODEL = sys.argv[1]

for arguments in (["inspect", MODEL], ["gate", "--help"]):
    seconds = []
    for _ in range(6):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "kvassay", *arguments], check=True, capture_output=True)
        seconds.append(time.perf_counter() - started)
    print(f"kvassay {arguments[0]:8s} median {statistics.median(seconds[1:]):.3f} s, runs {', '.join(f'{s:.3f}' for s in seconds[1:])}")
