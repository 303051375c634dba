"""Frontiers: budgets, monotony, names, rules of the target."""

import dataclasses
import itertools

import pytest

from kvassay.capabilities import CAPABILITIES
from kvassay.errors import BadInput
from kvassay.geometry.price import bytes_per_token, effective_bits
from kvassay.plan.budget import token_budget
from kvassay.plan.schema import Budget, Menu
from kvassay.records.frontier import Frontier
from kvassay.solving.candidates import PriceList
from kvassay.solving.frontier import Problem, solve_frontier
from support.small_geometry import MENU, small_geometry, small_scores, usual_loss

TARGET = CAPABILITIES["transformers"]
ALL = Menu(k=MENU, v=MENU)


def frontier(budget, geometry=None, capability=TARGET, menu=ALL, maps=5, **scoring):
    geometry = geometry or small_geometry()
    prices = PriceList(small_scores(geometry, **scoring))
    return solve_frontier(Problem(geometry, prices, menu, capability, token_budget(budget, geometry)), maps)


def test_points_are_the_budget_and_as_many_more_as_asked():
    found = frontier(Budget(bits=6.0))
    geometry = small_geometry()
    assert len(found.points) == 6
    assert found.budget_bits == 6.0
    assert found.owner_layers == (0, 1, 2, 3)
    assert [point.bits for point in found.points] == sorted(point.bits for point in found.points)
    assert len({point.name for point in found.points} | {point.name for point in found.uniform}) == len(found.points) + len(found.uniform)
    assert len({point.pairs for point in found.points}) == len(found.points)
    for point in (*found.points, *found.uniform):
        assert point.bits == effective_bits(geometry, point.pairs) <= point.budget_bits + 1e-9
        assert point.bytes_per_token == bytes_per_token(geometry, point.pairs)
        assert point.served_by == ("transformers",)
        expected = sum(
            usual_loss(layer, t, name)
            for layer, pair in enumerate(point.pairs)
            for t, name in (("k", pair.k), ("v", pair.v))
            if name != "native"
        )
        assert point.predicted_kl_nats == pytest.approx(expected)
    assert all(len(set(point.pairs)) > 1 for point in found.points)
    within = [point for point in found.points if point.bits <= 6.0]
    assert len(within) == 4, "the budget point and three under it"
    assert found == Frontier.model_validate(found.model_dump())


def test_predictions_fall_as_bits_rise():
    points = frontier(Budget(bits=7.0), small_geometry(layers=12), maps=8).points
    assert all(a.predicted_kl_nats >= b.predicted_kl_nats for a, b in itertools.pairwise(points))


def test_the_best_point_at_a_budget_beats_every_uniform_pair_within_it():
    found = frontier(Budget(bits=6.0))
    at_budget = max((point for point in found.points if point.bits <= 6.0), key=lambda point: point.bits)
    rivals = [point for point in found.uniform if point.bits <= 6.0]
    assert len(rivals) == 3
    assert all(at_budget.predicted_kl_nats < point.predicted_kl_nats for point in rivals)


def test_uniform_pairs_are_the_menu_and_native():
    found = frontier(Budget(bits=8.0), menu=Menu(k=("fp8_e4m3", "int4_g64"), v=("int4_g64",)))
    assert {point.name for point in found.uniform} == {"fp8_e4m3/int4_g64", "int4_g64/int4_g64", "native/native"}
    native = next(point for point in found.uniform if point.name == "native/native")
    assert (native.bits, native.predicted_kl_nats) == (16.0, 0.0)


@pytest.mark.parametrize(
    ("budget", "bytes_wanted"),
    [
        # 4 layers × 2 heads × (64 + 64) elements = 1,024 elements a token; int4_g64 everywhere is 4.5 bits = 576 bytes.
        (Budget(bits=6.0), 768),
        (Budget(bits=5.326389), 681),
        (Budget(bytes_per_token=700), 700),
        (Budget(gib=1.0, tokens=32_768, requests=32), 1024),
        (Budget(smallest="within gates"), 2048),
    ],
)
def test_budgets(budget, bytes_wanted):
    geometry = small_geometry()
    found = token_budget(budget, geometry)
    assert found.bytes_per_token == bytes_wanted
    assert found.bits == 8 * bytes_wanted / 1024, "bits and bytes of a budget hold the same maps"
    points = frontier(budget).points
    assert any(point.bytes_per_token <= bytes_wanted for point in points)


