"""Losses by the gradient they have, and the scores they lead to.

Each ``*_errors`` turns the scores (batch, n) of a batch into the gradient of the loss by them, in place.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from labelspace.kernels.losses import extract_positive_scores, pairwise_softmax_from_exp, subtract_positives
from labelspace.types import Csr, Floats, Ints

MOST = np.float32(60.0)  # the power of e that counts as infinite

Real = TypeVar("Real", np.float32, np.float64)


def sigmoid(log_odds: npt.NDArray[Real]) -> npt.NDArray[Real]:
    """1 / (1 + exp(-log_odds)), without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    half = log_odds.dtype.type(0.5)
    chance: npt.NDArray[Real] = half + half * np.tanh(half * log_odds)
    return chance


def sigmoid_inplace(log_odds: Floats) -> None:
    """The same in place, and faster: for tables that are read once and thrown away."""
    with np.errstate(over="ignore"):  # exp of a lot is infinite, and the chance 0
        np.exp(np.negative(log_odds, out=log_odds), out=log_odds)
    log_odds += 1.0
    np.reciprocal(log_odds, out=log_odds)


def log_odds(Y: Csr) -> Floats:
    """The log-odds of each label's frequency among the documents, half a document being added to either side.

    >>> import scipy.sparse as sp
    >>> log_odds(sp.csr_matrix(np.eye(2))).tolist()
    [0.0, 0.0]
    """
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    odds: Floats = np.log((counts + 0.5) / (Y.shape[0] - counts + 0.5)).astype(np.float32)
    return odds


def bce_gradient(scores: Floats, columns: Ints, ends: Ints, start: int, weights: Floats | None) -> None:
    """Of binary cross-entropy, summed over the labels; a label's ``weights`` says how many it stands for.

    True labels must have a weight of 1.
    """
    sigmoid_inplace(scores)
    if weights is not None:
        scores *= weights
    subtract_positives(columns, ends, start, False, scores)


def squared_error_gradient(chances: Floats, errors: Floats) -> None:
    """Of half the squared error of chances, by their log-odds; ``errors`` are chances minus truth, and are changed."""
    errors *= chances
    errors *= np.float32(1) - chances


def softmax_gradient(scores: Floats, columns: Ints, ends: Ints, start: int, weights: Floats | None) -> None:
    """Of cross-entropy between the softmax of the scores and equal shares for the true labels."""
    if weights is not None:
        scores += np.log(weights)
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    counts = ends[start + 1 : start + len(scores) + 1] - ends[start : start + len(scores)]
    scores[counts == 0] = 0.0  # nothing to learn
    subtract_positives(columns, ends, start, True, scores)


def pairwise_softmax_gradient(scores: Floats, columns: Ints, ends: Ints, start: int, weights: Floats | None) -> None:
    """Of the mean over a document's labels of cross-entropy between that label and all that it does not have.

    Unlike softmax, the labels of a document do not compete with each other. Powers are those of scores above the best
    wrong one: a true label far ahead of it needs no push, and nothing that counts is lost to rounding.
    """
    own = np.empty(ends[start + len(scores)] - ends[start], np.float32)
    extract_positive_scores(columns, ends, start, scores, own)
    best = scores.max(axis=1)
    best[np.isneginf(best)] = 0.0  # no label is wrong
    scores -= best[:, None]
    np.exp(scores, out=scores)
    if weights is not None:
        scores *= weights
    own -= np.repeat(best, np.diff(ends[start : start + len(scores) + 1]))
    np.exp(np.minimum(own, MOST, out=own), out=own)
    pairwise_softmax_from_exp(columns, ends, start, own, scores)
