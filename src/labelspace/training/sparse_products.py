"""Products of a sparse matrix with a dense one on all cores; each row is summed in one order, whatever the threads."""

import numpy as np

from labelspace.kernels.sparse_layers import embed_rows, sampled_products
from labelspace.kernels.threads import run_blocks
from labelspace.types import Csr, Floats, Ints

ROW_BLOCK = 256  # rows per task
NO_SKIPPED: Ints = np.zeros(0, np.int32)


def product(A: Csr, B: Floats) -> Floats:
    """A B for sparse A (n, m) and dense B (m, dim), both float32."""
    out = np.empty((A.shape[0], B.shape[1]), np.float32)
    ones, zeros = np.ones(len(B), np.float32), np.zeros(B.shape[1], np.float32)
    run_blocks(
        lambda start, stop: embed_rows(A.data, A.indices, A.indptr, start, stop, B, ones, zeros, out),
        len(out),
        ROW_BLOCK,
    )
    return out


def products_at(A: Csr, U: Floats, V: Floats) -> Floats:
    """U_i.V_j for each entry (i, j) of A, in the order of its data; U is (n, dim), V is (m, dim)."""
    out = np.zeros(len(A.indices), np.float32)
    run_blocks(
        lambda start, stop: sampled_products(A.indices, A.indptr, start, stop, U, V, NO_SKIPPED, out),
        A.shape[0],
        ROW_BLOCK,
    )
    return out
