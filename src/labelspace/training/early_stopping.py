"""How a training goes over its documents, and when it has gone over them enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from labelspace.types import Csr, Ints, Progress, TopK

BATCHES = 16  # an epoch has at least so many, where there are as many documents
PLACES = 5  # that count in accuracy


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


def batches(
    n: int, batch: int, epochs: int, rng: np.random.Generator, progress: Progress, phase: int = 0, phases: int = 1
) -> Iterator[tuple[Ints, float]]:
    """The rows of each batch, in a new order each epoch, and the share of all batches that is left with it.

    ``progress`` hears how many epochs are over, of all phases of so many epochs each.

    >>> [(len(rows), round(left, 2)) for rows, left in batches(5, 3, 2, np.random.default_rng(0), print)]
    epochs 1 2
    epochs 2 2
    [(3, 1.0), (2, 0.75), (3, 0.5), (2, 0.25)]
    """
    starts = range(0, n, batch)
    for epoch in range(epochs):
        order = rng.permutation(n).astype(np.int32)
        for at, start in enumerate(starts):
            yield order[start : start + batch], 1.0 - (epoch * len(starts) + at) / (epochs * len(starts))
        progress("epochs", phase * epochs + epoch + 1, phases * epochs)


def hold_some(Y: Csr, share: float, most: int, seed: int) -> tuple[Ints, Ints] | None:
    """Rows to train on, and rows held out, drawn by chance; None where either would be without a label.

    A document with a label that no other one to train on has is not held out: its label could not be learned.
    """
    order = np.random.default_rng(seed).permutation(Y.shape[0])
    n = min(round(share * Y.shape[0]), most)
    held, rest = np.sort(order[:n]), np.sort(order[n:])
    unknown = np.bincount(Y[rest].indices, minlength=Y.shape[1]) == 0
    needed = Y[held] @ unknown.astype(np.float32) > 0
    rest, held = np.sort(np.concatenate([rest, held[needed]])), held[~needed]
    return (rest, held) if Y[held].nnz and Y[rest].nnz else None


def stops(accuracies: Sequence[float], patience: int | None) -> bool:
    """Whether the best epoch is ``patience`` epochs ago.

    >>> stops([0.1, 0.5, 0.4], patience=1), stops([0.1, 0.5, 0.4], patience=2), stops([0.1], patience=None)
    (True, False, False)
    """
    return patience is not None and len(accuracies) - 1 - int(np.argmax([*accuracies, -1])) >= patience


def share_right(top: TopK, Y: Csr) -> float:
    """The share of right labels among the first places, at most as many as a document has; 0 where none has any."""
    hits = top.to_csr(Y.shape[1]).multiply(Y).sum(axis=1).A1
    most = np.minimum(np.diff(Y.indptr), PLACES)
    return float((hits[most > 0] / most[most > 0]).mean()) if most.any() else 0.0
