"""Exact nearest neighbors among sparse rows by an inverted index, and their vote on labels."""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.kernels.inner_products import dot
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints

ROUNDING = 1e-5  # by how much float32 sums may miss a bound


@njit(cache=True, nogil=True)
def touched_rows(
    data: Floats,
    features: Ints,
    i_data: Floats,
    i_rows: Ints,
    i_indptr: Ints,
    sums: Floats,
    rows: Ints,
    row_sums: Floats,
) -> int:
    """Inner products of one query with the stored rows that share a rare feature with it; how many there are.

    Fills the front of ``rows`` and ``row_sums``; ``sums`` (n_stored) is scratch, all zeros before and after.
    """
    postings = 0
    for j in range(len(data)):
        begin, end = i_indptr[features[j]], i_indptr[features[j] + 1]
        for at in range(begin, end):
            sums[i_rows[at]] += data[j] * i_data[at]
        postings += end - begin
    found = 0
    if postings < len(sums):  # few: visit the postings again rather than every stored row
        for j in range(len(data)):
            for at in range(i_indptr[features[j]], i_indptr[features[j] + 1]):
                row = i_rows[at]
                if sums[row] != 0.0:
                    rows[found], row_sums[found] = row, sums[row]
                    sums[row] = 0.0
                    found += 1
    else:
        for row in range(len(sums)):
            if sums[row] != 0.0:
                rows[found], row_sums[found] = row, sums[row]
                sums[row] = 0.0
                found += 1
    return found


@njit(cache=True, nogil=True)
def nearest_row(
    query: Floats,
    common: Floats,
    reach: Floats,
    widest_reach: float,
    found: int,
    rows: Ints,
    row_sums: Floats,
    sums: Floats,
    near: Ints,
    near_similarity: Floats,
) -> None:
    """The stored rows with the largest inner product with one query, best first; only those above zero count.

    Common features are stored densely (``common``, n_stored x n_common) and not read for every row: what they add is at
    most |query| * reach[row], both lengths over the common features. The rows that lead on the rare features alone
    (``row_sums``) are settled first; then only rows that can still reach the k-th best of them are looked at.
    """
    k = len(near)
    length = np.sqrt(dot(query, query))
    leaders, leader_sums = np.empty(2 * k, np.int32), np.empty(2 * k, np.float32)
    size = 0
    for at in range(found):
        if size < len(leaders) or row_sums[at] > leader_sums[0]:
            size = push(leader_sums, leaders, size, row_sums[at], at)
    settled = 0
    for at in range(size):
        value = row_sums[leaders[at]] + dot(query, common[rows[leaders[at]]])
        if value > 0.0:
            settled = push(near_similarity, near, settled, value, rows[leaders[at]])
    goal = near_similarity[0] - ROUNDING if settled == k else 0.0
    size = 0
    for at in range(found):
        if row_sums[at] + length * reach[rows[at]] >= goal:
            value = row_sums[at] + dot(query, common[rows[at]])
            if value > 0.0 and (size < k or value >= near_similarity[0]):
                size = push(near_similarity, near, size, value, rows[at])
    if length > 0.0 and length * widest_reach >= goal:  # a row that shares common features alone may be among the best
        for at in range(found):
            sums[rows[at]] = 1.0
        for row in range(len(sums)):
            if sums[row] == 0.0 and length * reach[row] >= goal:
                value = dot(query, common[row])
                if value > 0.0 and (size < k or value >= near_similarity[0]):
                    size = push(near_similarity, near, size, value, row)
            sums[row] = 0.0
    sort_best_first(near_similarity, near, size)


@njit(cache=True, nogil=True)
def nearest_rows(
    data: Floats,
    indices: Ints,
    indptr: Ints,
    start: int,
    stop: int,
    i_data: Floats,
    i_rows: Ints,
    i_indptr: Ints,
    place: Ints,
    common: Floats,
    reach: Floats,
    near: Ints,
    near_similarity: Floats,
) -> None:
    """Nearest stored rows of the rows start..stop of a CSR matrix.

    The stored matrix comes in two parts: rare features by columns (i_...), common ones dense (n_stored, n_common) with
    ``place`` (n_features) giving a common feature's column there, or -1. ``near`` and ``near_similarity``
    (stop - start, k) are filled best first and padded with -1 and -inf.
    """
    n_stored = len(reach)
    sums, row_sums = np.zeros(n_stored, np.float32), np.empty(n_stored, np.float32)
    rows = np.empty(n_stored, np.int32)
    widest_reach = float(reach.max())
    for row in range(start, stop):
        values, features = data[indptr[row] : indptr[row + 1]], indices[indptr[row] : indptr[row + 1]]
        query = np.zeros(common.shape[1], np.float32)
        for j in range(len(values)):
            if place[features[j]] >= 0:
                query[place[features[j]]] = values[j]
        found = touched_rows(values, features, i_data, i_rows, i_indptr, sums, rows, row_sums)
        at = row - start
        nearest_row(query, common, reach, widest_reach, found, rows, row_sums, sums, near[at], near_similarity[at])


@njit(cache=True, nogil=True)
def vote(
    near: Ints, weights: Floats, y_indices: Ints, y_indptr: Ints, listed: Ints, listed_weights: Floats, n_labels: int,
    out_labels: Ints, out_scores: Floats,
) -> None:  # fmt: skip
    """The labels with most votes: of documents ``near`` (n, m), each for all of its labels, and of ``listed`` ones.

    ``weights`` (n, m) and ``listed_weights`` (n, p) are above 0; an id of -1 has no vote. All of the two outputs is
    written.
    """
    votes = np.zeros(n_labels, np.float32)
    for row in range(len(near)):
        for at in range(near.shape[1]):
            if near[row, at] >= 0:
                for m in range(y_indptr[near[row, at]], y_indptr[near[row, at] + 1]):
                    votes[y_indices[m]] += weights[row, at]
        for at in range(listed.shape[1]):
            if listed[row, at] >= 0:
                votes[listed[row, at]] += listed_weights[row, at]
        best, ids = out_scores[row], out_labels[row]
        size = 0
        for at in range(near.shape[1]):
            if near[row, at] >= 0:
                for m in range(y_indptr[near[row, at]], y_indptr[near[row, at] + 1]):
                    size = settle(votes, y_indices[m], best, ids, size)
        for at in range(listed.shape[1]):
            if listed[row, at] >= 0:
                size = settle(votes, listed[row, at], best, ids, size)
        sort_best_first(best, ids, size)


@njit(cache=True, nogil=True)
def settle(votes: Floats, label: int, best: Floats, ids: Ints, size: int) -> int:
    """Offer a label with votes to the best, once; the new number of those is returned."""
    if votes[label] > 0.0:
        size = push(best, ids, size, votes[label], label)
        votes[label] = 0.0
    return size
