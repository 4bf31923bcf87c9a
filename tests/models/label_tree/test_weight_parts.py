"""Weights by features, in 8 bits."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.quantize import quantize_columns
from labelspace.models.label_tree.weight_parts import WeightParts


def classifiers(seed, n_nodes=40, n_features=30):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n_nodes, n_features)) * 10.0 ** rng.integers(-3, 2, (n_nodes, n_features))
    return (W * (rng.random(W.shape) < 0.3)).astype(np.float32)


@pytest.mark.parametrize("in_memory", [2**20, 100, 0])
def test_parts_in_any_order_are_the_matrix_of_the_twin_without_zeros(in_memory):
    W = classifiers(3)
    with WeightParts(in_memory) as parts:
        for first in reversed(range(0, len(W), 7)):
            block = sp.csr_matrix(W[first : first + 7])
            parts.add(first, block.indices.astype(np.int32), block.data)
        made = parts.feature_major(W.shape[1], (W != 0).sum(axis=1).astype(np.int64))
    twin = sp.csc_matrix(W)
    values, scales = quantize_columns(twin.data, twin.indptr)
    expected = sp.csr_matrix((values, twin.indices, twin.indptr), shape=(W.shape[1], len(W)))
    expected.eliminate_zeros()
    assert (made.values != 0).all()
    assert len(made.values) < len(values), "some round to 0"
    np.testing.assert_array_equal(made.scales, scales)
    np.testing.assert_array_equal(made.starts, expected.indptr)
    np.testing.assert_array_equal(made.nodes, expected.indices)
    np.testing.assert_array_equal(made.values, expected.data)
