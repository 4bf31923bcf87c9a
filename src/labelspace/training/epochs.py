"""A training of so many epochs: it can be cut off and go on to the same result, and end where it was best."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from labelspace.errors import DataError
from labelspace.store import Arrays
from labelspace.training.checkpoints import Checkpoint
from labelspace.training.early_stopping import hold_some, stops
from labelspace.types import Csr, Ints

HELD_SHARE, HELD_DOCUMENTS = 0.1, 2_000  # parted from train for early stopping, where none are given


class Trained(Protocol):
    """What is trained: all that changes with a step."""

    number: int  # steps begun

    def arrays(self) -> Arrays:
        """The arrays themselves, not copies."""


def follow(
    net: Trained,
    epochs: int,
    epoch: Callable[[int], None],
    accuracy: Callable[[], float] | None,
    patience: int | None,
    what: Mapping[str, Any],
    folder: Path | None,
    name: str = "checkpoint",
) -> list[float]:
    """Train ``net`` by ``epoch(0)``, ``epoch(1)``, ...; the accuracies after each epoch are returned, where asked for.

    What an epoch draws must go by its number alone. A training of the same parameters and data, ``what``, that was cut
    off goes on from what it left in ``folder``. With ``accuracy`` the net ends as it was after its best epoch, and at
    the latest ``patience`` epochs later.
    """
    with tempfile.TemporaryDirectory() as scratch:
        last = Checkpoint(folder or scratch, what, name)
        best = Checkpoint(folder or scratch, what, "best" if name == "checkpoint" else f"{name}-best")
        course = last.read(net.arrays()) or {"done": 0, "number": 0, "accuracies": []}
        net.number = course["number"]
        while course["done"] < epochs and not stops(course["accuracies"], patience):
            epoch(course["done"])
            course = {**course, "done": course["done"] + 1, "number": net.number}
            if accuracy is not None:
                course["accuracies"] = [*course["accuracies"], accuracy()]
                if int(np.argmax(course["accuracies"])) == course["done"] - 1:
                    best.write(net.arrays(), course)
            if folder is not None:
                last.write(net.arrays(), course)
        if accuracy is not None:
            best.read(net.arrays())
    accuracies: list[float] = course["accuracies"]
    return accuracies


def rows_to_stop_by(Y: Csr, seed: int) -> tuple[Ints, Ints]:
    """Rows to train on, and rows to stop by, where no validation documents are given."""
    parted = hold_some(Y, HELD_SHARE, HELD_DOCUMENTS, seed)
    if parted is None:
        raise DataError(
            f"early stopping needs some documents with labels to stop by, but there are {Y.shape[0]} in all; "
            "give validation documents, or leave patience out"
        )
    return parted
