from hypothesis import given
from hypothesis import strategies as st

from kvassay.serving.stop_strings import StopStrings

letters = st.text(alphabet="ab", max_size=12)


@given(st.lists(letters), st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=3))
def test_what_is_shown_is_the_text_before_the_first_stop_string_however_it_is_cut(pieces, stops):
    cutter, shown, stopped = StopStrings(tuple(stops)), "", False
    for piece in pieces:
        text, stopped = cutter.feed(piece)
        shown += text
        if stopped:
            break
    whole, seen = "".join(pieces), ""
    if stopped:
        # The earliest moment at which the text so far holds a stop string, and the first one in it.
        for piece in pieces:
            seen += piece
            if any(stop in seen for stop in stops):
                break
        assert shown == seen[: min(seen.find(stop) for stop in stops if stop in seen)]
    else:
        assert not any(stop in whole for stop in stops) and shown + cutter.rest() == whole


def test_text_is_not_held_back_without_need():
    cutter = StopStrings(("END",))
    assert [cutter.feed(piece) for piece in ("ab", "E", "x", "EN", "D")] == [
        ("ab", False),
        ("", False),
        ("Ex", False),
        ("", False),
        ("", True),
    ]
