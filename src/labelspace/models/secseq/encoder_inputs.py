"""What the encoder reads: per document one row of features, or one row per token."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp

from labelspace.features.sequences import PAD, UNKNOWN
from labelspace.kernels import large_arrays
from labelspace.training.sparse_layers import Batch, batch_rows
from labelspace.types import Csr, Ints, Longs

DOCUMENT_BLOCK = 2**12  # documents that are read at a time


@dataclass(frozen=True)
class EncoderInputs:
    """Documents as rows of a sparse table: document i has rows starts[i] to starts[i + 1] - 1.

    >>> EncoderInputs.from_token_ids(np.array([[3, 1, 0], [4, 3, 3]], np.int32), n_tokens=5).starts.tolist()
    [0, 2, 5]
    """

    table: Csr  # (n_rows, n_features or n_tokens)
    starts: Longs  # (n + 1,)

    @classmethod
    def from_features(cls, X: Csr) -> Self:
        """One row of features per document."""
        return cls(X, np.arange(X.shape[0] + 1))

    @classmethod
    def from_token_ids(cls, ids: Ints, n_tokens: int) -> Self:
        """One row per token of ids (n, max_length), with a 1 in the token's column; unknown words are empty rows."""
        is_known, columns, lengths = large_arrays.growing(np.bool_), large_arrays.growing(np.int32), [np.zeros(0, int)]
        for part in large_arrays.blocks(len(ids), DOCUMENT_BLOCK):
            is_token = ids[part] != PAD
            tokens = ids[part][is_token]
            is_known.append(tokens != UNKNOWN)
            columns.append(tokens[tokens != UNKNOWN])
            lengths.append(is_token.sum(axis=1))
        known, indices = is_known.finish(), columns.finish()
        ones, indptr = large_arrays.empty(len(indices), np.float32), large_arrays.empty(len(known) + 1, np.int32)
        ones[:], indptr[0] = 1.0, 0
        np.cumsum(known, out=indptr[1:])
        table = sp.csr_matrix((ones, indices, indptr), shape=(len(known), n_tokens))
        return cls(table, np.append(0, np.cumsum(np.concatenate(lengths))))

    @property
    def n(self) -> int:
        """The number of documents."""
        return len(self.starts) - 1

    def batch(self, documents: Ints, dropout: float, rng: np.random.Generator) -> tuple[Batch, Ints]:
        """The table's rows of some documents, values dropped at random, and the number of rows per document."""
        lengths = np.diff(self.starts)[documents]
        before = np.cumsum(lengths) - lengths
        rows = np.repeat(self.starts[documents] - before, lengths) + np.arange(lengths.sum())
        return batch_rows(self.table, rows.astype(np.int32), dropout, rng), lengths.astype(np.int32)
