import numpy as np
import pytest

from labelspace.estimator.state_constraints import StateError
from labelspace.features.normalize import normalize_rows
from labelspace.index.exact import Exact
from labelspace.models.leml.model import Leml


def dense_scores(model, X):
    """x W H' + x S by NumPy, for the labels of the index."""
    W = model.feature_embeddings_ * model.feature_scales_[:, None]
    X = normalize_rows(X)
    return (X @ W + model.document_bias_) @ model.index_.arrays_["vectors"].T + X @ model.sparse_weights_[
        :, model.index_.ids
    ]


@pytest.mark.parametrize("params", [{}, {"bias": False}, {"sparse": True, "l1_weight": 0.01}])
def test_scores_are_those_of_the_formula(data, params):
    train, test = data
    model = Leml(embedding_dim=12, **params).fit(train.X, train.Y)
    top = model.predict_topk(test.X, k=3)
    scores = np.asarray(dense_scores(model, test.X))
    assert np.allclose(top.scores[:, 0], scores.max(axis=1), atol=1e-4)
    assert (top.labels[:, 0] == model.index_.ids[scores.argmax(axis=1)]).mean() > 0.99
    assert (model.document_bias_ != 0).any() == model.bias
    assert (model.sparse_weights_.nnz > 0) == model.sparse


@pytest.mark.slow
def test_full_rank_with_little_regularization_is_least_squares(data):
    train, test = data
    model = Leml(embedding_dim=40, reg_weight=1e-4, tol=0, max_iter=40, bias=False).fit(train.X, train.Y)
    X, Y = normalize_rows(train.X).toarray(), train.Y.toarray()
    left = np.linalg.lstsq(X, Y, rcond=None)[0]
    error = ((Y - X @ left) ** 2).sum() / 2
    assert model.objective_[-1] < error + 0.05 * ((Y**2).sum() / 2 - error) + 1


def test_the_objective_falls_until_it_falls_by_less_than_tol(data):
    train, _ = data
    loose, tight = (Leml(tol=tol, max_iter=30).fit(train.X, train.Y) for tol in (0.05, 0.001))
    for model in (loose, tight):
        share = -np.diff(model.objective_) / model.objective_[:-1]
        assert (share[:-1] >= model.tol).all()
        assert 0 < share[-1] < model.tol
    assert len(loose.objective_) < len(tight.objective_)
    assert tight.report()["objective"][-1] == round(tight.objective_[-1], 3)


def test_the_rank_is_that_of_the_labels_unless_given(data):
    train, _ = data
    assert len(Leml(max_iter=1).fit(train.X, train.Y).document_bias_) == train.Y.shape[1]
    assert len(Leml(max_iter=1, embedding_dim=5).fit(train.X, train.Y).document_bias_) == 5


def test_a_label_without_documents_is_never_suggested(data):
    train, test = data
    Y = train.Y.tolil()
    Y[:, 7] = 0
    for sparse in (False, True):
        labels = Leml(sparse=sparse).fit(train.X, Y.tocsr()).predict_topk(test.X, k=40).labels
        assert not (labels == 7).any()


def test_presets_are_the_published_models():
    assert not Leml.paper().sparse
    assert Leml.paper().tol == 0
    assert Leml.from_preset("robustxml").sparse


def test_a_sparse_part_beside_an_index_of_bytes_is_refused(data):
    train, _ = data
    model = Leml(sparse=True, embedding_dim=4, max_iter=1).fit(train.X, train.Y)
    model.index_ = Exact(model.index_.arrays_["vectors"], model.index_.ids, "int8")
    with pytest.raises(StateError, match="exact index in float32"):
        model.check_state()
