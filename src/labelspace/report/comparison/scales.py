"""Axes that start near the data, and positions of names that do not overprint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

WIDE = 20.0  # a cost that spans more than this factor has a logarithmic axis
FAR = 0.5  # values below this share of the best one are beyond the axis
MARGIN = 0.06  # of the axis, on both sides of the data
LEAST = 1e-3  # of a logarithmic axis: times of 0 were rounded


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

    @staticmethod
    def near(values: Sequence[float], bounds: Sequence[float] = ()) -> Axis:
        """An axis of accuracies: of all values that are at least half as good as the best, with their bounds."""
        reach = FAR * max(values)
        return Axis.around([value for value in (*values, *bounds) if value >= reach])

    @staticmethod
    def around(values: Sequence[float]) -> Axis:
        """An axis of all values."""
        low, high = min(values), max(values)
        room = MARGIN * (high - low) or max(abs(high), 1.0) * MARGIN
        return Axis(max(low - room, 0.0) if low >= 0 else low - room, high + room)

    @staticmethod
    def of_costs(values: Sequence[float]) -> Axis:
        """An axis of costs, logarithmic where they span much.

        >>> [label for _, label in Axis.of_costs([0.01, 3.0]).ticks]
        ['0.01', '0.1', '1']
        """
        low, high = min(values), max(values)
        if max(high, LEAST) / max(low, LEAST) <= WIDE:
            room = MARGIN * (high - low) or max(abs(high), LEAST) * MARGIN
            return Axis(max(low - room, 0.0), high + room)
        low, high = max(low, LEAST), max(high, LEAST)
        room = (high / low) ** MARGIN
        return Axis(low / room, high * room, is_log=True)

    def holds(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return value >= self.low or self.is_log

    def percent(self, value: float) -> float:
        """The position of a value, from 0 to 100; that of the nearest end where it lies beyond."""
        if self.is_log:
            share = log10(max(value, self.low) / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.0), 1.0), 3)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Round values on the axis, with their texts."""
        return _log_ticks(self.low, self.high) if self.is_log else _linear_ticks(self.low, self.high)


def _linear_ticks(low: float, high: float) -> list[tuple[float, str]]:
    size = 10.0 ** floor(log10((high - low) / 3))
    step = next(step for step in (size, 2 * size, 5 * size, 10 * size) if (high - low) / step <= 6)
    digits = max(0, -floor(log10(step)))
    return [(k * step, f"{k * step:,.{digits}f}") for k in range(ceil(low / step), floor(high / step) + 1)]


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    values = [10.0**power for power in powers if low <= 10.0**power <= high]
    if len(values) < 3:
        values = [k * 10.0**power for power in powers for k in (1, 2, 5) if low <= k * 10.0**power <= high]
    return [(value, f"{value:,g}") for value in values]


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions in the same order, at least ``gap`` apart where there is room, between two ends, near the given ones.

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
