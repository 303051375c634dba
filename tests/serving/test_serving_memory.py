import os
import subprocess
import sys
import time

from kvassay.serving import memory, proc_memory
from kvassay.serving.memory import MemorySampler

MIB = 2**20
GROWS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read(1); x = bytearray(b'x') * (30 << 20); print('grown', flush=True); sys.stdin.read()"], stdin=subprocess.PIPE)
sys.stdin.read(1)
y = bytearray(b"y") * (50 << 20)
child.stdin.write(b"g"); child.stdin.flush()
sys.stdin.read()
"""


def test_growth_of_the_whole_tree_is_seen(monkeypatch):
    with subprocess.Popen([sys.executable, "-c", GROWS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        time.sleep(0.2)
        with MemorySampler(process.pid, hz=50) as sampler:
            process.stdin.write(b"g")
            process.stdin.flush()
            assert process.stdout.readline() == b"grown\n"
            time.sleep(0.1)
        process.stdin.close()
    grown = sampler.peak_bytes - sampler.start_bytes
    assert sampler.measure == "pss" and sampler.samples >= 5
    assert 80 * MIB <= grown <= 90 * MIB
    assert sampler.high_water_bytes >= sampler.peak_bytes


def test_the_rate_is_kept():
    with MemorySampler(os.getpid(), hz=20) as sampler:
        time.sleep(0.52)
    assert 9 <= sampler.samples <= 13


def test_rss_stands_in_when_pss_may_not_be_read(monkeypatch):
    monkeypatch.setattr(memory, "pss_bytes", lambda pid: None)
    with MemorySampler(os.getpid()) as sampler:
        pass
    assert sampler.measure == "rss" and sampler.peak_bytes > 5 * MIB


def test_a_process_that_ended_leaves_what_was_seen():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.3)"]) as process:
        time.sleep(0.1)
        with MemorySampler(process.pid, hz=20) as sampler:
            process.wait()
            time.sleep(0.1)
    assert sampler.peak_bytes > MIB and sampler.measure == "pss" and sampler.samples < 9
    assert proc_memory.pss_bytes(process.pid) is None and proc_memory.high_water_bytes(process.pid) == 0


def test_the_costly_figure_is_read_for_new_peaks_and_once_a_second(monkeypatch):
    read = []
    monkeypatch.setattr(memory, "pss_bytes", lambda pid: read.append(1) or 100 * len(read))
    rss = iter([5, 5, 4, 6, 6, 6])
    monkeypatch.setattr(memory, "_rss_bytes", lambda process: next(rss))
    sampler = MemorySampler(os.getpid())
    monkeypatch.setattr(memory.psutil.Process, "children", lambda self, recursive: [])
    for _ in range(5):
        sampler._sample()
    assert (len(read), sampler.peak_bytes, sampler.samples) == (2, 200, 5)
    sampler._pss_read_s -= memory.PSS_EVERY_S
    sampler._sample()
    assert (len(read), sampler.peak_bytes) == (3, 300)
