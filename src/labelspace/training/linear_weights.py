"""Linear classifiers, trained one by one, as one sparse matrix laid out for prediction."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.kernels.linear_scores import linear_topk
from labelspace.kernels.threads import run_blocks
from labelspace.training.losses import sigmoid
from labelspace.types import Bools, Csr, Floats, Ints, Longs, TopK

ROW_BLOCK = 256  # documents per task
NO_WEIGHTS: tuple[Ints, Floats] = (np.zeros(0, np.int32), np.zeros(0, np.float32))  # the features and weights


def feature_major_weights(classifiers: list[tuple[Ints, Floats]], n_features: int, sizes: Longs | None = None) -> Csr:
    """The features and weights of each classifier as a matrix (n_features, n_classifiers) stored by feature.

    Where an entry of the list holds several classifiers one after another, ``sizes`` has the number of weights of each.

    >>> one = (np.array([2], np.int32), np.array([0.5], np.float32))
    >>> feature_major_weights([one, NO_WEIGHTS], n_features=3).toarray().tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.5, 0.0]]
    """
    sizes = np.array([len(features) for features, _ in classifiers], np.int64) if sizes is None else sizes
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    features = np.concatenate([features for features, _ in classifiers])
    weights = np.concatenate([weights for _, weights in classifiers])
    return sp.csc_matrix((weights, features, indptr), shape=(n_features, len(sizes))).tocsr()


def compact_ids(ids: Ints, n: int) -> npt.NDArray[Any]:
    """Ids below n in 16 bits where that suffices: it saves a quarter of such a matrix."""
    return ids.astype(np.uint16) if n <= 2**16 else ids


def rank_by_margin(X: Csr, W: Csr, bias: Floats, seen: Bools, k: int) -> TopK:
    """The k best of the seen labels by the margin X W + bias; a score is 1 / (1 + exp(-2 margin))."""
    out = TopK.empty(X.shape[0], k)

    def score(start: int, stop: int) -> None:
        linear_topk(
            X.data, X.indices, X.indptr, start, stop, W.data, W.indices, W.indptr, bias, seen, out.labels, out.scores
        )

    run_blocks(score, X.shape[0], ROW_BLOCK)
    listed = out.labels >= 0
    out.scores[listed] = sigmoid(2 * out.scores[listed])
    return out


def with_bias_column(X: Csr) -> Csr:
    """X with one more column of ones, for the bias; indices stay of 32 bits.

    >>> with_bias_column(sp.csr_matrix([[0.0, 2.0]])).toarray().tolist()
    [[0.0, 2.0, 1.0]]
    """
    stacked = sp.hstack([X, np.ones((X.shape[0], 1), np.float32)], format="csr", dtype=np.float32)
    indices, indptr = stacked.indices.astype(np.int32), stacked.indptr.astype(X.indptr.dtype)
    return sp.csr_matrix((stacked.data, indices, indptr), shape=stacked.shape)
