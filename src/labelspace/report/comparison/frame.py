"""A plot with an axis at the left, an axis below, and the names of the methods at the right, joined to their points."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from labelspace.report.comparison.scales import spread
from labelspace.report.comparison.svg import group, line, svg, text

HEIGHT = 340.0  # pixels of the area that is drawn on
EDGE = 8.0  # pixels above and below the axis, for points at its ends
NAME_GAP = 17.0  # pixels from name to name
MAX_NAME = 23  # characters
Ticks = Sequence[tuple[float, str]]  # position in percent, text


def y_pixel(percent: float) -> float:
    """The y of a position on the axis at the left, from 0 (below) to 100.

    >>> y_pixel(0), y_pixel(100)
    (332.0, 8.0)
    """
    return round(HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * percent / 100, 2)


@dataclass
class Frame:
    """The parts of a plot, each an SVG in its place."""

    x_title: str
    y_title: str
    x_ticks: Ticks
    y_ticks: Ticks
    said: str  # for those who do not see it
    behind: str = ""  # marks below the methods
    marks: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    longest: int = 0  # characters of a name

    def add_methods(self, methods: Sequence[tuple[int, str, str, str, tuple[float, float]]]) -> None:
        """Add methods: index, name, color, marks, and the point (x in percent, y) that its name is joined to."""
        heights = name_heights([point[1] for *_, point in methods])
        self.longest = max(len(name) for _, name, *_ in methods)
        for (index, name, color, marks, (x, y)), height in zip(methods, heights, strict=True):
            leader = line(x, y, 100, height, "leader")
            self.marks.append(group(leader + marks, index, color))
            self.names.append(group(text(0, height + 4, name, "name"), index, color))

    def html(self, kind: str = "") -> str:
        """The plot; ``kind`` is one more class."""
        grid = "".join(line(0, y_pixel(at), 100, y_pixel(at), "grid") for at, _ in self.y_ticks)
        left = "".join(text(100, y_pixel(at) + 4, said, "tick end") for at, said in self.y_ticks)
        below = "".join(text(at, 16, said, "tick middle") for at, said in self.x_ticks)
        uprights = "".join(line(at, 0, at, HEIGHT, "grid") for at, _ in self.x_ticks)
        area = f"<g class='ticks'>{grid}{uprights}</g>{self.behind}{''.join(self.marks)}"
        return (
            f"<div class='frame {kind}' style='--n:{self.longest}' role='img' aria-label='{escape(self.said)}'>"
            f"<div class='y-title'>{escape(self.y_title)}</div>"
            f"{svg(left, HEIGHT, 'y-axis')}"
            f"{svg(area, HEIGHT, 'area')}"
            f"{svg(''.join(self.names), HEIGHT, 'names')}"
            f"{svg(below, 24, 'x-axis')}<div class='x-title'>{escape(self.x_title)}</div></div>"
        )


def beside(method: str, value: float | None) -> str:
    """The name at a point; with its value where that lies below the axis, and shortened where it is long.

    >>> beside("popular", 9.6), beside("a very long name of a method", None)
    ('popular ↓ 9.6', 'a very long name of a …')
    """
    name = method if len(method) <= MAX_NAME else method[: MAX_NAME - 1] + "…"
    return name if value is None else f"{name} ↓ {value:.1f}"


def name_heights(heights: Sequence[float]) -> list[float]:
    """Where the names of points at these heights stand."""
    return spread(heights, NAME_GAP, EDGE, HEIGHT - EDGE)
