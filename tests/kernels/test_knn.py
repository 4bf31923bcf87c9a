import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.knn import neighbour_vote
from labelspace.types import TopK


def dense_vote(Q, X, Y, neighbours, power, k):
    """The NumPy twin: all similarities at once."""
    similarity = (Q @ X.T).toarray()
    votes = np.zeros((Q.shape[0], Y.shape[1]))
    for row, values in enumerate(similarity):
        near = [i for i in np.argsort(-values, kind="stable")[:neighbours] if values[i] > 0]
        weights = values[near].astype(np.float64) ** power
        if near:
            votes[row] = weights @ Y[near].toarray() / weights.sum()
    return TopK.from_scores(np.where(votes > 0, votes, -np.inf), k)


@pytest.mark.parametrize("density", [0.01, 0.3])  # the two ways through the index: by postings, and by all rows
def test_it_equals_the_dense_vote(density):
    rng = np.random.default_rng(3)
    X = sp.random(80, 60, density, "csr", np.float32, rng=rng)
    Q = sp.random(25, 60, density, "csr", np.float32, rng=rng)
    Y = sp.csr_matrix((rng.random((80, 15)) < 0.2).astype(np.float32))
    index = X.tocsc()
    out = TopK.empty(25, 15)
    neighbour_vote(
        Q.data, Q.indices, Q.indptr, 0, 25, index.data, index.indices, index.indptr, 80,
        Y.indices, Y.indptr, 15, 7, 2.0, out.labels, out.scores,
    )  # fmt: skip
    expected = dense_vote(Q, X, Y, 7, 2.0, 15)
    assert np.allclose(out.scores, expected.scores, atol=1e-5)
    scores, wanted = out.to_csr(15), expected.to_csr(15)
    assert (scores != wanted).nnz == 0