@pytest.mark.parametrize("budget", [Budget(bits=4.4), Budget(bytes_per_token=575), Budget(gib=0.001, tokens=4096, requests=1000)])
def test_a_budget_under_the_cheapest_map_names_the_smallest_figure(budget):
    with pytest.raises(BadInput, match=r"576 bytes per token, 4\.5000 bits"):
        frontier(budget)


def test_the_cheapest_map_itself_is_within_reach():
    found = frontier(Budget(bits=4.5))
    assert not [point for point in found.points if point.bits <= 4.5], "the one map at 4.5 bits is uniform"
    assert len(found.points) == 5


def test_a_budget_where_uniform_is_best_still_gives_a_mixed_map():
    """All losses zero: everything ties, so the cheapest uniform pair is the optimum at any budget."""
    found = frontier(Budget(bits=8.0), loss=lambda layer, tensor, name: 0.0)
    assert found.points
    assert all(len(set(point.pairs)) == 2 for point in found.points)


def test_k_and_v_alike_where_the_target_wants_it():
    capability = dataclasses.replace(TARGET, k_not_v=False)
    found = frontier(Budget(bits=6.5), capability=capability)
    assert found.points
    assert all(pair.k == pair.v for point in (*found.points, *found.uniform) for pair in point.pairs)


def test_few_formats_where_the_target_wants_it():
    capability = dataclasses.replace(TARGET, max_formats=2)
    found = frontier(Budget(bits=6.5), small_geometry(layers=8), capability=capability)
    assert found.points
    assert all(len({name for pair in point.pairs for name in (pair.k, pair.v)}) <= 2 for point in found.points)


def test_only_uniform_where_the_target_wants_it():
    capability = dataclasses.replace(TARGET, per_layer=False)
    found = frontier(Budget(bits=6.5), capability=capability)
    assert found.points
    assert all(len(set(point.pairs)) == 1 for point in found.points)


def test_formats_the_target_lacks_are_not_used():
    capability = dataclasses.replace(TARGET, formats=("native", "fp8_e4m3"))
    found = frontier(Budget(bits=12.0), capability=capability)
    assert {name for point in found.points for pair in point.pairs for name in (pair.k, pair.v)} <= {"native", "fp8_e4m3"}


def test_illegal_groups_are_left_out():
    geometry = small_geometry(head_dim=96)
    menu = Menu(k=("native", "int6_g64", "int4_g32"), v=("native", "int4_g32"))
    found = frontier(Budget(bits=9.0), geometry, menu=menu, formats=("int4_g32",), loss=lambda *_: 1e-3)
    assert {name for point in found.points for pair in point.pairs for name in (pair.k, pair.v)} == {"native", "int4_g32"}


def test_a_missing_score_is_named():
    with pytest.raises(BadInput, match=r"scores\.json: no score for layer 0, [kv], int6_g64"):
        frontier(Budget(bits=6.0), formats=("fp8_e4m3", "int4_g64"))


def test_negative_noise_counts_as_nothing():
    found = frontier(Budget(bits=6.0), loss=lambda layer, tensor, name: -1e-6)
    assert all(point.predicted_kl_nats == 0.0 for point in (*found.points, *found.uniform))


def test_at_the_floor_predictions_stay_as_measured_but_the_cheapest_wins():
    found = frontier(Budget(bits=16.0), floor_nats=1.0)
    uniform = next(point for point in found.uniform if point.name == "int4_g64/int4_g64")
    assert uniform.predicted_kl_nats > 0
    assert len(found.points) == 6, "losses at the floor still tell maps apart where too few were found"
    assert min(point.bits for point in found.points) < 5
