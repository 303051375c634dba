from kvassay.serving.log_reason import TAIL_BYTES, reason, tail


def test_the_last_exception_line_is_the_reason():
    log = "loading\nTraceback (most recent call last):\n  File 'x'\nKeyError: 'first'\nTraceback:\n  File 'y'\nmodule.OddError: second: thing\nbye\n"
    assert reason(log, 1) == "module.OddError: second: thing (exit code 1)"


def test_an_engines_own_prefixes_and_pointers_are_seen_through():
    log = (
        "(EngineCore_0 pid=12) ERROR 11-30 12:00:00 [core.py:700] ValueError: no memory for the cache\n"
        "(APIServer pid=9) RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    assert reason(log, 1) == "ValueError: no memory for the cache (exit code 1)"


def test_a_taken_port_has_one_name_however_it_is_worded():
    for line in ("OSError: [Errno 98] Address already in use", "error while attempting to bind on address: address already in use"):
        assert reason(f"Traceback\n{line}\nmore\n", 1) == "port in use (exit code 1)"


def test_without_an_exception_the_last_line_speaks():
    assert reason("one\ntwo\n\n", 2) == "two (exit code 2)"
    assert reason("", -9) == "the log is empty (killed by SIGKILL, perhaps out of memory)"
    assert reason("so far", None) == "so far"


def test_a_programs_own_error_line_counts_and_a_survived_exception_does_not_explain_a_signal():
    assert reason("ValueError: survived\nerror: no such folder\nbye\n", 2) == "error: no such folder (exit code 2)"
    assert reason("ValueError: survived\nserving\n", -11) == "serving (killed by SIGSEGV)"


def test_hostile_logs_are_bounded_and_printable(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * (3 * TAIL_BYTES) + b"\nError: \x1b[31m" + b"y" * 5000 + b"\xff\n")
    said = reason(tail(path), 1)
    assert len(said) < 400 and said.isprintable() and len(tail(path)) <= TAIL_BYTES


def test_only_what_this_start_wrote_is_read(tmp_path):
    path = tmp_path / "log"
    path.write_text("ValueError: of an earlier start\nnow\n")
    assert reason(tail(path, len("ValueError: of an earlier start\n")), 0) == "now (exit code 0)"
    assert tail(tmp_path / "missing") == ""
