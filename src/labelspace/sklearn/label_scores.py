"""Ranked labels as the matrices that scikit-learn's classifiers return."""

import numpy as np
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.types import Csr, Doubles, Floats, Longs, TopK

MAX_DENSE = 2**27  # numbers of a dense answer: half a gigabyte of scores


def check_dense(n: int, n_labels: int) -> None:
    """Refuse a dense matrix that would fill the memory."""
    if n * n_labels > MAX_DENSE:
        raise DataError(
            f"a dense answer must have at most {MAX_DENSE} numbers, but has {n} documents x {n_labels} labels; "
            "set sparse_output=True where y is multilabel, call predict_topk, or predict fewer documents at a time"
        )


def dense_scores(top: TopK, n_labels: int) -> Floats:
    """Scores (n, n_labels); labels that are not ranked have 0, or the lowest score of the document where that is less.

    >>> dense_scores(TopK(np.array([[2, 0], [1, -1]]), np.array([[0.5, 0.25], [-1.0, -np.inf]])), 3).tolist()
    [[0.25, 0.0, 0.5], [-1.0, -1.0, -1.0]]
    """
    check_dense(len(top), n_labels)
    is_label = top.labels >= 0
    lowest = np.where(is_label, top.scores, 0).min(axis=1, initial=0)
    scores = np.repeat(lowest[:, None], n_labels, axis=1).astype(np.float32)
    scores[np.nonzero(is_label)[0], top.labels[is_label]] = top.scores[is_label]
    return scores


def dense_labels(top: TopK, n_labels: int) -> Longs:
    """The labels as a 0/1 matrix (n, n_labels)."""
    check_dense(len(top), n_labels)
    return np.asarray(top.to_csr(n_labels).toarray(), np.int64)


def class_scores(top: TopK, shares: Doubles) -> Doubles:
    """Scores (n, n_classes) of documents that have one class each.

    A document for which no class is ranked has the share of each class among the training documents.

    >>> class_scores(TopK(np.array([[1], [-1]]), np.array([[0.5], [-np.inf]])), np.array([0.75, 0.25])).tolist()
    [[0.0, 0.5], [0.75, 0.25]]
    """
    scores = dense_scores(top, len(shares)).astype(np.float64)
    scores[top.labels[:, 0] < 0] = shares
    return scores


def best_class(top: TopK, shares: Doubles) -> Longs:
    """The class with the highest score of each document, the first of several; see ``class_scores``."""
    tied = np.where((top.labels >= 0) & (top.scores == top.scores[:, :1]), top.labels, len(shares)).min(axis=1)
    return np.where(tied < len(shares), tied, shares.argmax()).astype(np.int64)


def normalized(scores: Doubles) -> Doubles:
    """Rows that add up to 1; all classes alike where a row has nothing.

    >>> normalized(np.array([[0.5, 1.5], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    total = scores.sum(axis=1, keepdims=True)
    alike = np.full_like(scores, 1 / scores.shape[1])
    return np.asarray(np.divide(scores, total, out=alike, where=total > 0))


def stored_topk(scores: Csr, k: int) -> TopK:
    """The k best of the stored values of each row of a sparse matrix, whatever their sign; others are not ranked.

    The scores of the answer are ranks in the order of all values.

    >>> stored_topk(sp.csr_matrix([[0.0, -0.5, -0.25]]), k=2).labels.tolist()
    [[2, 1]]
    """
    csr = sp.csr_matrix(scores)
    ranks = np.unique(csr.data, return_inverse=True)[1] + 1
    return TopK.from_sparse(sp.csr_matrix((ranks, csr.indices, csr.indptr), shape=csr.shape), k)
