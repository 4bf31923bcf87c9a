"""Losses by their gradients, probabilities from scores, and the labels that a batch is trained on.

Each ``*_gradient`` turns the scores (batch, n) of a batch into the gradient of the loss by them, in place. The true
labels are given as the parts ``columns`` and ``indptr`` of a csr matrix; the batch starts at its row ``start``.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from labelspace.kernels.losses import extract_positive_scores, pairwise_softmax_from_exp, subtract_positives
from labelspace.kernels.sparse_layers import subtract_label_block
from labelspace.types import Csr, Floats, Ints, Rng, TopK

MAX_UNSAMPLED_LABELS = 20_000  # up to this many labels, a step trains on all of them
MAX_EXPONENT = np.float32(60.0)  # larger exponents are cut off here: exp(89) is infinite in float32

Real = TypeVar("Real", np.float32, np.float64)


def sigmoid(log_odds: npt.NDArray[Real]) -> npt.NDArray[Real]:
    """Return 1 / (1 + exp(-log_odds)), without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    half = log_odds.dtype.type(0.5)
    probabilities: npt.NDArray[Real] = half + half * np.tanh(half * log_odds)
    return probabilities


def listed_probabilities(top: TopK, slope: int = 1) -> TopK:
    """Turn the scores of the listed labels into the sigmoids of ``slope`` times these, in place; return the lists."""
    listed = top.labels >= 0
    top.scores[listed] = sigmoid(slope * top.scores[listed])
    return top


def sigmoid_inplace(log_odds: Floats) -> None:
    """Turn log-odds into probabilities in place, faster than ``sigmoid``: for arrays that are read once."""
    with np.errstate(over="ignore"):  # exp overflows to infinity, and the probability is 0
        np.exp(np.negative(log_odds, out=log_odds), out=log_odds)
    log_odds += 1.0
    np.reciprocal(log_odds, out=log_odds)


def log_odds(Y: Csr) -> Floats:
    """Return the log-odds of each label's frequency among the documents, smoothed by half a document on either side.

    >>> import scipy.sparse as sp
    >>> log_odds(sp.csr_matrix(np.eye(2))).tolist()
    [0.0, 0.0]
    """
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    return np.asarray(np.log((counts + 0.5) / (Y.shape[0] - counts + 0.5)), np.float32)


def bce_gradient(scores: Floats, columns: Ints, indptr: Ints, start: int, weights: Floats | None) -> None:
    """Write the gradient of binary cross-entropy, summed over labels; a label stands for ``weights`` many.

    True labels must have a weight of 1.
    """
    sigmoid_inplace(scores)
    if weights is not None:
        scores *= weights
    subtract_positives(columns, indptr, start, False, scores)


def label_block_bce_gradient(Y: Csr, rows: Ints, scores: Floats, start: int) -> None:
    """Write the gradient of mean binary cross-entropy for a block of labels from ``start`` on, of ``Y[rows]``."""
    sigmoid_inplace(scores)
    subtract_label_block(Y.indices, Y.indptr, rows, start, scores)
    scores /= np.float32(len(rows))


def squared_error_gradient(probabilities: Floats, errors: Floats) -> None:
    """Turn ``errors``, probabilities - truth, into the gradient of half their squares by the log-odds, in place."""
    errors *= probabilities
    errors *= np.float32(1) - probabilities


def softmax_gradient(scores: Floats, columns: Ints, indptr: Ints, start: int, weights: Floats | None) -> None:
    """Write the gradient of cross-entropy between the softmax of the scores and equal shares for the true labels."""
    if weights is not None:
        scores += np.log(weights)
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    counts = indptr[start + 1 : start + len(scores) + 1] - indptr[start : start + len(scores)]
    scores[counts == 0] = 0.0  # a document without labels has no loss
    subtract_positives(columns, indptr, start, True, scores)


def pairwise_softmax_gradient(scores: Floats, columns: Ints, indptr: Ints, start: int, weights: Floats | None) -> None:
    """Write the gradient of cross-entropy between a label and all wrong labels, averaged over a document's labels.

    Unlike with softmax, the labels of a document do not compete with each other. Exponents are relative to the best
    wrong score: a true label far above the best wrong score has no gradient, and rounding does not matter.
    """
    true_scores = np.empty(indptr[start + len(scores)] - indptr[start], np.float32)
    extract_positive_scores(columns, indptr, start, scores, true_scores)
    best_wrong = scores.max(axis=1)
    best_wrong[np.isneginf(best_wrong)] = 0.0  # no label is wrong
    scores -= best_wrong[:, None]
    np.exp(scores, out=scores)
    if weights is not None:
        scores *= weights
    true_scores -= np.repeat(best_wrong, np.diff(indptr[start : start + len(scores) + 1]))
    np.exp(np.minimum(true_scores, MAX_EXPONENT, out=true_scores), out=true_scores)
    pairwise_softmax_from_exp(columns, indptr, start, true_scores, scores)


@dataclass(frozen=True)
class SampledLabels:
    """The labels of a step, each once, and the positives of each document among them."""

    ids: Ints  # (n,)
    columns: Ints  # the positives of document i are ids[columns[indptr[i] : indptr[i + 1]]]
    indptr: Ints
    weights: Floats | None = None  # (n,) the number of labels that each stands for
    n_fixed: int = 0  # the first ids are not sampled: positives and hard negatives, sorted

    @property
    def covers_all(self) -> bool:
        """Return whether these are all candidate labels, in their order."""
        return self.weights is None


def sample_labels(Y: Csr, candidates: Ints, n_negatives: int, rng: Rng, hard: Ints | None = None) -> SampledLabels:
    """Return the positives of a batch, its ``hard`` negatives (-1 is none), and uniform negatives for all documents.

    A sampled label is weighted by the number of labels it stands for, so sums over labels stay the same in expectation.
    """
    listed = [Y.indices] if hard is None else [Y.indices, hard.ravel()]
    fixed = np.unique(np.concatenate(listed))
    fixed = fixed[fixed >= 0]
    sampled = np.setdiff1d(candidates[rng.integers(0, len(candidates), n_negatives)], fixed)
    weights = np.ones(len(fixed) + len(sampled), np.float32)
    weights[len(fixed) :] = (len(candidates) - len(fixed)) / max(len(sampled), 1)
    ids = np.concatenate([fixed, sampled])
    return SampledLabels(ids, np.searchsorted(fixed, Y.indices).astype(np.int32), Y.indptr, weights, len(fixed))


def seen_labels(Y: Csr) -> Ints:
    """Return the labels with a training document."""
    return np.unique(Y.indices).astype(np.int32)
