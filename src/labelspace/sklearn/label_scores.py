"""Ranked labels as the matrices that scikit-learn's classifiers return, and the threshold that predicts labels."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelspace.data.splits import hold_out
from labelspace.errors import DataError
from labelspace.metrics import ScoredPairs, best_micro_f1
from labelspace.models.capabilities import Calibrated
from labelspace.tagger import Tagger
from labelspace.types import Csr, Dataset, Doubles, Floats, Longs, TopK

MAX_DENSE = 2**27  # numbers of a dense answer: half a gigabyte of float32 scores, and a gigabyte of int64 labels


def check_dense(n: int, n_labels: int) -> None:
    """Raise DataError for a dense matrix that would fill the memory."""
    if n * n_labels > MAX_DENSE:
        raise DataError(
            f"a dense answer must have at most {MAX_DENSE} numbers, but has {n} documents x {n_labels} labels; "
            "set sparse_output=True if y is multilabel, call predict_topk, or predict fewer documents at a time"
        )


def dense_scores(top: TopK, n_labels: int) -> Floats:
    """Return scores (n, n_labels); labels that are not ranked have 0, or the document's lowest score if that is less.

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
    """Return the labels as a 0/1 matrix (n, n_labels)."""
    check_dense(len(top), n_labels)
    return np.asarray(top.to_csr(n_labels).toarray(), np.int64)


def class_scores(top: TopK, shares: Doubles) -> Doubles:
    """Return scores (n, n_classes) of documents that have one class each.

    A document for which no class is ranked has the share of each class among the training documents.

    >>> class_scores(TopK(np.array([[1], [-1]]), np.array([[0.5], [-np.inf]])), np.array([0.75, 0.25])).tolist()
    [[0.0, 0.5], [0.75, 0.25]]
    """
    scores = dense_scores(top, len(shares)).astype(np.float64)
    scores[top.labels[:, 0] < 0] = shares
    return scores


def best_class(top: TopK, shares: Doubles) -> Longs:
    """Return the class with the highest score of each document, the first of equal ones; see ``class_scores``."""
    tied = np.where((top.labels >= 0) & (top.scores == top.scores[:, :1]), top.labels, len(shares)).min(axis=1)
    return np.where(tied < len(shares), tied, shares.argmax()).astype(np.int64)


def normalized(scores: Doubles) -> Doubles:
    """Return rows that add up to 1; a row of zeros becomes equal values.

    >>> normalized(np.array([[0.5, 1.5], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    total = scores.sum(axis=1, keepdims=True)
    alike = np.full_like(scores, 1 / scores.shape[1])
    return np.asarray(np.divide(scores, total, out=alike, where=total > 0))


def stored_topk(scores: Csr, k: int) -> TopK:
    """Return the k best stored values of each row of a sparse matrix, of any sign; other values are not ranked.

    The scores of the answer are ranks in the order of all values.

    >>> stored_topk(sp.csr_matrix([[0.0, -0.5, -0.25]]), k=2).labels.tolist()
    [[2, 1]]
    """
    csr = sp.csr_matrix(scores)
    ranks = np.unique(csr.data, return_inverse=True)[1] + 1
    return TopK.from_sparse(sp.csr_matrix((ranks, csr.indices, csr.indptr), shape=csr.shape), k)


def learn_f1_threshold(tagger: Tagger, documents: Dataset, k: int, fraction: float, seed: int) -> float:
    """Train on all but a ``fraction`` of the documents, and choose the threshold for the k best labels of the rest.

    >>> texts = ["bake the bread", "knead bread dough", "grill the fish", "smoke a fish"] * 5
    >>> from labelspace.data.texts import dataset_from_names
    >>> documents = dataset_from_names(texts, [["baking"], ["baking"], ["fish"], ["fish"]] * 5)
    >>> 0 < learn_f1_threshold(Tagger("neighbors"), documents, k=2, fraction=0.2, seed=0) <= 1
    True
    """
    rest, held_out = hold_out(documents, fraction, seed)
    if rest.Y.nnz == 0 or held_out.Y.nnz == 0:
        raise DataError(
            "a threshold is learned from labeled documents in both parts of the training data, but of "
            f"{len(documents)} documents too few have labels; give more, or set k, or threshold to a number"
        )
    tagger.fit_dataset(rest)
    top = ranked(tagger, tagger.inputs_of(held_out), k)
    return middle_of_best(ScoredPairs.from_topk(held_out.Y, top, include_unlabeled=True))


def middle_of_best(pairs: ScoredPairs) -> float:
    """Return the threshold with the best micro-F1, halfway to the next score: all between the two are equally good.

    >>> import scipy.sparse as sp
    >>> middle_of_best(ScoredPairs.from_topk(sp.csr_matrix([[1, 0]]), TopK.from_scores([[0.75, 0.25]], k=2)))
    0.5
    """
    best = best_micro_f1(pairs).threshold
    if best is None:  # no label is found at any threshold
        return 0.0
    lower = pairs.scores[pairs.scores < best]
    return float(best + lower[0]) / 2 if lower.size else best


def ranked(tagger: Tagger, inputs: Any, k: int) -> TopK:  # noqa: ANN401 - texts, or rows of features
    """Return the k best labels with probabilities, or with scores if the method is not calibrated."""
    k = min(k, len(tagger.labels_))
    return tagger.predict_topk(inputs, k, calibrated=isinstance(tagger.model, Calibrated))
