"""How a training goes over its documents."""

from __future__ import annotations

BATCHES = 16  # an epoch has at least so many, where there are as many documents


def portions(n: int, batch: int, epochs: int | None, steps: int, bounds: tuple[int, int]) -> tuple[int, int]:
    """The size of a batch and the number of epochs for n documents.

    A batch is no larger than leaves some to an epoch. Epochs, unless given, are those that make so many steps, within
    bounds.

    >>> portions(1000, batch=256, epochs=None, steps=300, bounds=(8, 12)), portions(45_000, 256, None, 300, (8, 12))
    ((63, 12), (256, 8))
    """
    batch = min(batch, -(-n // BATCHES))
    fewest, most = bounds
    return batch, epochs or min(max(round(steps / -(-n // batch)), fewest), most)
