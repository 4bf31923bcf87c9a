"""Documents as a network reads them: each a row of features, or a row for each of its words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from labelspace.features.sequences import PAD, UNKNOWN
from labelspace.training.sparse_layers import Batch, batch_rows
from labelspace.types import Csr, Ints, Longs


@dataclass(frozen=True)
class EncoderInputs:
    """Some documents, document i as rows starts[i] to starts[i + 1] - 1 of a table.

    >>> EncoderInputs.of_tokens(np.array([[3, 1, 0], [4, 3, 3]], np.int32), n_tokens=5).part(np.array([1])).starts.tolist()
    [0, 3]
    """

    table: Csr  # (rows, features or tokens)
    starts: Longs  # (n + 1,)

    @classmethod
    def of_features(cls, X: Csr) -> EncoderInputs:
        """Each document as one row of features."""
        return cls(X, np.arange(X.shape[0] + 1))

    @classmethod
    def of_tokens(cls, ids: Ints, n_tokens: int) -> EncoderInputs:
        """Documents as their tokens (n, longest), a row each; that of an unknown word is empty."""
        there = ids != PAD
        tokens = ids[there]
        known = tokens != UNKNOWN
        ends = np.append(0, np.cumsum(known)).astype(np.int32)
        table = sp.csr_matrix((np.ones(ends[-1], np.float32), tokens[known], ends), shape=(len(tokens), n_tokens))
        return cls(table, np.append(0, np.cumsum(there.sum(axis=1))))

    @property
    def n(self) -> int:
        """How many documents there are."""
        return len(self.starts) - 1

    def batch(self, documents: Ints, dropout: float, rng: np.random.Generator) -> tuple[Batch, Ints]:
        """The rows of some documents, and how many each has; values are left out by chance."""
        rows, sizes = self._rows(documents)
        return batch_rows(self.table, rows, dropout, rng), sizes

    def part(self, documents: Ints) -> EncoderInputs:
        """Some documents."""
        rows, sizes = self._rows(documents)
        return EncoderInputs(self.table[rows], np.append(0, np.cumsum(sizes)))

    def _rows(self, documents: Ints) -> tuple[Ints, Ints]:
        sizes = np.diff(self.starts)[documents]
        before = np.cumsum(sizes) - sizes
        rows = np.repeat(self.starts[documents] - before, sizes) + np.arange(sizes.sum())
        return rows.astype(np.int32), sizes.astype(np.int32)
