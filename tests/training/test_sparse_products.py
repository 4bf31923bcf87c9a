import numpy as np
import scipy.sparse as sp

from labelspace.training.sparse_products import product, products_at


def test_products_equal_dense_ones():
    rng = np.random.default_rng(0)
    A = sp.random(600, 30, 0.1, "csr", np.float32, rng)
    U, V = rng.standard_normal((600, 7), np.float32), rng.standard_normal((30, 7), np.float32)
    assert np.allclose(product(A, V), A.toarray() @ V, atol=1e-5)
    rows, columns = A.nonzero()
    assert np.allclose(products_at(A, U, V), (U @ V.T)[rows, columns], atol=1e-5)
