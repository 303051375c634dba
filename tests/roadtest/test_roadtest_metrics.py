"""Rows to figures, against numbers worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvassay.roadtest import metrics
from kvassay.roadtest.asking import Answer
from kvassay.roadtest.rows import MemoryReading, RequestRow, request_row, tpot_ms

MEMORY = MemoryReading(peak_bytes=10, start_bytes=5, samples=2, measure="pss")


def answer(sent_s, first_s, last_s, tokens, times=(), outcome="ok", error=None):
    return Answer(
        outcome, error, 200, "d" * 64 if outcome == "ok" else None, tokens, sent_s, first_s, last_s, (last_s or sent_s) + 0.01, tuple(times)
    )


def row(request, scheduled_s, given_answer, segment=0, start_s=100.0):
    return request_row("map", request, segment, (300, given_answer.output_tokens), given_answer, scheduled_s, start_s, MEMORY, None)


# Sent at 100.25 for a schedule of 100.0; first text at 100.5, last at 101.4: 10 tokens.
ONE = row(0, 100.0, answer(100.25, 100.5, 101.4, 10, [100.5 + 0.1 * step for step in range(10)]))
# Sent on schedule at 101.5, first at 101.6, last at 102.4: 5 tokens in 3 chunks.
TWO = row(1, 101.5, answer(101.5, 101.6, 102.4, 5, [101.6, 101.9, 102.4]))
FAILED = row(2, 102.5, answer(102.5, None, None, 0, outcome="failed", error="HTTP status 500"))
EMPTY = row(3, 102.6, answer(102.6, None, None, 0, outcome="empty", error="the answer has no text"))
ROWS = [ONE, TWO, FAILED, EMPTY]


def test_each_row_by_hand():
    assert (ONE.ttft_ms, ONE.tpot_ms, ONE.e2e_ms) == pytest.approx((250, 100, 1150))
    assert (TWO.ttft_ms, TWO.tpot_ms, TWO.e2e_ms) == pytest.approx((100, 200, 900))
    assert ONE.why_null is None
    assert (FAILED.ttft_ms, FAILED.tpot_ms, FAILED.e2e_ms, FAILED.why_null) == (None, None, None, "HTTP status 500")
    assert ONE.sent_s == 0.25 and ONE.first_s == 0.5


def test_a_row_goes_through_json_unchanged():
    for each in ROWS:
        assert RequestRow.model_validate(each.model_dump(mode="json")) == each


def test_both_clocks_and_the_failures_that_are_no_samples():
    sent, scheduled = metrics.latencies(ROWS, "sent"), metrics.latencies(ROWS, "scheduled")
    assert sent.ttft_ms.n == scheduled.ttft_ms.n == 2
    assert sent.ttft_ms.p50 == pytest.approx((250 + 100) / 2)
    assert scheduled.ttft_ms.p50 == pytest.approx((500 + 100) / 2)
    assert scheduled.e2e_ms.p50 == pytest.approx((1400 + 900) / 2)
    assert sent.tpot_ms.mean == scheduled.tpot_ms.mean == pytest.approx(150)
    assert sent.ttft_ms.p90 == pytest.approx(100 + 0.9 * 150)
    assert sent.ttft_ms.p99 is None and "2 values" in sent.ttft_ms.p99_reason
    assert metrics.counts(ROWS).model_dump() == {"total": 4, "ok": 2, "failed": 1, "empty": 1}


def test_throughput_counts_good_answers_over_the_whole_wall():
    assert metrics.output_tokens(ROWS) == 15
    # First schedule at 0.0, last end of any request at 2.61.
    assert metrics.wall_s(ROWS) == pytest.approx(2.61)
    second = row(4, 500.0, answer(500.0, 500.1, 500.5, 3), segment=1, start_s=500.0)
    assert metrics.wall_s([*ROWS, second]) == pytest.approx(2.61 + 0.51)
    assert metrics.decode_rate_p50(ROWS) == pytest.approx((10 + 5) / 2)
    assert metrics.decode_rate_p50([FAILED]) is None


def test_inter_token_gaps_are_divided_by_the_tokens_they_carry():
    found = metrics.inter_token([TWO])
    # Gaps 300 and 500 ms carry 4 tokens: two a chunk.
    assert found.n == 2 and found.mean == pytest.approx(200) and found.p50 == pytest.approx(200)
    assert metrics.inter_token([ONE]).mean == pytest.approx(100)
    assert metrics.inter_token([FAILED]).mean is None


def test_a_thousand_gaps_of_few_requests_make_no_p99():
    long = row(0, 100.0, answer(100.0, 100.0, 101.2, 1201, [100.0 + 0.001 * step for step in range(1201)]))
    found = metrics.inter_token([long])
    assert found.n == 1200 and found.p99 is None and found.p99_reason.startswith("1 requests")
    assert found.p90 == pytest.approx(1, abs=0.01)


def test_thousand_requests_have_a_p99():
    rows = [row(at, 100.0, answer(100.0, 100.0 + at / 1000, 101.0, 2)) for at in range(1000)]
    assert metrics.latencies(rows, "sent").ttft_ms.p99 == pytest.approx(0.99 * 999)


def test_thirty_replies_three_of_them_empty():
    """InferenceX #357 and others: empty replies counted as good pulled the median to zero."""
    rows = [row(at, 100.0 + at, answer(100.0 + at, 100.2 + at, 100.8 + at, 4)) for at in range(27)]
    rows += [row(at, 100.0 + at, answer(100.0 + at, None, None, 0, outcome="empty", error="no text")) for at in range(27, 30)]
    found = metrics.latencies(rows, "sent")
    assert metrics.counts(rows).model_dump() == {"total": 30, "ok": 27, "failed": 0, "empty": 3}
    assert found.ttft_ms.n == 27 and found.ttft_ms.p50 == pytest.approx(200)
    assert metrics.output_tokens(rows) == 27 * 4


def test_tpot_is_null_under_two_tokens():
    assert tpot_ms(1.0, 1.0, 1) is None
    one = row(0, 100.0, answer(100.0, 100.1, 100.1, 1))
    assert one.tpot_ms is None and one.why_null == "under 2 tokens" and one.ttft_ms == pytest.approx(100)
    assert metrics.latencies([one], "sent").tpot_ms.p50 is None


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0.001, 5), st.floats(0, 5), st.integers(1, 50)), min_size=1, max_size=20))
def test_schedule_is_never_later_than_send(shapes):
    rows = [
        row(at, 100.0 + lag, answer(100.0 + lag + wait, 100.0 + lag + wait + 0.1, 100.1 + lag + wait + decode, tokens))
        for at, (lag, wait, decode, tokens) in enumerate(shapes)
    ]
    sent, scheduled = metrics.latencies(rows, "sent"), metrics.latencies(rows, "scheduled")
    assert scheduled.ttft_ms.mean >= sent.ttft_ms.mean - 1e-6
    assert metrics.wall_s(rows) >= max(each.done_s for each in rows) - max(each.scheduled_s for each in rows) - 1e-6
    assert metrics.counts(rows).ok == len(rows)
