"""Exact nearest neighbors among sparse rows by an inverted index, and their votes for labels."""

import numpy as np

from labelspace.kernels.compiled import integer, kernel, part
from labelspace.kernels.inner_products import dot
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints

ROUNDING = 1e-5  # tolerance for float32 sums against a bound


@part()
def score_rare_features(
    data: Floats, features: Ints, index_data: Floats, index_rows: Ints, index_indptr: Ints, sums: Floats,
    rows: Ints, row_sums: Floats,
) -> int:  # fmt: skip
    """Inner products of a query with the indexed rows that share a rare feature with it; returns how many there are.

    Fills the front of ``rows`` and ``row_sums``; ``sums`` (n_indexed) is scratch, all zeros before and after.
    """
    n_postings = 0
    for j in range(len(data)):
        start, stop = index_indptr[features[j]], index_indptr[features[j] + 1]
        for pos in range(start, stop):
            sums[index_rows[pos]] += data[j] * index_data[pos]
        n_postings += stop - start
    n_candidates = 0
    if n_postings < len(sums):  # few: visit the postings again, not every row
        for j in range(len(data)):
            for pos in range(index_indptr[features[j]], index_indptr[features[j] + 1]):
                row = index_rows[pos]
                if sums[row] != 0.0:
                    rows[n_candidates], row_sums[n_candidates] = row, sums[row]
                    sums[row] = 0.0
                    n_candidates += 1
    else:
        for row in range(len(sums)):
            if sums[row] != 0.0:
                rows[n_candidates], row_sums[n_candidates] = row, sums[row]
                sums[row] = 0.0
                n_candidates += 1
    return n_candidates


@part()
def nearest_to_query(
    query: Floats, common: Floats, common_norms: Floats, max_common_norm: np.float32, n_candidates: int, rows: Ints,
    row_sums: Floats, sums: Floats, neighbors: Ints, similarities: Floats,
) -> None:  # fmt: skip
    """The indexed rows with the largest inner product with one query, best first; only positive ones count.

    Common features are stored densely (``common``, n_indexed x n_common) and not read for every row: they add at most
    |query| * common_norms[row], both norms over the common features. The rows that lead on the rare features alone
    (``row_sums``) are scored first; then only rows that can still reach the k-th best of them are scored.
    """
    k = len(neighbors)
    query_norm = np.sqrt(dot(query, query))
    leaders, leader_sums = np.empty(2 * k, np.int32), np.empty(2 * k, np.float32)
    size = integer(0)
    for i in range(n_candidates):
        if size < len(leaders) or row_sums[i] > leader_sums[0]:
            size = push(leader_sums, leaders, size, row_sums[i], i)
    n_exact = integer(0)
    for i in range(size):
        value = row_sums[leaders[i]] + dot(query, common[rows[leaders[i]]])
        if value > 0.0:
            n_exact = push(similarities, neighbors, n_exact, value, rows[leaders[i]])
    threshold = similarities[0] - ROUNDING if n_exact == k else 0.0
    size = integer(0)
    for i in range(n_candidates):
        if row_sums[i] + query_norm * common_norms[rows[i]] >= threshold:
            value = row_sums[i] + dot(query, common[rows[i]])
            if value > 0.0 and (size < k or value >= similarities[0]):
                size = push(similarities, neighbors, size, value, rows[i])
    if query_norm > 0.0 and query_norm * max_common_norm >= threshold:  # rows that share common features only
        for i in range(n_candidates):
            sums[rows[i]] = 1.0
        for row in range(len(sums)):
            if sums[row] == 0.0 and query_norm * common_norms[row] >= threshold:
                value = dot(query, common[row])
                if value > 0.0 and (size < k or value >= similarities[0]):
                    size = push(similarities, neighbors, size, value, row)
            sums[row] = 0.0
    sort_best_first(similarities, neighbors, size)


@kernel()
def nearest_rows(
    data: Floats, indices: Ints, indptr: Ints, start: int, stop: int, index_data: Floats, index_rows: Ints,
    index_indptr: Ints, common_column: Ints, common: Floats, common_norms: Floats, neighbors: Ints,
    similarities: Floats,
) -> None:  # fmt: skip
    """Nearest indexed rows of the rows start..stop of a CSR matrix.

    The indexed matrix has two parts: rare features as CSC (index_...), common ones dense (n_indexed, n_common) with
    ``common_column`` (n_features), the column of a common feature there, or -1. ``neighbors`` and ``similarities``
    (stop - start, k) are filled best first and padded with -1 and -inf.
    """
    n_stored = len(common_norms)
    sums, row_sums = np.zeros(n_stored, np.float32), np.empty(n_stored, np.float32)
    rows = np.empty(n_stored, np.int32)
    max_common_norm = np.float32(0.0)
    for i in range(n_stored):
        max_common_norm = max(max_common_norm, common_norms[i])
    for row in range(start, stop):
        values, features = data[indptr[row] : indptr[row + 1]], indices[indptr[row] : indptr[row + 1]]
        query = np.zeros(common.shape[1], np.float32)
        for j in range(len(values)):
            if common_column[features[j]] >= 0:
                query[common_column[features[j]]] = values[j]
        n_candidates = score_rare_features(values, features, index_data, index_rows, index_indptr, sums, rows, row_sums)
        i = row - start
        nearest_to_query(
            query, common, common_norms, max_common_norm, n_candidates, rows, row_sums, sums, neighbors[i],
            similarities[i],
        )  # fmt: skip


@kernel()
def vote(
    neighbors: Ints, weights: Floats, y_indices: Ints, y_indptr: Ints, extra_labels: Ints, extra_weights: Floats,
    n_labels: int, out_labels: Ints, out_scores: Floats,
) -> None:  # fmt: skip
    """The labels with most votes: of ``neighbors`` (n, m), each for all of its labels, and of ``extra_labels`` (n, p).

    ``weights`` (n, m) and ``extra_weights`` (n, p) are above 0; an id of -1 has no vote. Both outputs are filled.
    """
    votes = np.zeros(n_labels, np.float32)
    for row in range(len(neighbors)):
        for i in range(neighbors.shape[1]):
            if neighbors[row, i] >= 0:
                for j in range(y_indptr[neighbors[row, i]], y_indptr[neighbors[row, i] + 1]):
                    votes[y_indices[j]] += weights[row, i]
        for i in range(extra_labels.shape[1]):
            if extra_labels[row, i] >= 0:
                votes[extra_labels[row, i]] += extra_weights[row, i]
        row_scores, row_labels = out_scores[row], out_labels[row]
        size = integer(0)
        for i in range(neighbors.shape[1]):
            if neighbors[row, i] >= 0:
                for j in range(y_indptr[neighbors[row, i]], y_indptr[neighbors[row, i] + 1]):
                    size = push_label(votes, y_indices[j], row_scores, row_labels, size)
        for i in range(extra_labels.shape[1]):
            if extra_labels[row, i] >= 0:
                size = push_label(votes, extra_labels[row, i], row_scores, row_labels, size)
        sort_best_first(row_scores, row_labels, size)


@part()
def push_label(votes: Floats, label: int, scores: Floats, ids: Ints, size: int) -> int:
    """Push a label with its votes onto the heap, once; return the new size."""
    if votes[label] > 0.0:
        size = push(scores, ids, size, votes[label], label)
        votes[label] = 0.0
    return size
