"""Negatives drawn for each document by itself, as in the papers, and the pairs of a batch that a step then compares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelspace.types import Csr, Ints, Longs


@dataclass(frozen=True)
class SampledPairs:
    """Pairs of a document and a target, a label or another document: first all positives, row by row, then negatives.

    Their scores fit a table with a row per document, whose first columns are its positives and whose last
    ``n_negatives`` are its negatives; between them, rows with fewer positives than others are empty.
    """

    ids: Ints  # (n,) the targets of the batch, each once, sorted
    documents: Ints  # (pairs,) rows of the batch
    targets: Ints  # (pairs,) positions in ``ids``
    columns: Ints  # (pairs,) of the table; the first indptr[-1] are those of positives
    indptr: Ints  # (batch + 1,) the positives of each document
    width: int  # of the table
    covers_all = False  # as of ``SampledLabels``: these are not all targets, in their order


def sample_pairs(true: Csr, excluded: Csr, n_negatives: int, rng: np.random.Generator) -> SampledPairs:
    """The positives ``true`` of each document, and ``n_negatives`` drawn for it uniformly, with replacement.

    The columns of both matrices are the targets. No column in a document's row of ``excluded`` is drawn; a document
    with all of them has no negative.
    """
    n, counts = true.shape[0], np.diff(true.indptr)
    negatives = draw_outside(excluded, n_negatives, rng)
    drawn = np.flatnonzero(np.diff(excluded.indptr) < excluded.shape[1]).astype(np.int32)  # documents with negatives
    most = int(counts.max(initial=0))
    ids, targets = np.unique(np.concatenate([true.indices, negatives[drawn].ravel()]), return_inverse=True)
    positive_columns = np.arange(len(true.indices)) - np.repeat(true.indptr[:-1], counts)
    negative_columns = np.tile(np.arange(most, most + n_negatives), len(drawn))
    return SampledPairs(
        ids.astype(np.int32),
        np.concatenate([np.repeat(np.arange(n, dtype=np.int32), counts), np.repeat(drawn, n_negatives)]),
        targets.astype(np.int32),
        np.concatenate([positive_columns, negative_columns]).astype(np.int32),
        true.indptr,
        most + n_negatives,
    )


def draw_outside(excluded: Csr, n_draws: int, rng: np.random.Generator) -> Longs:
    """Columns drawn for each row, uniformly with replacement, among those the row does not have. Shape (n, n_draws).

    The m-th column that a row lacks is m + i, where i of its own columns are below it: those with c_i - i <= m for
    its i-th column c_i. One search finds i for all rows, since rows can be laid out one after another. A row with all
    columns gets the number of columns, which is none of them.

    >>> import scipy.sparse as sp
    >>> has = sp.csr_matrix(np.array([[1, 0, 1, 1], [1, 1, 1, 1]]))
    >>> draw_outside(has, 3, np.random.default_rng(0)).tolist()
    [[1, 1, 1], [4, 4, 4]]
    """
    n, n_columns = excluded.shape
    counts = np.diff(excluded.indptr).astype(np.int64)
    ranks = (rng.random((n, n_draws)) * (n_columns - counts)[:, None]).astype(np.int64)
    starts = np.arange(n, dtype=np.int64)[:, None] * (n_columns + 1)
    order = np.arange(len(excluded.indices)) - np.repeat(excluded.indptr[:-1], counts)
    gaps = excluded.indices - order + np.repeat(starts[:, 0], counts)  # sorted, as the columns of each row are
    below = np.searchsorted(gaps, ranks + starts, side="right") - excluded.indptr[:-1, None]
    return np.asarray(ranks + below, np.int64)
