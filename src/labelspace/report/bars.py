"""Bars of steps, and of a whole of many steps, on a terminal."""

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from labelspace.report.progress import time_left

BAR_WIDTH = 24  # characters; with the text beside it, it fits into 80 columns


class _Done(MofNCompleteColumn):
    """How much is done: a count of a step, a share of a whole."""

    def render(self, task: Task) -> Text:
        if "end" not in task.fields:
            return super().render(task)
        return Text(f"{task.percentage:3.0f}%", style="progress.percentage")


class _RateOrTimeLeft(TextColumn):
    """The rate of a step, or the time left of a whole, which goes on between two reports."""

    def render(self, task: Task) -> Text:
        if "end" not in task.fields:
            return super().render(task)
        end = task.fields["end"]
        return Text("" if end is None or task.finished else time_left(end - time.monotonic()))


def bars() -> Progress:
    """Bars on stderr; a task has the field ``rate``, a text, and that of a whole ``end``: when it ends, or None."""
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(BAR_WIDTH), _Done(), TimeElapsedColumn(),
        _RateOrTimeLeft("{task.fields[rate]}"),
    )  # fmt: skip
    return Progress(*columns, console=Console(stderr=True), transient=True)
