"""The runs of ``scaling.py`` as SVG: a log-log plot for each cost, a line for each method, that of the peer dashed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scaling_table import COSTS, PEER, Runs, why_missing

COLUMNS = 2  # of plots
LEFT, TOP, WIDTH, HEIGHT = 58, 34, 290, 330  # of the area of a plot
NAMES, BOTTOM, LEGEND = 132, 44, 24  # pixels for the names of lines, the axis, and what the marks mean
LINE_HEIGHT = 13.5  # of the names
INSET = 14  # pixels between the frame and the outermost points
HUE_STEP = 137.5  # degrees: neighbors in the list of methods get hues far apart
STYLE = """
:root{--ink:#1d2530;--soft:#66717f;--line:#e3e7ec;--ground:#fff;--light:42%}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#98a3b0;--line:#39424e;--ground:#171b21;--light:66%}}
text{fill:var(--soft);font:11px system-ui,sans-serif}
.head{fill:var(--ink);font-size:14px;font-weight:600}
.grid{stroke:var(--line)}
.method{--color:hsl(var(--hue) 65% var(--light))}
.peer{--color:var(--ink)}
.method polyline,.method path{fill:none;stroke:var(--color);stroke-width:1.6}
.method circle{fill:var(--color)}
.method text{fill:var(--color)}
.method .leader{stroke-width:.6;opacity:.5}
.peer polyline{stroke-width:2.4;stroke-dasharray:6 4}
.peer text{font-weight:700}
.page{fill:var(--ground)}
"""


@dataclass(frozen=True)
class LogAxis:
    """From power of ten to power of ten, on so many pixels."""

    low: int
    high: int
    pixels: float

    @classmethod
    def over(cls, values: Sequence[float], pixels: float) -> LogAxis:
        """The powers that enclose the values.

        >>> LogAxis.over([3, 200], 90)
        LogAxis(low=0, high=3, pixels=90)
        """
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        return cls(low, max(high, low + 1), pixels)

    def place(self, value: float) -> float:
        """Pixels from the lower end."""
        return INSET + (self.pixels - 2 * INSET) * (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Powers of ten."""
        return [10.0**power for power in range(self.low, self.high + 1)]


def drawing(runs: Runs, methods: Sequence[str], sizes: Sequence[int]) -> str:
    """One SVG picture with a plot for each cost."""
    width, height = COLUMNS * (LEFT + WIDTH + NAMES), -(-len(COSTS) // COLUMNS) * (TOP + HEIGHT + BOTTOM) + LEGEND
    marks = f"<rect class='page' width='{width}' height='{height}'/>"
    for at, (key, name) in enumerate(COSTS.items()):
        x, y = at % COLUMNS * (LEFT + WIDTH + NAMES) + LEFT, at // COLUMNS * (TOP + HEIGHT + BOTTOM) + TOP
        marks += f"<g transform='translate({x} {y})'>{_plot(runs, methods, sizes, key, name)}</g>"
    legend = f"dashed: {PEER}; cross: with more labels the run was over a limit, or failed"
    marks += f"<text x='{LEFT}' y='{height - LEGEND / 2}'>{legend}</text>"
    size = f"width='{width}' height='{height}' viewBox='0 0 {width} {height}'"
    label = "aria-label='cost of each method against the number of labels'"
    style = "".join(STYLE.split("\n"))
    return f"<svg xmlns='http://www.w3.org/2000/svg' role='img' {label} {size}><style>{style}</style>{marks}</svg>\n"


def _plot(runs: Runs, methods: Sequence[str], sizes: Sequence[int], key: str, name: str) -> str:
    """The plot of one cost, with its axes from (0, 0) at the upper left."""
    lines = {
        method: {size: float(cost) for size in sizes if (cost := runs.get((method, size), {}).get(key))}
        for method in methods
    }
    lines = {method: line for method, line in lines.items() if line}
    marks = f"<text class='head' x='0' y='-12'>{name}</text>"
    if not lines:
        return marks
    across = LogAxis.over(sizes, WIDTH)
    up = LogAxis.over([cost for line in lines.values() for cost in line.values()], HEIGHT)
    marks += _axes(across, up)
    ends = {method: HEIGHT - up.place(line[max(line)]) for method, line in lines.items()}
    for method, name_y in zip(sorted(ends, key=ends.__getitem__), spread(sorted(ends.values())), strict=True):
        line = lines[method]
        points = [(across.place(size), HEIGHT - up.place(cost)) for size, cost in line.items()]
        ended = any(why_missing(runs.get((method, size), {})) for size in sizes if size > max(line))
        kind = "method peer" if method == PEER else "method"
        hue = f" style='--hue:{HUE_STEP * methods.index(method) % 360:.0f}'"
        marks += f"<g class='{kind}'{hue}>{_line(points, name_y, method, ended)}</g>"
    return marks


def _axes(across: LogAxis, up: LogAxis) -> str:
    marks = ""
    for tick in across.ticks():
        x = across.place(tick)
        marks += f"<line class='grid' x1='{x:.1f}' x2='{x:.1f}' y1='0' y2='{HEIGHT}'/>"
        marks += f"<text x='{x:.1f}' y='{HEIGHT + 15}' text-anchor='middle'>{tick:,.0f}</text>"
    for tick in up.ticks():
        y = HEIGHT - up.place(tick)
        marks += f"<line class='grid' x1='0' x2='{WIDTH}' y1='{y:.1f}' y2='{y:.1f}'/>"
        marks += f"<text x='-6' y='{y + 4:.1f}' text-anchor='end'>{f'{tick:,.0f}' if tick >= 1 else f'{tick:g}'}</text>"
    return marks + f"<text x='{WIDTH / 2}' y='{HEIGHT + 31}' text-anchor='middle'>labels</text>"


def _line(points: Sequence[tuple[float, float]], name_y: float, name: str, ended: bool) -> str:
    """The line of a method, its name beside the plot, and a cross at its end where a larger size was too much."""
    (x, y), marks = points[-1], ""
    if len(points) > 1:
        marks += f"<polyline points='{' '.join(f'{px:.1f},{py:.1f}' for px, py in points)}'/>"
    dots = points[:-1] if ended else points
    marks += "".join(f"<circle cx='{px:.1f}' cy='{py:.1f}' r='2.6'/>" for px, py in dots)
    if ended:
        marks += f"<path d='M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8'/>"
    marks += f"<path class='leader' d='M{x:.1f} {y:.1f}L{WIDTH + 2} {y:.1f}L{WIDTH + 16} {name_y:.1f}'/>"
    return marks + f"<text x='{WIDTH + 19}' y='{name_y + 3.5:.1f}'>{name}</text>"


def spread(heights: Sequence[float]) -> list[float]:
    """Where names are written so that they do not overlap, as near to the given heights, which ascend, as can be.

    >>> spread([100.0, 101.0, 300.0])
    [93.75, 107.25, 300.0]
    """
    groups: list[list[float]] = []  # of names below each other: the top of each, if it were alone in its group
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _top(groups[-1]) < _top(groups[-2]) + LINE_HEIGHT * len(groups[-2]):
            last = groups.pop()
            groups[-1] += [top - LINE_HEIGHT * len(groups[-1]) for top in last]
    return [_top(group) + LINE_HEIGHT * at for group in groups for at in range(len(group))]


def _top(group: Sequence[float]) -> float:
    """The mean, moved so that the group is inside the plot."""
    return max(0.0, min(sum(group) / len(group), HEIGHT - LINE_HEIGHT * (len(group) - 1)))
