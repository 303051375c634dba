"""Dynamic programming against every map enumerated, and against the integer program."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvassay.solving.candidates import Choice, Group
from kvassay.solving.dynamic import fits, solve_budgets_at_once
from kvassay.solving.milp import solve_budgets


def group(owner, *choices):
    """Choices as (bytes, loss)."""
    return Group(
        owner,
        tuple(Choice(k=f"f{at}", v=None, bytes_per_token=size, kl_nats=loss, weight_nats=loss) for at, (size, loss) in enumerate(choices)),
    )


def test_by_hand():
    """Two layers, 2 or 4 bytes each: at 6 bytes the layer that gains most by its 2 further bytes gets them."""
    groups = [group(0, (2, 0.5), (4, 0.0)), group(1, (2, 0.3), (4, 0.0))]
    found = solve_budgets_at_once(groups, [3, 4, 6, 7, 8])
    assert found[0] is None
    assert [(each.bytes_per_token, sum(choice.weight_nats for choice in each.taken)) for each in found[1:]] == [
        (4, 0.8),
        (6, 0.3),
        (6, 0.3),
        (8, 0.0),
    ]


def test_of_equal_losses_the_cheaper():
    [found] = solve_budgets_at_once([group(0, (8, 0.0), (4, 0.0), (2, 0.1))], [8])
    assert found.bytes_per_token == 4


choices = st.lists(st.tuples(st.integers(1, 9).map(lambda n: 4 * n), st.integers(0, 1000).map(lambda n: n / 1000)), min_size=1, max_size=4)


@given(st.lists(choices, min_size=1, max_size=5), st.lists(st.integers(0, 200), min_size=1, max_size=4))
def test_equals_enumeration(layers, budgets):
    groups = [group(owner, *each) for owner, each in enumerate(layers)]
    for budget, found in zip(budgets, solve_budgets_at_once(groups, budgets), strict=True):
        within = [
            (sum(choice.weight_nats for choice in map_), sum(choice.bytes_per_token for choice in map_))
            for map_ in itertools.product(*(each.choices for each in groups))
            if sum(choice.bytes_per_token for choice in map_) <= budget
        ]
        if found is None:
            assert not within
            continue
        least = min(loss for loss, _ in within)
        assert sum(choice.weight_nats for choice in found.taken) == pytest.approx(least, abs=1e-9)
        assert found.bytes_per_token == sum(choice.bytes_per_token for choice in found.taken) <= budget
        assert found.bytes_per_token <= min(size for loss, size in within if loss <= least + 1e-12)


@settings(max_examples=15)
@given(st.lists(choices, min_size=2, max_size=6), st.integers(20, 150))
def test_equals_the_integer_program(layers, budget):
    groups = [group(owner, *each) for owner, each in enumerate(layers)]
    [ours], [theirs] = solve_budgets_at_once(groups, [budget]), solve_budgets(groups, [budget])
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert sum(c.weight_nats for c in ours.taken) == pytest.approx(sum(c.weight_nats for c in theirs.taken), abs=1e-4)


def test_a_table_too_large_is_left_to_the_integer_program():
    assert fits([group(0, (16, 0.0), (32, 0.1))], [1024])
    assert not fits([group(0, (1, 0.0), (3, 0.1))] * 200, [2**30])
