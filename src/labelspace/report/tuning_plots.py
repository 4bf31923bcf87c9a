"""The plots of a search as SVG that works offline: metric by trial, and metric against a parameter.

Colors are those of the page, so that they follow its light or dark theme.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from statistics import median
from typing import Any

from labelspace.estimator.parameter_constraints import shown

LEFT, TOP, WIDTH, HEIGHT = 56, 16, 400, 240  # of the area that is drawn on, in a picture of 480 pixels
INSET = 12  # pixels between the frame and the outermost points
N_TICKS = 6  # at most
LONGEST_NAME = 14  # characters of a value below the axis


@dataclass(frozen=True)
class Axis:
    """Where values lie between 0 and 1, and the ticks.

    >>> Axis.over(0, 100).ticks
    {0: '0', 20: '20', 40: '40', 60: '60', 80: '80', 100: '100'}
    >>> Axis.over(0.05, 5, log=True).ticks
    {0.1: '0.1', 1.0: '1'}
    >>> Axis.of_values(["a", None]).ticks
    {0: 'a', 1: 'none'}
    """

    low: float
    high: float
    log: bool
    ticks: Mapping[float, str]

    @classmethod
    def over(cls, low: float, high: float, log: bool = False) -> "Axis":
        """Numbers from low to high, which ticks divide."""
        if high <= low:
            low, high = low - 1, high + 1
        return cls(low, high, log, {tick: f"{tick:g}" for tick in (_powers if log else _steps)(low, high)})

    @classmethod
    def of_values(cls, values: Sequence[Any]) -> "Axis":
        """Values side by side."""
        ticks: dict[float, str] = {i: _short(shown(value)) for i, value in enumerate(values)}
        return cls(-0.5, len(values) - 0.5, False, ticks)

    def place(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        low, high, value = (
            (log10(v) for v in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        )
        return (value - low) / (high - low)


def trials_svg(trials: Sequence[Mapping[str, Any]], metric: str) -> str:
    """The metric of every trial, the best so far, and the default.

    >>> svg = trials_svg([{"trial": 0, "value": 50.0, "params": {}}, {"trial": 1, "value": None, "params": {}}], "P@1")
    >>> svg.count("<circle"), "polyline" in svg
    (1, True)
    """
    across = Axis.over(0, max(len(trials) - 1, 1))
    across = Axis(across.low, across.high, False, {t: name for t, name in across.ticks.items() if t == int(t)})
    up, best, steps = metric_axis(trials), 0.0, list[str]()
    for trial in trials:
        value = trial["value"]
        if value is not None:
            steps += [f"{_x(across, trial['trial']):.1f},{_y(up, best):.1f}"] if steps else []
            best = max(best, value)
            steps.append(f"{_x(across, trial['trial']):.1f},{_y(up, best):.1f}")
    curve = f"<polyline class='curve' points='{' '.join(steps)}'/>"
    return _picture(across, up, curve + _points(trials, up, lambda t: _x(across, t["trial"]), metric), "trial", metric)


def parameter_svg(trials: Sequence[Mapping[str, Any]], key: str, searched: Mapping[str, Any], metric: str) -> str:
    """The metric against a parameter; ``searched`` is its range, or its values.

    >>> trials = [{"trial": i, "value": 50.0 + i, "params": {"C": 0.1 + i}} for i in range(3)]
    >>> parameter_svg(trials, "C", {"low": 0.1, "high": 10, "log": True}, "P@1").count("<circle")
    3
    """
    values = searched.get("values")
    across = Axis.over(searched["low"], searched["high"], searched["log"]) if values is None else Axis.of_values(values)

    def x(trial: Mapping[str, Any]) -> float:
        value = trial["params"][key]
        return _x(across, value if values is None else list(map(repr, values)).index(repr(value)))  # 1 is not true

    drawn = [trial for trial in trials if key in trial["params"]]
    name = f"{key} (log)" if across.log else key
    up = metric_axis(trials)
    return _picture(across, up, _points(drawn, up, x, metric), name, metric)


def metric_axis(trials: Sequence[Mapping[str, Any]]) -> Axis:
    """An axis on which good trials can be told from each other: the worst lie below it, at its lower end.

    >>> values = [51.0, 52.0, 51.5, 51.2, 3.0]
    >>> axis = metric_axis([{"value": value} for value in values])
    >>> 45 < axis.low < 51, axis.high > 52
    (True, True)
    """
    values = [trial["value"] for trial in trials if trial["value"] is not None] or [0.0]
    best, default = max(values), values[0]
    low = max(min(values), min(best - 3 * (best - median(values)), default))
    margin = max(0.08 * (best - low), 0.05)
    return Axis.over(max(low - margin, 0.0), best + margin)


def _points(trials: Sequence[Mapping[str, Any]], up: Axis, x: Any, metric: str) -> str:  # noqa: ANN401 - a function
    """A point for each trial; hollow where it lies below the axis, larger for the best, a line for the default."""
    good = [trial for trial in trials if trial["value"] is not None]
    best = max((trial["value"] for trial in good), default=None)
    marks = ""
    for trial in good:
        if trial["trial"] == 0:
            y = _y(up, trial["value"])
            marks = f"<line class='dashed' x1='{LEFT}' x2='{LEFT + WIDTH}' y1='{y:.1f}' y2='{y:.1f}'/>" + marks
        is_best, is_below = trial["value"] == best, trial["value"] < up.low
        said = f"trial {trial['trial']}: {metric} {trial['value']:.2f}"
        hollow = " fill-opacity='0' stroke='currentColor'" if is_below else ""
        marks += (
            f"<circle class='point' cx='{x(trial):.1f}' cy='{_y(up, trial['value']):.1f}' r='{6 if is_best else 3.5}'"
            f"{hollow}><title>{escape(said)}</title></circle>"
        )
    return marks


def _picture(across: Axis, up: Axis, marks: str, name: str, metric: str) -> str:
    """Axes, ticks and names around the marks."""
    grid, bottom, middle = "", TOP + HEIGHT, TOP + HEIGHT / 2
    for value, label in across.ticks.items():
        x = _x(across, value)
        grid += f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{TOP}' y2='{bottom}'/>"
        grid += f"<text class='soft middle' x='{x:.1f}' y='{bottom + 15}'>{escape(label)}</text>"
    for value, label in up.ticks.items():
        y = _y(up, value)
        grid += f"<line x1='{LEFT}' x2='{LEFT + WIDTH}' y1='{y:.1f}' y2='{y:.1f}'/>"
        grid += f"<text class='soft end' x='{LEFT - 6}' y='{y + 4:.1f}'>{escape(label)}</text>"
    grid += f"<text class='soft middle' x='{LEFT + WIDTH / 2}' y='{bottom + 33}'>{escape(name)}</text>"
    grid += f"<text class='soft middle' transform='rotate(-90 12 {middle})' x='12' y='{middle}'>{escape(metric)}</text>"
    size = f"width='480' height='{bottom + 40}' viewBox='0 0 480 {bottom + 40}'"
    return f"<svg role='img' aria-label='{escape(f'{metric} by {name}')}' {size}>{grid}{marks}</svg>"


def _x(across: Axis, value: float) -> float:
    return LEFT + INSET + (WIDTH - 2 * INSET) * across.place(value)


def _y(up: Axis, value: float) -> float:
    return TOP + HEIGHT * (1 - max(up.place(value), 0.0))


def _steps(low: float, high: float) -> list[float]:
    """Round numbers from low to high, at most ``N_TICKS`` of them."""
    rough = (high - low) / (N_TICKS - 1)
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    ticks = [float(f"{i * step:.12g}") for i in range(ceil(low / step), floor(high / step) + 1)]
    return [int(tick) if tick == int(tick) else tick for tick in ticks]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten from low to high; with their doubles and halves where there are few."""
    factors = (1,) if high / low > 30 else (1, 2, 5)
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [tick for power in powers for f in factors if low <= (tick := float(f"{f}e{power}")) <= high]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"
