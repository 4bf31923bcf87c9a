"""Weights of some classifiers for some features, out of a sparse matrix that is stored by feature."""

from labelspace.kernels.beam_search import lower_bound
from labelspace.kernels.compiled import kernel
from labelspace.kernels.quantize import Int8s
from labelspace.types import Doubles, Floats, Ints, Longs


@kernel()
def lookup_weights(
    features: Ints,
    classifiers: Ints,
    w_data: Int8s,
    w_indices: Ints,
    w_indptr: Ints | Longs,
    scales: Floats,
    out: Doubles,
) -> None:
    """Write the weight of each feature in each classifier to ``out`` (n_classifiers, n_features), 0 where it has none.

    Feature f has scales[f] * w_data[w_indptr[f] : w_indptr[f + 1]] for those classifiers ``w_indices``, in order.
    """
    for j in range(len(features)):
        start, end = int(w_indptr[features[j]]), int(w_indptr[features[j] + 1])
        for i in range(len(classifiers)):
            at = lower_bound(w_indices, start, end, classifiers[i])
            found = at < end and w_indices[at] == classifiers[i]
            out[i, j] = scales[features[j]] * w_data[at] if found else 0.0


@kernel()
def scan_weights(
    features: Ints, classifiers: Ints, w_data: Int8s, w_indices: Ints, w_indptr: Ints | Longs, scales: Floats,
    out: Doubles,
) -> None:  # fmt: skip
    """``lookup_weights`` where the classifiers of a feature are in any order."""
    for j in range(len(features)):
        for i in range(len(classifiers)):
            out[i, j] = 0.0
        for at in range(w_indptr[features[j]], w_indptr[features[j] + 1]):
            for i in range(len(classifiers)):
                if w_indices[at] == classifiers[i]:
                    out[i, j] = scales[features[j]] * w_data[at]
