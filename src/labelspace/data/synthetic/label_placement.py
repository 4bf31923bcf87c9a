"""The labels of the documents of a shaped data set: a long tail, and labels that occur together.

1. The number of training documents of a label follows a power law from 1 on, cut at the largest label, with the mean of
   the shape.
2. Each label has a place on a circle, and covers an arc in proportion to its frequency: its occurrences lie there at
   nearly equal distances, except for some that lie anywhere.
3. The documents take the occurrences in the order of the circle, at least one and on average the mean of the shape:
   labels of near positions occur together, and frequent ones with many others.

Test documents are drawn from the same positions and frequencies.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from labelspace.data.synthetic.shapes import Shape
from labelspace.types import Csr, Floats, Ints, Longs

OVERLAP = 3  # arc of a label over the span of its documents: larger arcs make more labels occur together
STRAY = 0.1  # share of occurrences that lie anywhere
_LARGEST_MEANS, _LARGEST_SHARE = 25, 0.25  # of the largest label at least, else a small fraction would have no tail
_STEPS = 50  # of the bisection of the exponent


@dataclass(frozen=True)
class Placement:
    """Frequencies and positions of the labels, (n_labels,) each."""

    counts: Longs
    positions: Floats

    @classmethod
    def draw(cls, shape: Shape, rng: np.random.Generator) -> "Placement":
        """Draw frequencies and positions: steps 1 and 2."""
        counts = rng.permutation(label_counts(shape))
        return cls(counts, rng.random(len(counts), dtype=np.float32))

    def documents(self, n: int, n_train: int, rng: np.random.Generator) -> tuple[Csr, Floats]:
        """Draw labels (n, n_labels) and positions (n,) of n documents, in random order: step 3."""
        n_labels = len(self.counts)
        counts = (self.counts * (n / n_train) + rng.random(n_labels)).astype(np.int64)  # of train: themselves
        labels = np.repeat(np.arange(n_labels, dtype=np.int32), counts)
        positions = self._occurrences(counts, labels, n_train, rng)
        order = np.argsort(positions, kind="stable")
        labels, positions = labels[order], positions[order]
        extra = rng.integers(0, n, len(labels) - n, dtype=np.int32)
        ends = np.cumsum(1 + np.bincount(extra, minlength=n))
        starts = np.concatenate([[0], ends]).astype(np.int64)
        Y = sp.csr_matrix((np.ones(len(labels), np.float32), labels, starts), shape=(n, n_labels))
        Y.sum_duplicates()
        Y.data[:] = 1.0
        shuffled = rng.permutation(n)
        return Y[shuffled], positions[(starts[:-1] + starts[1:]) // 2][shuffled]

    def _occurrences(self, counts: Longs, labels: Ints, n_train: int, rng: np.random.Generator) -> Floats:
        """Return the place of each occurrence of each label."""
        arcs = np.minimum(OVERLAP * self.counts / n_train, 1.0)
        step = (arcs / np.maximum(counts, 1)).astype(np.float32)
        first = (self.positions - arcs / 2).astype(np.float32)
        number = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
        positions = rng.random(len(labels), dtype=np.float32)
        positions += number.astype(np.float32)
        positions *= step[labels]
        positions += first[labels]
        stray = np.flatnonzero(rng.random(len(labels), dtype=np.float32) < STRAY)
        positions[stray] = rng.random(len(stray), dtype=np.float32)
        return np.mod(positions, np.float32(1.0))


def label_counts(shape: Shape) -> Longs:
    """Return the number of training documents of each label, ascending: step 1."""
    n, n_labels = shape.train_documents, shape.labels
    mean = n * shape.labels_per_document / n_labels
    largest = max(shape.largest_share * n, min(_LARGEST_MEANS * mean, _LARGEST_SHARE * n))
    sizes = np.arange(1, int(largest) + 1)

    def labels_of_size(exponent: float) -> Longs:
        up_to = np.cumsum(sizes**-exponent)
        numbers: Longs = np.diff(np.rint(n_labels * up_to / up_to[-1]), prepend=0.0).astype(np.int64)
        return numbers

    low, high = 0.0, 8.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if labels_of_size(middle) @ sizes > mean * n_labels:
            low = middle
        else:
            high = middle
    return np.repeat(sizes, labels_of_size(high))
