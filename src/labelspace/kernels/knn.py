"""Exact nearest neighbours among sparse rows by an inverted index, and their vote on labels."""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints


@njit(cache=True, nogil=True)
def nearest_rows(
    data: Floats,
    indices: Ints,
    start: int,
    stop: int,
    i_data: Floats,
    i_rows: Ints,
    i_indptr: Ints,
    similarity: Floats,
    near: Ints,
    near_similarity: Floats,
) -> int:
    """The stored rows with the largest inner product with one query; only those above zero count.

    The query is entries start..stop of (data, indices); (i_data, i_rows, i_indptr) is the stored matrix by columns;
    ``similarity`` (n_stored) is scratch, all zeros before and after. Returns how many were found; best first.
    """
    postings = 0
    for j in range(start, stop):
        value, feature = data[j], indices[j]
        for m in range(i_indptr[feature], i_indptr[feature + 1]):
            similarity[i_rows[m]] += value * i_data[m]
        postings += i_indptr[feature + 1] - i_indptr[feature]
    size = 0
    if postings < len(similarity):  # few rows touched: visit them again rather than every stored row
        for j in range(start, stop):
            feature = indices[j]
            for m in range(i_indptr[feature], i_indptr[feature + 1]):
                row = i_rows[m]
                value = similarity[row]
                similarity[row] = 0.0
                if value > 0.0 and (size < len(near) or value >= near_similarity[0]):
                    size = push(near_similarity, near, size, value, row)
    else:
        for row in range(len(similarity)):
            value = similarity[row]
            similarity[row] = 0.0
            if value > 0.0 and (size < len(near) or value > near_similarity[0]):
                size = push(near_similarity, near, size, value, row)
    sort_best_first(near_similarity, near, size)
    return size


@njit(cache=True, nogil=True)
def neighbour_vote(
    data: Floats,
    indices: Ints,
    indptr: Ints,
    start: int,
    stop: int,
    i_data: Floats,
    i_rows: Ints,
    i_indptr: Ints,
    n_stored: int,
    y_indices: Ints,
    y_indptr: Ints,
    n_labels: int,
    neighbours: int,
    power: float,
    out_labels: Ints,
    out_scores: Floats,
) -> None:
    """For rows start..stop of X: the labels of the nearest stored rows, each neighbour voting with similarity ** power.

    A score is the share of the votes that a label got. Only rows start..stop of the two outputs are written.
    """
    similarity = np.zeros(n_stored, np.float32)
    votes = np.zeros(n_labels, np.float32)
    near = np.empty(neighbours, np.int32)
    near_similarity = np.empty(neighbours, np.float32)
    for row in range(start, stop):
        found = nearest_rows(
            data, indices, indptr[row], indptr[row + 1], i_data, i_rows, i_indptr, similarity, near, near_similarity
        )
        total = np.float32(0.0)
        for at in range(found):
            vote = near_similarity[at] ** np.float32(power)
            total += vote
            for m in range(y_indptr[near[at]], y_indptr[near[at] + 1]):
                votes[y_indices[m]] += vote
        best, ids = out_scores[row], out_labels[row]
        size = 0
        for at in range(found):
            for m in range(y_indptr[near[at]], y_indptr[near[at] + 1]):
                label = y_indices[m]
                if votes[label] > 0.0:
                    size = push(best, ids, size, votes[label] / total, label)
                    votes[label] = 0.0
        sort_best_first(best, ids, size)
