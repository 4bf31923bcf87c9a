"""Scores of a sparse linear model, row by row: only the weights of a document's features are read. Single weights."""

import numpy as np

from labelspace.kernels.beam_search import lower_bound
from labelspace.kernels.compiled import kernel
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.topk import topk_allowed
from labelspace.types import Bools, Doubles, Floats, Ints


@kernel()
def linear_topk(
    X: CsrArrays, start: int, stop: int, W: CsrArrays, bias: Floats, allowed: Bools, out: Ints, out_scores: Floats
) -> None:
    """Find the top k of the allowed labels for rows start..stop of X, by X W + bias.

    W (n_features, n_labels) has 8 bits. ``out`` and ``out_scores`` have a row for every row of X; only
    start..stop is written. Unsigned indices are faster: numba lets signed indices count from the end.
    """
    data, indices, indptr = X
    w_data, w_indices, w_indptr = W
    scores = np.empty(len(bias), np.float32)
    for row in range(start, stop):
        for label in range(len(bias)):
            scores[label] = bias[label]
        for j in range(indptr[row], indptr[row + 1]):
            value, feature = data[j], indices[j]
            for m in range(np.uint64(w_indptr[feature]), np.uint64(w_indptr[feature + 1])):
                scores[np.uint64(w_indices[m])] += value * np.float32(w_data[m])
        topk_allowed(scores, allowed, out_scores[row], out[row])


@kernel()
def lookup_weights(features: Ints, classifiers: Ints, W: CsrArrays, scales: Floats, out: Doubles) -> None:
    """Write the weight of each feature in each classifier to ``out`` (n_classifiers, n_features), 0 if it has none.

    Feature f has scales[f] times row f of W for the classifiers that the row's indices say, in order.
    """
    for j in range(len(features)):
        start, end = int(W.indptr[features[j]]), int(W.indptr[features[j] + 1])
        for i in range(len(classifiers)):
            at = lower_bound(W.indices, start, end, classifiers[i])
            found = at < end and W.indices[at] == classifiers[i]
            out[i, j] = scales[features[j]] * W.data[at] if found else 0.0


@kernel()
def scan_weights(features: Ints, classifiers: Ints, W: CsrArrays, scales: Floats, out: Doubles) -> None:
    """Do what ``lookup_weights`` does, where the classifiers of a feature are in any order."""
    for j in range(len(features)):
        for i in range(len(classifiers)):
            out[i, j] = 0.0
        for at in range(W.indptr[features[j]], W.indptr[features[j] + 1]):
            for i in range(len(classifiers)):
                if W.indices[at] == classifiers[i]:
                    out[i, j] = scales[features[j]] * W.data[at]
