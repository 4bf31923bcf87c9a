"""Exact nearest neighbors among sparse rows by an inverted index, and their votes for labels."""

from typing import NamedTuple

import numpy as np

from labelspace.kernels.compiled import integer, kernel, part
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints


class LabelSets(NamedTuple):
    """The labels of documents: document i has the labels ``labels[starts[i]:starts[i + 1]]``."""

    labels: Ints
    starts: Ints


@kernel()
def nearest_rows(
    X: CsrArrays, start: int, stop: int, index: CsrArrays, neighbors: Ints, similarities: Floats, sums: Floats
) -> None:
    """Find the nearest indexed rows of the rows start..stop of X, by inner products above 0.

    ``index`` is the indexed matrix in CSC form: its entries by column. ``neighbors`` and ``similarities``
    (stop - start, k) are filled best first and padded with -1 and -inf. ``sums`` (n_indexed) is scratch, all zeros
    before and after.
    """
    data, indices, indptr = X.data, X.indices, X.indptr
    index_data, index_rows, index_indptr = index.data, index.indices, index.indptr
    for row in range(start, stop):
        for j in range(indptr[row], indptr[row + 1]):
            for pos in range(index_indptr[indices[j]], index_indptr[indices[j] + 1]):
                sums[index_rows[pos]] += data[j] * index_data[pos]
        near, values, size = neighbors[row - start], similarities[row - start], 0
        for j in range(indptr[row], indptr[row + 1]):  # the same entries again: few of the indexed rows have a sum
            for pos in range(index_indptr[indices[j]], index_indptr[indices[j] + 1]):
                found = index_rows[pos]
                if sums[found] > 0.0 and (size < len(values) or sums[found] >= values[0]):
                    size = push(values, near, size, sums[found], found)
                sums[found] = 0.0
        sort_best_first(values, near, size)


@kernel()
def vote(
    neighbors: Ints,
    weights: Floats,
    Y: LabelSets,
    extra_labels: Ints,
    extra_weights: Floats,
    n_labels: int,
    out_labels: Ints,
    out_scores: Floats,
) -> None:
    """Find the labels with most votes of ``neighbors`` (n, m), each for all its labels, and of ``extra_labels`` (n, p).

    ``weights`` (n, m) and ``extra_weights`` (n, p) are above 0; an id of -1 has no vote. Both outputs are filled.
    """
    votes = np.zeros(n_labels, np.float32)
    for row in range(len(neighbors)):
        add_votes(neighbors[row], weights[row], Y, votes)
        for i in range(extra_labels.shape[1]):
            if extra_labels[row, i] >= 0:
                votes[extra_labels[row, i]] += extra_weights[row, i]
        row_scores, row_labels = out_scores[row], out_labels[row]
        size = push_votes(neighbors[row], Y, votes, row_scores, row_labels)
        for i in range(extra_labels.shape[1]):
            if extra_labels[row, i] >= 0:
                size = push_label(votes, extra_labels[row, i], row_scores, row_labels, size)
        sort_best_first(row_scores, row_labels, size)


@part()
def add_votes(neighbors: Ints, weights: Floats, Y: LabelSets, votes: Floats) -> None:
    """Add the weight of each neighbor to the votes of its labels."""
    for i in range(len(neighbors)):
        if neighbors[i] >= 0:
            for j in range(Y.starts[neighbors[i]], Y.starts[neighbors[i] + 1]):
                votes[Y.labels[j]] += weights[i]


@part()
def push_votes(neighbors: Ints, Y: LabelSets, votes: Floats, scores: Floats, ids: Ints) -> int:
    """Push the labels of the neighbors onto an empty heap, and set their votes to 0; return the size of the heap."""
    size = integer(0)
    for i in range(len(neighbors)):
        if neighbors[i] >= 0:
            for j in range(Y.starts[neighbors[i]], Y.starts[neighbors[i] + 1]):
                size = push_label(votes, Y.labels[j], scores, ids, size)
    return size


@part()
def push_label(votes: Floats, label: int, scores: Floats, ids: Ints, size: int) -> int:
    """Push a label with its votes onto the heap, once; return the new size."""
    if votes[label] > 0.0:
        size = push(scores, ids, size, votes[label], label)
        votes[label] = 0.0
    return size


@kernel()
def vote_by_similarity(
    near: Ints,
    scores: Floats,
    n_voters: int,
    power: float,
    document_weights: Floats,
    Y: LabelSets,
    votes: Floats,
    out: Ints,
    out_scores: Floats,
) -> None:
    """Find the labels with the largest shares of the votes of the first near, each of similarity ** power.

    A vote counts as much as ``document_weights`` of the document say, if there are any. ``near`` and ``scores`` (n, m)
    are sorted, best first. ``votes`` (n_labels) is scratch, all zeros before
    and after. Similarities are divided by the best, so that a high power does not turn all votes to zero.
    """
    weights = np.zeros(n_voters, np.float32)
    for row in range(len(near)):
        total, exponent = np.float32(0.0), np.float32(power)
        for i in range(n_voters):
            weights[i] = 0.0
            if near[row, i] >= 0:
                weights[i] = (scores[row, i] / scores[row, 0]) ** exponent
                if len(document_weights):
                    weights[i] *= document_weights[near[row, i]]
            total += weights[i]
        voters, row_scores, row_labels = near[row, :n_voters], out_scores[row], out[row]
        add_votes(voters, weights, Y, votes)
        size = push_votes(voters, Y, votes, row_scores, row_labels)
        sort_best_first(row_scores, row_labels, size)
        for i in range(size):
            row_scores[i] /= max(total, np.float32(1e-30))
