import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.report.plot import Axis, spread

costs = st.lists(st.floats(0, 1e6), min_size=1, max_size=30)


@given(costs)
def test_costs_lie_on_their_axis_in_order_and_ticks_too(values):
    axis = Axis.of_costs(values)
    places = [axis.percent(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    assert all(axis.low * (1 - 1e-9) <= tick <= axis.high * (1 + 1e-9) for tick, _ in axis.ticks)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=30))
def test_accuracies_near_the_best_are_told_apart_from_far_ones(values):
    axis = Axis.near(values)
    assert all(axis.holds(value) for value in values if value >= max(values) / 2)
    assert 1 <= len(axis.ticks) <= 8


@pytest.mark.parametrize("values", [[0.0], [50.0, 50.0], [0.001, 1e5]])
def test_ticks_of_odd_axes(values):
    assert len(Axis.of_costs(values).ticks) >= 1
    assert len({said for _, said in Axis.of_costs(values).ticks}) == len(Axis.of_costs(values).ticks)


@given(st.lists(st.floats(0, 340), min_size=1, max_size=40))
def test_names_stay_in_order_apart_and_inside(heights):
    found = spread(heights, 17, 8, 332)
    gap = min(17, 324 / max(len(heights) - 1, 1))
    placed = sorted(found)
    assert all(b - a >= gap - 0.02 for a, b in zip(placed, placed[1:], strict=False))
    assert 8 - 0.02 <= placed[0] <= placed[-1] <= 332 + 0.02
    order = sorted(range(len(heights)), key=heights.__getitem__)
    assert [found[i] for i in order] == placed


def test_names_that_have_room_stay_where_their_points_are():
    assert spread([50.0, 150.0, 250.0], 17, 8, 332) == [50.0, 150.0, 250.0]
