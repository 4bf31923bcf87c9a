"""Plots of all pages as SVG that works offline: marks, axes, a picture of fixed size, and a frame as wide as its place.

Colors are those of the page, so that plots follow its light or dark theme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10

from labelspace.report.terminal import shortened

WIDE = 20.0  # a cost that spans more than this factor has a logarithmic axis
FAR = 0.5  # values below this share of the best one lie beyond the axis: else they would press all others together
MARGIN = 0.06  # of the axis, on both sides of the data
LEAST = 1e-3  # of a logarithmic axis: times of 0 were rounded
MAX_TICKS = 6
PERCENT = "%"  # unit of an x that is a share of the width


# Marks


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "grid", unit: str = "") -> str:
    """Return a line; ``kind`` is its CSS class, ``unit`` the unit of x."""
    return f"<line class='{kind}' x1='{_n(x1)}{unit}' y1='{_n(y1)}' x2='{_n(x2)}{unit}' y2='{_n(y2)}'/>"


def circle(x: float, y: float, radius: float, kind: str, title: str = "", unit: str = "") -> str:
    """Return a point, with a title that is shown under the pointer."""
    inner = f"<title>{escape(title)}</title>" if title else ""
    return f"<circle class='{kind}' cx='{_n(x)}{unit}' cy='{_n(y)}' r='{radius:g}'>{inner}</circle>"


def rectangle(x: float, y: float, width: float, height: float, kind: str) -> str:
    """Return a rectangle."""
    return f"<rect class='{kind}' x='{_n(x)}' y='{_n(y)}' width='{_n(width)}' height='{_n(height)}'/>"


def polyline(points: Sequence[tuple[float, float]], kind: str = "curve") -> str:
    """Return a line through points; nothing without points."""
    joined = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
    return f"<polyline class='{kind}' points='{joined}'/>" if points else ""


def text(x: float, y: float, words: str, kind: str, unit: str = "") -> str:
    """Return a text."""
    return f"<text class='{kind}' x='{_n(x)}{unit}' y='{_n(y)}'>{escape(words)}</text>"


def drawing(marks: str, height: float, kind: str) -> str:
    """Return a drawing as wide as its place; x of its marks is in percent. Screen readers skip it."""
    return f"<svg class='{kind}' height='{height:g}' aria-hidden='true'>{marks}</svg>"


def _n(value: float) -> str:
    return f"{round(value, 3):g}"


# Axes


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis.

    >>> axis = Axis.near([70.0, 74.0, 9.6])
    >>> axis.ticks, axis.holds(9.6), round(axis.percent(74.0))
    ([(70.0, '70'), (71.0, '71'), (72.0, '72'), (73.0, '73'), (74.0, '74')], False, 95)
    """

    low: float
    high: float
    is_log: bool = False
    named: Sequence[str] = ()  # the values 0, 1, ... by their names

    @classmethod
    def near(cls, values: Sequence[float], bounds: Sequence[float] = ()) -> Axis:
        """Return an axis of accuracies: of all values that are at least half as good as the best, and their bounds."""
        reach = FAR * max(values)
        return cls.around([value for value in (*values, *bounds) if value >= reach])

    @classmethod
    def around(cls, values: Sequence[float], least: float = 1.0) -> Axis:
        """Return an axis of all values, with a margin; for equal values, as if they were at least ``least``."""
        low, high = min(values), max(values)
        room = MARGIN * (high - low) or max(abs(high), least) * MARGIN
        return cls(max(low - room, 0.0) if low >= 0 else low - room, high + room)

    @classmethod
    def of_costs(cls, values: Sequence[float]) -> Axis:
        """Return an axis of costs, logarithmic if they span much.

        >>> [label for _, label in Axis.of_costs([0.01, 3.0]).ticks]
        ['0.01', '0.1', '1']
        """
        low, high = max(min(values), LEAST), max(*values, LEAST)
        if high / low <= WIDE:
            return cls.around(values, LEAST)
        room = (high / low) ** MARGIN
        return cls(low / room, high * room, is_log=True)

    @classmethod
    def of_names(cls, names: Sequence[str]) -> Axis:
        """Return an axis of values side by side, by their names.

        >>> Axis.of_names(["a", "none"]).ticks
        [(0, 'a'), (1, 'none')]
        """
        return cls(-0.5, len(names) - 0.5, named=names)

    def holds(self, value: float) -> bool:
        """Return whether a value lies on the axis, and not below it."""
        return value >= self.low or self.is_log

    def percent(self, value: float) -> float:
        """Return the position of a value, from 0 to 100; of a value beyond the axis, that of the nearest end."""
        if self.is_log:
            share = log10(max(value, self.low) / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.0), 1.0), 3)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Round values on the axis, with their texts."""
        if self.named:
            return list(enumerate(self.named))
        return _log_ticks(self.low, self.high) if self.is_log else _linear_ticks(self.low, self.high)

    @property
    def percent_ticks(self) -> list[tuple[float, str]]:
        """The positions of the ticks in percent, with their texts."""
        return [(self.percent(value), words) for value, words in self.ticks]


def _linear_ticks(low: float, high: float) -> list[tuple[float, str]]:
    size = 10.0 ** floor(log10((high - low) / 3))
    step = next(step for step in (size, 2 * size, 5 * size, 10 * size) if (high - low) / step <= MAX_TICKS)
    digits = max(0, -floor(log10(step)))
    return [(k * step, f"{k * step:,.{digits}f}") for k in range(ceil(low / step), floor(high / step) + 1)]


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    values = [10.0**power for power in powers if low <= 10.0**power <= high]
    if len(values) < 3:
        values = [k * 10.0**power for power in powers for k in (1, 2, 5) if low <= k * 10.0**power <= high]
    return [(value, f"{value:,g}") for value in values]


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions in the same order, at least ``gap`` apart if there is room, between two ends, near the given.

    >>> spread([10.0, 11.0, 50.0], gap=12.0, low=0.0, high=60.0)
    [4.5, 16.5, 50.0]
    """
    if len(positions) > 1:
        gap = min(gap, (high - low) / (len(positions) - 1))
    groups: list[tuple[float, list[int]]] = []  # center of neighbors that touch, and their indices in order
    for index in sorted(range(len(positions)), key=lambda i: positions[i]):
        members = [index]
        center = min(max(positions[index], low), high)
        while groups and center - groups[-1][0] < gap * (len(members) + len(groups[-1][1])) / 2:
            members = groups.pop()[1] + members
            half = gap * (len(members) - 1) / 2
            center = sum(positions[i] for i in members) / len(members)
            center = min(max(center, low + half), high - half)
        groups.append((center, members))
    found = [0.0] * len(positions)
    for center, members in groups:
        for at, index in enumerate(members):
            found[index] = round(center + gap * (at - (len(members) - 1) / 2), 2)
    return found


