"""Linear classifiers, learned one by one, as one sparse matrix laid out for prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.types import Csr, Floats, Ints, Longs

NOTHING: tuple[Ints, Floats] = (np.zeros(0, np.int32), np.zeros(0, np.float32))
"""The weights of a classifier that has none."""


def feature_major(kept: list[tuple[Ints, Floats]], n_features: int, sizes: Longs | None = None) -> Csr:
    """Features and weights of each classifier as a matrix (n_features, n_classifiers) stored by features.

    Where an entry holds several classifiers one after the other, ``sizes`` gives the weights of each of all.

    >>> feature_major([(np.array([2], np.int32), np.array([0.5], np.float32)), NOTHING], n_features=3).toarray().tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.5, 0.0]]
    """
    sizes = np.array([len(features) for features, _ in kept], np.int64) if sizes is None else sizes
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    features = np.concatenate([features for features, _ in kept])
    values = np.concatenate([values for _, values in kept])
    return sp.csc_matrix((values, features, indptr), shape=(n_features, len(sizes))).tocsr()


def compact_ids(numbers: Ints, n: int) -> npt.NDArray[Any]:
    """Numbers below n in 16 bits where that suffices: a quarter of such a matrix is saved."""
    return numbers.astype(np.uint16) if n <= 2**16 else numbers
