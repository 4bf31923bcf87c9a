import numpy as np
import scipy.sparse as sp

from labelspace.kernels.normalize import normalized_values


def test_every_row_has_length_one_and_an_empty_one_stays_so():
    X = sp.random(30, 20, 0.2, "csr", np.float32, rng=np.random.default_rng(0))
    X.data[X.indptr[3] : X.indptr[4]] = 0.0
    lengths = np.linalg.norm(X.toarray().astype(np.float64), axis=1, keepdims=True)
    expected = np.divide(X.toarray(), lengths, out=np.zeros(X.shape), where=lengths > 0)
    result = sp.csr_matrix((normalized_values(X.data, X.indptr), X.indices, X.indptr), shape=X.shape)
    assert np.allclose(result.toarray(), expected, atol=1e-7)
