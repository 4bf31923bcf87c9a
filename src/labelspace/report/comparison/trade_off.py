"""Accuracy against cost: a plot of the first metric and the first cost, and what a script needs to show any others."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from labelspace.report.comparison.frame import Frame, beside, name_heights, y_pixel
from labelspace.report.comparison.scales import Axis
from labelspace.report.comparison.svg import circle, line
from labelspace.report.comparison.view import ComparisonView, bounds, title_of

RADIUS = 6.0
NOTE = (
    "Up is better, left is cheaper. Filled points: no other method is both better and cheaper. Vertical lines are 95 % "
    "intervals over the test documents. ↓ marks methods less than half as good as the best, which lie below the axis."
)


def trade_off(view: ComparisonView) -> str:
    """The plot with two lists to choose its axes from."""
    metric, cost = view.main_metrics[0], view.costs[0]
    y, x = metric_places(view, metric), cost_places(view, cost)
    frame = Frame(x["name"], y["name"], x["ticks"], y["ticks"], f"{y['name']} against {x['name']} of each method")
    filled = on_front(view, metric, cost)
    frame.add_methods(
        [
            (i, name, view.color(row), _marks(x["at"][i], y, i, filled[i]), (x["at"][i], y["at"][i]))
            for i, (row, name) in enumerate(zip(view.rows, y["names"], strict=True))
        ]
    )
    lists = _choice("trade-off-y", "Accuracy", view.main_metrics, metric, view.metrics)
    lists += _choice("trade-off-x", "Cost", view.costs, cost, view.costs)
    return (
        "<section><h2>Accuracy against cost</h2>"
        f"<p>{escape(NOTE)}</p><div class='choices needs-script'>{lists}</div>{frame.html('trade-off')}</section>"
    )


def trade_off_data(view: ComparisonView) -> dict[str, Any]:
    """Positions for every choice: by metric and by cost, and which methods are filled for a pair of both."""
    metrics = [key for key in view.metrics if all(row.get(key) is not None for row in view.rows)]
    costs = [key for key in view.costs if all(row.get(key) is not None for row in view.rows)]
    return {
        "y": {key: metric_places(view, key) for key in metrics},
        "x": {key: cost_places(view, key) for key in costs},
        "filled": {f"{metric}|{cost}": on_front(view, metric, cost) for metric in metrics for cost in costs},
    }


def metric_places(view: ComparisonView, key: str) -> dict[str, Any]:
    """Of a metric: ticks, and for each method the height of its point, of its interval and of its name."""
    values = [row[key] for row in view.rows]
    axis = Axis.near(values, [bound for row in view.rows for bound in bounds(row, key)])
    at = [y_pixel(axis.percent(value)) for value in values]
    return {
        "name": f"{title_of(key)}, %",
        "ticks": [(axis.percent(value), said) for value, said in axis.ticks],
        "at": at,
        "bounds": [
            [y_pixel(axis.percent(bound)) for bound in bounds(row, key)] if axis.holds(row[key]) else []
            for row in view.rows
        ],
        "heights": name_heights(at),
        "names": [beside(row["method"], None if axis.holds(row[key]) else row[key]) for row in view.rows],
    }


def cost_places(view: ComparisonView, key: str) -> dict[str, Any]:
    """Of a cost: ticks, and for each method where its point is."""
    values = [row[key] for row in view.rows]
    axis = Axis.of_costs(values)
    return {
        "name": title_of(key) + (" (logarithmic)" if axis.is_log else ""),
        "ticks": [(axis.percent(value), said) for value, said in axis.ticks],
        "at": [axis.percent(value) for value in values],
    }


def on_front(view: ComparisonView, metric: str, cost: str) -> list[bool]:
    """For each method, whether no other is at least as good and as cheap, and better in one of both."""
    points = [(-row[metric], row[cost]) for row in view.rows]
    return [not any(_beats(other, point) for other in points) for point in points]


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def _marks(x: float, y: Mapping[str, Any], index: int, filled: bool) -> str:
    interval: Sequence[float] = y["bounds"][index]
    low, high = interval or (y["at"][index], y["at"][index])
    return line(x, low, x, high, "interval") + circle(x, y["at"][index], RADIUS, "point filled" if filled else "point")


def _choice(name: str, title: str, first: Sequence[str], chosen: str, keys: Sequence[str]) -> str:
    """A list to choose from: the usual ones first."""
    options = "".join(
        f"<option value='{escape(key)}'{' selected' if key == chosen else ''}>{escape(title_of(key))}</option>"
        for key in dict.fromkeys([*first, *keys])
    )
    return f"<label>{escape(title)} <select id='{name}'>{options}</select></label>"
