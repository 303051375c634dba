"""The trace reader: exact on good files, and every bad line named."""

import contextlib
import hashlib
import json
import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvassay.errors import BadInput
from kvassay.workload import Request, SharedBlock, read_trace
from kvassay.workload.kvassay_trace import parse_line
from kvassay.workload.lines import numbered_lines

EXAMPLES = Path(__file__).parents[2] / "examples" / "smollm2"
GOOD = b'{"arrival_s": 1.5, "input_tokens": 300, "output_tokens": 12}'


def write(folder, *lines):
    path = folder / "trace.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def test_a_small_file_by_hand(tmp_path):
    path = write(tmp_path, GOOD, b'{"arrival_s": 2, "input_tokens": 450, "output_tokens": 8, "prefix": "a", "prefix_tokens": 64}')
    trace = read_trace(path, "kvassay")
    assert trace.requests == (Request(1.5, 300, 12), Request(2.0, 450, 8, (SharedBlock("a", 64),)))
    assert trace.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert trace.longest.total_tokens == 458 and trace.bad == () and trace.lines == 2
    assert read_trace(path, "kvassay", limit=1).requests == trace.requests[:1]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "not valid JSON"),
        (b"[]", "not a JSON object"),
        (b"nonsense", "not valid JSON"),
        (b'{"arrival_s": 0, "input_tokens": 3}', "output_tokens missing"),
        (b'{"arrival_s": 0, "input_tokens": 3, "output_tokens": 2, "model": "x"}', "unknown key 'model'"),
        (b'{"arrival_s": 0, "arrival_s": 1, "input_tokens": 3, "output_tokens": 2}', "twice"),
        (b'{"arrival_s": -1, "input_tokens": 3, "output_tokens": 2}', "arrival_s is negative"),
        (b'{"arrival_s": NaN, "input_tokens": 3, "output_tokens": 2}', "NaN is not JSON"),
        (b'{"arrival_s": 1e999, "input_tokens": 3, "output_tokens": 2}', "not finite"),
        (b'{"arrival_s": 1' + b"0" * 400 + b', "input_tokens": 3, "output_tokens": 2}', "out of range"),
        (b'{"arrival_s": "0", "input_tokens": 3, "output_tokens": 2}', "arrival_s is no number"),
        (b'{"arrival_s": true, "input_tokens": 3, "output_tokens": 2}', "arrival_s is no number"),
        (b'{"arrival_s": 0, "input_tokens": 0, "output_tokens": 2}', "input_tokens"),
        (b'{"arrival_s": 0, "input_tokens": 3.0, "output_tokens": 2}', "input_tokens"),
        (b'{"arrival_s": 0, "input_tokens": true, "output_tokens": 2}', "input_tokens"),
        (b'{"arrival_s": 0, "input_tokens": 3, "output_tokens": -2}', "output_tokens"),
        (b'{"arrival_s": 0, "input_tokens": 3, "output_tokens": 99999999999}', "output_tokens"),
        (b'{"arrival_s": 0, "input_tokens": 3, "output_tokens": 1' + b"0" * 5000 + b"}", "not valid JSON"),
        (b'{"arrival_s": 0, "input_tokens": 3, "output_tokens": 2, "prefix": "a"}', "stand together"),
        (b'{"arrival_s": 0, "input_tokens": 3, "output_tokens": 2, "prefix": "", "prefix_tokens": 1}', "prefix is no text"),
        (b'{"arrival_s": 0, "input_tokens": 3, "output_tokens": 2, "prefix": "a", "prefix_tokens": 4}', "more than input_tokens"),
        (b"[" * 100_000, "not valid JSON"),
        (b'\xff\xfe{"arrival_s": 0}', "not valid JSON"),
    ],
)
def test_hostile_lines_are_refused_with_a_reason(line, why):
    with pytest.raises(BadInput, match=why):
        parse_line(line)


def test_one_bad_line_in_a_hundred_is_left_out_and_named(tmp_path):
    trace = read_trace(write(tmp_path, *[GOOD] * 50, b"torn", *[GOOD] * 49))
    assert len(trace.requests) == 99
    assert [(bad.number, "not valid JSON" in bad.why) for bad in trace.bad] == [(51, True)]


def test_more_than_one_percent_is_refused_and_the_lines_are_named(tmp_path):
    with pytest.raises(BadInput, match=r"2 of 100 lines .* line 10: .*; line 20: "):
        read_trace(write(tmp_path, *[GOOD] * 9, b"x", *[GOOD] * 9, b"[]", *[GOOD] * 80))


def test_arrivals_that_go_backwards_are_refused(tmp_path):
    with pytest.raises(BadInput, match=r"line 3: arrives at 1.5 s, before .*2.0 s"):
        read_trace(write(tmp_path, GOOD, GOOD.replace(b"1.5", b"2.0"), GOOD))


def test_files_that_cannot_be_used(tmp_path):
    with pytest.raises(BadInput, match="no such file"):
        read_trace(tmp_path / "absent.jsonl")
    with pytest.raises(BadInput, match="no such file"):
        read_trace(tmp_path)
    with pytest.raises(BadInput, match="holds no request"):
        read_trace(write(tmp_path))
    with pytest.raises(BadInput, match="'csv': unknown; known: kvassay"):
        read_trace(write(tmp_path, GOOD), "csv")


def test_a_line_longer_than_the_bound_is_skipped_whole(tmp_path):
    path = write(tmp_path, GOOD, b"y" * 1000, GOOD)
    assert list(numbered_lines(path, max_line_bytes=100)) == [(1, GOOD), (2, None), (3, GOOD)]
    path.write_bytes(GOOD + b"\r\n" + b"z" * 100)
    assert list(numbered_lines(path, max_line_bytes=100)) == [(1, GOOD), (2, b"z" * 100)]
    path.write_bytes(b"z" * 101)
    assert list(numbered_lines(path, max_line_bytes=100)) == [(1, None)]


@given(st.binary(max_size=400))
def test_any_line_is_a_request_or_bad_input(line):
    with contextlib.suppress(BadInput):
        assert parse_line(line).input_tokens >= 1


@given(st.floats(0, 1e9), st.integers(1, 10**7), st.integers(1, 10**7))
def test_every_good_line_round_trips(arrival_s, input_tokens, output_tokens):
    row = {"arrival_s": arrival_s, "input_tokens": input_tokens, "output_tokens": output_tokens, "prefix": "é\n", "prefix_tokens": 1}
    assert parse_line(json.dumps(row).encode()) == Request(arrival_s, input_tokens, output_tokens, (SharedBlock("é\n", 1),))


def test_shipped_traces_are_what_their_script_makes(tmp_path):
    runpy.run_path(str(EXAMPLES / "make_traces.py"))["main"](tmp_path)
    for name, requests in (("trace.jsonl", 24), ("trace-1200.jsonl", 1200)):
        assert (tmp_path / name).read_bytes() == (EXAMPLES / name).read_bytes()
        trace = read_trace(EXAMPLES / name)
        assert len(trace.requests) == requests and trace.bad == ()
        assert trace.longest.input_tokens > 1000
        assert any(request.shared for request in trace.requests)
    assert {request.output_tokens for request in read_trace(EXAMPLES / "trace-1200.jsonl").requests} == {16}
