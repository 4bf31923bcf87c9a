"""Weights by features, in 8 bits."""

import io

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.kernels import large_arrays
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


class FullDisk(io.RawIOBase):
    """A file on a disk without room: also closing it, which writes what is left, fails."""

    def writable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=0):
        return 0

    def write(self, content):
        raise OSError(28, "No space left on device")

    def close(self):
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_named_with_the_folder_and_how_to_take_another(monkeypatch):
    monkeypatch.setattr(large_arrays, "temporary_file", FullDisk)
    weights = np.zeros(5, np.int32), np.zeros(5, np.float32)
    with pytest.raises(DataError, match=r"writing to .* \(No space left on device\); free some space, .*TMPDIR"):
        with WeightParts(in_memory=0) as parts:
            parts.add(0, *weights)
