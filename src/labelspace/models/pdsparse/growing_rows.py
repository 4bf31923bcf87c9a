"""The weights of all labels while they are trained: a sparse matrix whose rows grow."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import scipy.sparse as sp

from labelspace.kernels.growing_rows import nonzero_rows
from labelspace.types import Csr, Floats, Ints, Longs

INITIAL_ROOM = 1024


@dataclass
class GrowingRows:
    """V (n_rows, n_labels): see ``kernels/growing_rows.py``."""

    n_labels: int
    labels: Ints
    values: Floats
    starts: Longs
    sizes: Ints
    rooms: Ints
    end: Longs

    @classmethod
    def empty(cls, n_rows: int, n_labels: int) -> Self:
        """All zero."""
        return cls(
            n_labels,
            np.empty(INITIAL_ROOM, np.int32),
            np.empty(INITIAL_ROOM, np.float32),
            np.zeros(n_rows, np.int64),
            np.zeros(n_rows, np.int32),
            np.zeros(n_rows, np.int32),
            np.zeros(1, np.int64),
        )

    def copy(self) -> Self:
        """The same, with memory of its own."""
        arrays = (getattr(self, field.name).copy() for field in fields(self) if field.name != "n_labels")
        return type(self)(self.n_labels, *arrays)

    def grow(self) -> None:
        """Twice the pool."""
        self.labels = np.concatenate([self.labels, np.empty_like(self.labels)])
        self.values = np.concatenate([self.values, np.empty_like(self.values)])

    def above(self, l1: Floats, shrink: bool) -> Csr:
        """The entries above l1 (n_rows) in size, soft-thresholded or as they are. Shape (n_rows, n_labels)."""
        size, indptr = int(self.sizes.sum()), np.empty(len(self.starts) + 1, np.int64)
        labels, values = np.empty(size, np.int32), np.empty(size, np.float32)
        n = nonzero_rows(l1, self.labels, self.values, self.starts, self.sizes, shrink, indptr, labels, values)
        return sp.csr_matrix((values[:n], labels[:n], indptr), shape=(len(self.starts), self.n_labels))

    def drop_below(self, l1: Floats) -> None:
        """Keep only the entries above l1 in size."""
        kept = self.above(l1, shrink=False)
        self.labels, self.values = kept.indices.astype(np.int32), kept.data
        self.starts, self.sizes = kept.indptr[:-1].astype(np.int64), np.diff(kept.indptr).astype(np.int32)
        self.rooms, self.end = self.sizes.copy(), np.array([kept.nnz], np.int64)
