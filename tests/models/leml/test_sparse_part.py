"""The sparse part finds the weights of labels that do not fit into the low rank."""

import numpy as np
import scipy.sparse as sp

from labelspace.models.leml.model import Leml, LowRank, SparsePart, Targets

N, D, HEAD, TAIL = 400, 30, 12, 8


def tail_data():
    """Labels of rank 2, then tail labels that each follow one rare feature of their own."""
    rng = np.random.default_rng(5)
    X = (rng.random((N, D)) < 0.3).astype(np.float32)
    X[:, D - TAIL :] = rng.random((N, TAIL)) < 0.05
    topic = X[:, :4].sum(axis=1) > X[:, 4:8].sum(axis=1)
    head = np.where(np.arange(HEAD) < HEAD // 2, topic[:, None], ~topic[:, None])
    return sp.csr_matrix(X), sp.csr_matrix(np.hstack([head, X[:, D - TAIL :]]).astype(np.float32))


def fitted(sparse):
    X, Y = tail_data()
    model = Leml(embedding_dim=2, sparse=sparse, bias=False, normalize=False, reg_weight=0.5)
    return model.fit(X, Y), X, Y


def test_it_recovers_the_features_of_tail_labels():
    model, _, _ = fitted(sparse=True)
    S = model.sparse_weights_.toarray()[:, HEAD:]
    own = S[D - TAIL + np.arange(TAIL), np.arange(TAIL)]
    others = S.copy()
    others[D - TAIL + np.arange(TAIL), np.arange(TAIL)] = 0
    assert (own > 0.8).all()
    assert np.abs(others).max() < 0.1


def test_tail_labels_are_found_with_it_and_not_without():
    hits = {}
    for sparse in (False, True):
        model, X, Y = fitted(sparse)
        rows, labels = Y[:, HEAD:].nonzero()
        top = model.predict_topk(X, HEAD // 2 + TAIL).labels
        hits[sparse] = (top[rows, : HEAD // 2 + 3] == labels[:, None] + HEAD).any(axis=1).mean()
    assert hits[True] > 0.95
    assert hits[False] < 0.7


def test_no_iteration_raises_the_objective():
    X, Y = tail_data()
    model = Leml(embedding_dim=2, sparse=True, tol=0, max_iter=12, bias=False, normalize=False).fit(X, Y)
    values = np.array(model.objective_)
    assert len(values) > 3
    assert (np.diff(values[:-1]) < 0).all()


def test_the_objective_is_that_of_the_docstring():
    X, Y = tail_data()
    targets, l1_weight, l2 = Targets(X, Y), 0.03, 0.5
    low_rank = LowRank.random(X, Y.shape[1], 2, np.random.default_rng(0))
    low_rank.update_labels(targets, 1.0)
    part = SparsePart(targets, D, l1_weight, l2)
    error = part.update(targets, low_rank)
    S = part.matrix().toarray()
    left = Y.toarray() - X @ low_rank.W @ low_rank.H.T - X @ S
    assert np.isclose(error, (left**2).sum(), rtol=1e-4)
    weighted = np.abs(X.toarray()).sum(axis=0) @ np.abs(S)
    assert np.isclose(part.penalty(), l1_weight * weighted.sum() + l2 * (S**2).sum() / 2, rtol=1e-4)
    assert weighted.sum() >= np.abs(X @ S).sum()
    again = part.update(targets, low_rank) / 2 + part.penalty()
    assert again <= error / 2 + l1_weight * weighted.sum() + l2 * (S**2).sum() / 2 + 1e-3
    assert 0 < part.matrix().nnz < S.size


def test_features_beyond_the_documents_own_stay_out():
    X, Y = tail_data()
    targets = Targets(X, Y)
    low_rank = LowRank.random(X, Y.shape[1], 2, np.random.default_rng(0))
    part = SparsePart(targets, D - TAIL, 0.01, 0.0)
    part.update(targets, low_rank)
    assert part.matrix()[: D - TAIL].nnz > 0
    assert part.matrix()[D - TAIL :].nnz == 0
