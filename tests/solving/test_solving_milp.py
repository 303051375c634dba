"""The solver against brute force, and its rules one by one."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvassay.solving.candidates import Choice, Group
from kvassay.solving.milp import solve_budgets

FORMATS = ("native", "fp8_e4m3", "int6_g64", "int4_g64")


def choice(name, size, kl, at_floor=False):
    return Choice(k=name, v=None, bytes_per_token=size, kl_nats=kl, weight_nats=0.0 if at_floor else kl)


def brute_force(groups, budget, max_formats=None):
    """Least total loss, then least bytes, over every combination."""
    legal = []
    for taken in itertools.product(*(group.choices for group in groups)):
        size = sum(each.bytes_per_token for each in taken)
        few = max_formats is None or len(frozenset().union(*(each.formats for each in taken))) <= max_formats
        if size <= budget and few:
            legal.append((sum(each.weight_nats for each in taken), size))
    return min(legal, default=None)


@st.composite
def problems(draw):
    groups = []
    for owner in range(draw(st.integers(1, 5))):
        names = draw(st.lists(st.sampled_from(FORMATS), min_size=1, max_size=4, unique=True))
        # Losses are multiples of 1e-5 up to 1e-2: ties happen, and different ones differ by more than the tie break.
        losses = st.integers(0, 1000).map(lambda n: n * 1e-5)
        groups.append(Group(owner, tuple(choice(name, 8 * draw(st.integers(1, 40)), draw(losses)) for name in names)))
    most = sum(max(each.bytes_per_token for each in group.choices) for group in groups)
    return tuple(groups), draw(st.integers(1, most + 20)), draw(st.none() | st.integers(1, 4))


@given(problems())
@settings(max_examples=120, deadline=None)
def test_equals_brute_force(problem):
    groups, budget, max_formats = problem
    best = brute_force(groups, budget, max_formats)
    solution = solve_budgets(groups, [budget], max_formats=max_formats)[0]
    if best is None or solution is None:
        assert best is solution is None
        return
    assert solution.status == "optimal"
    assert all(taken in group.choices for taken, group in zip(solution.taken, groups, strict=True))
    assert solution.bytes_per_token == sum(each.bytes_per_token for each in solution.taken) == best[1]
    assert sum(each.weight_nats for each in solution.taken) == pytest.approx(best[0], abs=1e-12)


@given(problems())
@settings(max_examples=40, deadline=None)
def test_more_budget_never_loses(problem):
    groups, _, _ = problem
    least = sum(min(each.bytes_per_token for each in group.choices) for group in groups)
    losses = [sum(each.weight_nats for each in solution.taken) for solution in solve_budgets(groups, range(least, least + 200, 17))]
    assert all(a >= b - 1e-12 for a, b in itertools.pairwise(losses))


def test_at_the_floor_the_cheapest_wins():
    group = Group(0, (choice("native", 64, 0.0), choice("int6_g64", 26, 2e-6, at_floor=True), choice("int4_g64", 18, 3e-6, at_floor=True)))
    assert solve_budgets([group], [1000])[0].taken[0].k == "int4_g64"


def test_a_small_loss_above_the_floor_is_not_outweighed_by_bytes():
    lossy = Group(0, (choice("native", 4096, 0.0), choice("int4_g64", 8, 1.0)))
    tiny = Group(1, (choice("native", 4096, 0.0), choice("int4_g64", 8, 1e-5)))
    assert [each.k for each in solve_budgets([lossy, tiny], [10_000])[0].taken] == ["native", "native"]


def test_a_format_limit_that_cannot_be_kept():
    groups = [Group(0, (choice("native", 8, 0.0),)), Group(1, (choice("int4_g64", 8, 0.0),))]
    assert solve_budgets(groups, [100], max_formats=1) == [None]
    assert solve_budgets(groups, [100], max_formats=2)[0].bytes_per_token == 16


def test_layers_that_differ():
    """Two layers, K and V apart: the cheapest map is uniform, the next one is not."""
    groups = [
        Group(owner, tuple(Choice(k=k, v=v, bytes_per_token=size, kl_nats=0.0, weight_nats=0.0) for k, v, size in names))
        for owner in range(2)
        for names in ([("native", None, 4), ("int4_g64", None, 1)], [(None, "native", 4), (None, "int4_g64", 1)])
    ]
    assert solve_budgets(groups, [4])[0].bytes_per_token == 4
    assert solve_budgets(groups, [4], layers_differ=True) == [None]
    assert solve_budgets(groups, [100], layers_differ=True)[0].bytes_per_token == 7
    assert solve_budgets(groups[:2], [100], layers_differ=True) == [None], "one layer cannot differ from itself"


def test_nothing_is_written_to_stdout(capfd):
    solve_budgets([Group(0, (choice("native", 8, 0.0),))], [8])
    assert capfd.readouterr() == ("", "")
