import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.linear_scores import lookup_weights, scan_weights


@pytest.mark.parametrize("kernel", [lookup_weights, scan_weights])
def test_weights_are_those_of_the_dense_matrix(kernel):
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((30, 40)) < 0.3, rng.integers(-127, 128, (30, 40)), 0)
    dense[5] = 0  # a feature without weights
    W = sp.csr_matrix(dense)
    values, indices, starts = W.data.astype(np.int8), W.indices.astype(np.uint16), W.indptr.astype(np.int64)
    if kernel is scan_weights:  # in any order
        for feature in range(30):
            part = slice(starts[feature], starts[feature + 1])
            order = rng.permutation(starts[feature + 1] - starts[feature])
            values[part], indices[part] = values[part][order], indices[part][order]
    scales = rng.random(30).astype(np.float32)
    features, classifiers = np.array([0, 5, 29, 12], np.int32), np.array([39, 0, 7], np.int32)
    out = np.full((3, 4), np.nan)
    kernel(features, classifiers, CsrArrays(values, indices, starts), scales, out)
    np.testing.assert_allclose(out, (dense * scales[:, None])[features][:, classifiers].T, rtol=1e-6)


@pytest.mark.parametrize("kernel", [lookup_weights, scan_weights])
def test_no_features_and_no_classifiers(kernel):
    nothing, feature, out = np.zeros(0, np.int32), np.zeros(1, np.int32), np.full((2, 1), np.nan)
    empty = (CsrArrays(np.zeros(0, np.int8), np.zeros(0, np.uint16), np.zeros(3, np.int64)), np.ones(2, np.float32))
    kernel(feature, np.arange(2, dtype=np.int32), *empty, out)
    assert out.tolist() == [[0.0], [0.0]], "no weights"
    kernel(nothing, nothing, *empty, out)
    assert out.tolist() == [[0.0], [0.0]], "untouched"
