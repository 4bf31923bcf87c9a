"""The weights of all labels while they are trained: a sparse matrix whose rows grow."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import scipy.sparse as sp

from labelspace.models.pdsparse.kernels import nonzero_rows
from labelspace.types import Csr, Floats, Ints, Longs

INITIAL_ROOM = 1024


@dataclass
class GrowingRows:
    """V (n_rows, n_labels): see ``kernels.py``."""

    n_labels: int
    labels: Ints
    values: Floats
    moments: Floats
    starts: Longs
    sizes: Ints
    rooms: Ints
    end: Longs

    @classmethod
    def empty(cls, n_rows: int, n_labels: int) -> Self:
        """All zero."""
        return cls(
            n_labels,
            np.zeros(INITIAL_ROOM, np.int32),
            np.zeros(INITIAL_ROOM, np.float32),
            np.zeros(INITIAL_ROOM, np.float32),
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
        self.labels = np.concatenate([self.labels, np.zeros_like(self.labels)])
        self.values = np.concatenate([self.values, np.zeros_like(self.values)])
        self.moments = np.concatenate([self.moments, np.zeros_like(self.moments)])

    def mean(self, n_steps: int) -> Self:
        """The mean over the steps made, where step t has weight t and its moment is t (t - 1)."""
        values = self.values - self.moments * np.float32(1 / (n_steps * (n_steps + 1)))
        return replace(self, values=values)

    def above(self, l1: Floats, shrink: bool = True) -> Csr:
        """The entries above l1 (n_rows) in size, soft-thresholded or as they are. Shape (n_rows, n_labels)."""
        size, indptr = int(self.sizes.sum()), np.empty(len(self.starts) + 1, np.int64)
        labels, values = np.empty(size, np.int32), np.empty(size, np.float32)
        n = nonzero_rows(l1, self.labels, self.values, self.starts, self.sizes, shrink, indptr, labels, values)
        return sp.csr_matrix((values[:n], labels[:n], indptr), shape=(len(self.starts), self.n_labels))

    def keep(self, support: Csr) -> None:
        """Keep only the entries where ``support`` is not zero; what was added before does not count in a mean."""
        kept = self.above(np.zeros(len(self.starts), np.float32), shrink=False).multiply(support != 0).tocsr()
        self.labels, self.values = kept.indices.astype(np.int32), kept.data.astype(np.float32)
        self.moments = np.zeros_like(self.values)
        self.starts, self.sizes = kept.indptr[:-1].astype(np.int64), np.diff(kept.indptr).astype(np.int32)
        self.rooms, self.end = self.sizes.copy(), np.array([kept.nnz], np.int64)
