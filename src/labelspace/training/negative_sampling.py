"""The labels that a batch learns on: all of them, or its own with some others, where there are too many for a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelspace.types import Csr, Floats, Ints

ALL_LABELS = 20_000  # up to here a step learns on every label


@dataclass(frozen=True)
class SampledLabels:
    """Labels, each once, and where in them the documents' own stand."""

    ids: Ints  # (n,)
    columns: Ints  # places in ids: those of document i are columns[ends[i] : ends[i + 1]]
    ends: Ints
    weights: Floats | None = None  # (n,) how many labels each stands for
    n_sure: int = 0  # the first so many ids stand in rising order, with all true ones among them

    @property
    def every(self) -> bool:
        """Whether these are all labels to choose from, in their order."""
        return self.weights is None


def choose(
    true: Csr, labels: Ints, negatives: int, rng: np.random.Generator, near: Ints | None = None
) -> SampledLabels:
    """The batch's own labels, those listed in ``near`` (-1 is none), and some drawn by chance for all documents.

    A drawn label stands for as many as were left out for it, so that sums over labels stay what they are on average.
    """
    listed = [true.indices] if near is None else [true.indices, near.ravel()]
    sure = np.unique(np.concatenate(listed))
    sure = sure[sure >= 0]
    others = np.setdiff1d(labels[rng.integers(0, len(labels), negatives)], sure)
    weights = np.ones(len(sure) + len(others), np.float32)
    weights[len(sure) :] = (len(labels) - len(sure)) / max(len(others), 1)
    ids = np.concatenate([sure, others])
    return SampledLabels(ids, np.searchsorted(sure, true.indices).astype(np.int32), true.indptr, weights, len(sure))


def seen_labels(Y: Csr) -> Ints:
    """The labels with a document."""
    return np.unique(Y.indices).astype(np.int32)