# A picture of fixed size


@dataclass(frozen=True)
class Picture:
    """A plot of 480 pixels with both axes, grid and titles; ``below`` are pixels under the axis for further marks."""

    across: Axis
    up: Axis
    x_title: str
    y_title: str
    height: int = 240
    inset: int = 0  # pixels between the frame and the outermost points
    below: int = 0

    LEFT = 56
    TOP = 16
    WIDTH = 400

    @property
    def bottom(self) -> int:
        """The y of the lower end of the axis."""
        return self.TOP + self.height

    def x(self, value: float) -> float:
        """Return the x of a value, in pixels."""
        return self.LEFT + self.inset + (self.WIDTH - 2 * self.inset) * self.across.percent(value) / 100

    def y(self, value: float) -> float:
        """Return the y of a value, in pixels."""
        return self.TOP + self.height * (1 - self.up.percent(value) / 100)

    def svg(self, marks: str, name: str) -> str:
        """Return the picture with its marks; ``name`` describes it to screen readers."""
        grid, center, middle = "", self.LEFT + self.WIDTH / 2, self.TOP + self.height / 2
        for value, words in self.across.ticks:
            grid += line(self.x(value), self.TOP, self.x(value), self.bottom)
            grid += text(self.x(value), self.bottom + 15, words, "soft middle")
        for value, words in self.up.ticks:
            grid += line(self.LEFT, self.y(value), self.LEFT + self.WIDTH, self.y(value))
            grid += text(self.LEFT - 7, self.y(value) + 4, words, "soft end")
        grid += text(center, self.bottom + 33, self.x_title, "soft middle")
        turned = f"transform='rotate(-90 14 {middle:g})' x='14' y='{middle:g}'"
        grid += f"<text class='soft middle' {turned}>{escape(self.y_title)}</text>"
        size = self.bottom + 42 + self.below
        box = f"width='480' height='{size}' viewBox='0 0 480 {size}'"
        return f"<svg role='img' aria-label='{escape(name)}' {box}>{grid}{marks}</svg>"


