"""Layers in equal groups (field case G1-25): groups and padding are a trade-off."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvassay.cli import run_command
from kvassay.errors import BadInput
from kvassay.geometry.engine.grouping import grouping, grouping_trade_off, kind_counts, smallest_grouping
from support.families import config, read_config

several = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 200), min_size=1)


@pytest.mark.parametrize(
    ("counts", "size", "groups", "padding", "fraction"),
    [
        ((19, 18), 18, 3, 17, 17 / 19),  # 2 groups of 18 for 19 layers
        ((19, 18), 19, 2, 1, 1 / 18),
        ((20, 30), 20, 3, 10, 10 / 30),
        ((20, 30), 10, 5, 0, 0.0),
        ((10, 16), 10, 3, 4, 4 / 16),
        ((10, 16), 2, 13, 0, 0.0),
        ((30, 10, 5, 1), 1, 46, 0, 0.0),
        ((30, 10, 5, 1), 5, 6 + 2 + 1 + 1, 4, 4 / 1),  # 10 groups: only the single layer is padded
        ((9, 39, 5), 3, 3 + 13 + 2, 1, 1 / 5),
        ((9, 39, 5), 10, 1 + 4 + 1, 1 + 1 + 5, 7 / 53),
    ],
)
def test_g1_25_groups_and_padding(counts, size, groups, padding, fraction):
    its = grouping(dict(zip("abcd", counts, strict=False)), size)
    assert (its.groups, its.padding_layers) == (groups, padding)
    assert its.padding_per_layer == pytest.approx(fraction)
    assert its.groups * size == sum(counts) + padding


def test_g1_25_percentages():
    assert f"{grouping({'full': 19, 'sliding': 18}, 18).padding_per_layer:.1%}" == "89.5%"
    assert f"{grouping({'full': 19, 'sliding': 18}, 19).padding_per_layer:.1%}" == "5.6%"
    assert f"{grouping({'full': 20, 'sliding': 30}, 20).padding_per_layer:.1%}" == "33.3%"
    assert f"{grouping({'full': 10, 'sliding': 16}, 10).padding_per_layer:.1%}" == "25.0%"


def test_g1_25_width_3_pads_only_the_draft():
    at_3, at_10 = (grouping({"full": 9, "sliding": 39, "draft": 5}, size) for size in (3, 10))
    assert {kind.kind: kind.padding_layers for kind in at_3.kinds} == {"full": 0, "sliding": 0, "draft": 1}
    assert (at_3.groups, at_10.groups) == (18, 6)


def test_g1_25_both_proposals_are_on_the_front():
    front = {each.size: (each.groups, each.padding_layers) for each in grouping_trade_off({"full": 9, "sliding": 39, "draft": 5})}
    assert front[3] == (18, 1)
    assert front[10] == (6, 7)


def test_front_of_19_and_18():
    front = grouping_trade_off({"full": 19, "sliding": 18})
    assert [(each.size, each.groups, each.padding_layers) for each in front] == [(1, 37, 0), (19, 2, 1)]


@given(several)
@settings(max_examples=60, deadline=None)
def test_front_is_what_no_size_beats(counts):
    front = grouping_trade_off(counts)
    every = [grouping(counts, size) for size in range(1, max(counts.values()) + 1)]
    for each in front:
        assert not any(
            other.groups <= each.groups
            and other.padding_layers <= each.padding_layers
            and (other.groups, other.padding_layers) != (each.groups, each.padding_layers)
            for other in every
        )
    for other in every:
        assert any(each.groups <= other.groups and each.padding_layers <= other.padding_layers for each in front)


@given(several, st.integers(1, 400))
def test_groups_cover_every_layer(counts, size):
    its = grouping(counts, size)
    assert its.groups * size == sum(counts.values()) + its.padding_layers
    assert 0 <= its.padding_layers < size * len(counts)
    assert its.padding_per_layer >= 0


@pytest.mark.parametrize(("counts", "size"), [((30, 10, 5, 1), 1), ((20, 30), 20), ((19, 18), 19), ((16, 48), 16), ((8,), 8)])
def test_default_size_is_the_smallest_count_unless_all_are_almost_equal(counts, size):
    assert smallest_grouping(dict(zip("abcd", counts, strict=False))).size == size


@pytest.mark.parametrize("counts", [{}, {"full": 0}, {"full": 4097}, {"full": 4000, "sliding": 97}, {"full": -1, "sliding": 3}])
def test_bounds(counts):
    with pytest.raises(BadInput):
        grouping_trade_off(counts)


def test_a_size_below_one_is_refused():
    with pytest.raises(BadInput, match="size 0"):
        grouping({"full": 3}, 0)


def test_readers_count_for_nothing(tmp_path):
    """Gemma 4 E2B: 15 owners of 35 layers, 12 of them windowed."""
    e2b = config("gemma4_text", 35, 1536, 8, 1, head_dim=256, global_head_dim=512, sliding_window=512, num_kv_shared_layers=20, attention_k_eq_v=False, layer_types=(["sliding_attention"] * 4 + ["full_attention"]) * 7)  # fmt: skip
    assert sorted(kind_counts(read_config(tmp_path, e2b)).values()) == [3, 12]


def test_inspect_shows_the_trade_off(tmp_path, capsys):
    values = config("gpt_oss", 37, 2880, 64, 8, head_dim=64, sliding_window=128, layer_types=["full_attention", "sliding_attention"] * 18 + ["full_attention"])  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values))
    assert run_command(["inspect", str(path), "--block", "16", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["grouping"]
    assert [(each["size"], each["groups"], each["padding_layers"], round(each["padding_per_layer"], 3)) for each in shown] == [(1, 37, 0, 0.0), (19, 2, 1, 0.056)]  # fmt: skip
    assert run_command(["inspect", str(path), "--block", "16"]) == 0
    assert "5.6%" in capsys.readouterr().out
    assert run_command(["inspect", str(path), "--json"]) == 0
    assert "grouping" not in json.loads(capsys.readouterr().out)


def test_one_kind_needs_no_trade_off(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config("llama", 32, 4096, 32, 8)))
    assert run_command(["inspect", str(path), "--block", "16", "--json"]) == 0
    assert "grouping" not in json.loads(capsys.readouterr().out)
