"""Where independent tasks of a training run, if not in this process: the machines of a cluster.

A task is a function of a module, called with what all tasks share and an item of its own; what it returns must not
depend on where, when or how often it runs: a task whose machine is lost is run again.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Executor(Protocol):
    """Runs tasks, some at a time."""

    n_cpus: int  # of all machines

    def map_unordered(
        self,
        task: Callable[[Any, Item], Result],
        shared: Any,  # noqa: ANN401 - whatever the tasks need
        items: Sequence[Item],
        whole_node: bool = False,
    ) -> Iterator[tuple[int, Result]]:
        """``task(shared, item)`` of every item: its position and the result, as each gets done.

        A task has one thread, or with ``whole_node`` all those of a machine.
        """