# A frame as wide as its place, with names at the right


FRAME_HEIGHT = 340.0  # pixels of the area that is drawn on; the script of the page has the same number
EDGE = 8.0  # pixels above and below the axis, for points at its ends
NAME_GAP = 17.0  # pixels from name to name
MAX_NAME = 23  # characters
Ticks = Sequence[tuple[float, str]]  # position in percent, text


@dataclass(frozen=True)
class Series:
    """What a frame shows of one method: its marks, and the point (x in percent, y) that its name is joined to."""

    index: int
    name: str
    color: str
    marks: str
    point: tuple[float, float]


@dataclass
class Frame:
    """A plot with an axis at the left, an axis below, and the names of the methods at the right."""

    x_title: str
    y_title: str
    x_ticks: Ticks
    y_ticks: Ticks
    description: str  # for screen readers
    behind: str = ""  # marks below the methods
    series: list[Series] = field(default_factory=list)

    def html(self, kind: str = "") -> str:
        """Return the plot; ``kind`` is one more CSS class."""
        grid = "".join(line(0, y_pixel(at), 100, y_pixel(at), unit=PERCENT) for at, _ in self.y_ticks)
        left = "".join(text(100, y_pixel(at) + 4, words, "tick end", PERCENT) for at, words in self.y_ticks)
        below = "".join(text(at, 16, words, "tick middle", PERCENT) for at, words in self.x_ticks)
        uprights = "".join(line(at, 0, at, FRAME_HEIGHT, unit=PERCENT) for at, _ in self.x_ticks)
        marks, names = "", ""
        for one, height in zip(self.series, name_heights([one.point[1] for one in self.series]), strict=True):
            leader = line(*one.point, 100, height, "leader", PERCENT)
            marks += _of_method(leader + one.marks, one)
            names += _of_method(text(0, height + 4, one.name, "name", PERCENT), one)
        area = f"<g class='ticks'>{grid}{uprights}</g>{self.behind}{marks}"
        longest = max((len(one.name) for one in self.series), default=0)
        return (
            f"<div class='frame {kind}' style='--n:{longest}' role='img' aria-label='{escape(self.description)}'>"
            f"<div class='y-title'>{escape(self.y_title)}</div>{drawing(left, FRAME_HEIGHT, 'y-axis')}"
            f"{drawing(area, FRAME_HEIGHT, 'area')}{drawing(names, FRAME_HEIGHT, 'names')}"
            f"{drawing(below, 24, 'x-axis')}<div class='x-title'>{escape(self.x_title)}</div></div>"
        )


def _of_method(marks: str, one: Series) -> str:
    return f"<g class='method' data-method='{one.index}' style='--c:{one.color}'>{marks}</g>"


def y_pixel(percent: float) -> float:
    """Return the y of a position on the left axis of a frame, from 0 (below) to 100.

    >>> y_pixel(0), y_pixel(100)
    (332.0, 8.0)
    """
    return round(FRAME_HEIGHT - EDGE - (FRAME_HEIGHT - 2 * EDGE) * percent / 100, 2)


def name_heights(heights: Sequence[float]) -> list[float]:
    """Return where the names of points at these heights stand, so that they do not overprint."""
    return spread(heights, NAME_GAP, EDGE, FRAME_HEIGHT - EDGE)


def name_at_point(axis: Axis, method: str, value: float) -> str:
    """Return the name at a point, shortened if it is long; with the value if that lies below the axis.

    >>> name_at_point(Axis(50, 90), "popular", 9.6), name_at_point(Axis(0, 10), "a very long name of a method", 9.6)
    ('popular ↓ 9.6', 'a very long name of a …')
    """
    name = shortened(method, MAX_NAME)
    return name if axis.holds(value) else f"{name} ↓ {value:.1f}"


def choice(attribute: str, title: str, options: Mapping[str, str], chosen: str | None = None) -> str:
    """Return a list to choose from: options by their key."""
    listed = "".join(
        f"<option value='{escape(key)}'{' selected' if key == chosen else ''}>{escape(words)}</option>"
        for key, words in options.items()
    )
    return f"<label>{escape(title)} <select {attribute}>{listed}</select></label>"
