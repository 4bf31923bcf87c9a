import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.estimator.state_constraints import StateError
from labelspace.models.fastxml.model import AUTHORS_ALPHA, FastXML
from labelspace.types.propensity import propensity_weights

DATA = planted(n=360, d=120, l=15, seed=5)
TRAIN, TEST = DATA.rows(range(300)), DATA.rows(range(300, 360))


def fitted(**params):
    return FastXML(n_estimators=5, **params).fit(TRAIN.X, TRAIN.Y)


def leaves(model, X):
    """The leaf of each document in each tree, by dense products."""
    X = np.hstack([X.toarray(), np.ones((X.shape[0], 1))])
    shape = (len(model.child_), X.shape[1])
    W = sp.csr_matrix((model.weights_.astype(float), model.features_, model.weight_starts_), shape=shape).toarray()
    out = np.tile(model.roots_, (len(X), 1))
    for row, x in enumerate(X):
        for tree in range(out.shape[1]):
            while model.child_[out[row, tree]]:
                node = out[row, tree]
                out[row, tree] = model.child_[node] + (W[node] @ x < 0)
    return out


def tree_scores(model, X):
    scores = np.zeros((X.shape[0], model.n_labels_))
    for row, own in enumerate(leaves(model, X)):
        for leaf in own:
            labels, shares = model.leaf_labels(leaf)
            scores[row, labels] += shares / len(own)
    return scores


@pytest.mark.parametrize("propensity", [False, True])
def test_scores_are_the_mean_over_trees_of_shares_in_the_leaf(propensity):
    model = fitted(**({"propensity": True, "alpha": 1} if propensity else {}))
    weights = propensity_weights(TRAIN.Y.sum(axis=0).A1, 300) if propensity else np.ones(15)
    expected = tree_scores(model, TEST.X) * weights / weights.max()
    top = model.predict_topk(TEST.X, k=15)
    for row, (labels, scores) in enumerate(zip(top.labels, top.scores, strict=True)):
        found = labels >= 0
        assert found.sum() == np.count_nonzero(expected[row])
        assert np.allclose(scores[found], expected[row, labels[found]], rtol=1e-4)


def test_tail_classifiers_compare_with_the_mean_document():
    model = fitted(propensity=True, alpha=0.7, gamma=4.0)
    trees = tree_scores(model, TEST.X) * model.label_weights_
    unit = [np.hstack([part.X.toarray(), np.ones((len(part), 1))]) for part in (TRAIN, TEST)]
    unit = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in unit]
    means = np.stack([unit[0][TRAIN.Y[:, label].toarray().ravel() > 0].mean(axis=0) for label in range(15)])
    distance = np.square(unit[1][:, None] - means).sum(axis=2)
    expected = trees**0.7 * (1 / (1 + np.exp(4 * distance))) ** 0.3
    top = model.predict_topk(TEST.X, k=5)
    for row, (labels, scores) in enumerate(zip(top.labels, top.scores, strict=True)):
        found = labels >= 0
        assert np.allclose(scores[found], expected[row, labels[found]], rtol=1e-3)


def test_alpha_is_the_one_with_the_best_ranking_of_held_out_documents():
    useful, useless = fitted(propensity=True), fitted(propensity=True, gamma=1e4)  # so steep that all scores are 0
    assert useful.alpha_ < 1
    assert useful.tail_.nnz > 0
    assert useless.alpha_ == 1
    assert useless.tail_.nnz == 0


def test_alpha_is_that_of_the_authors_where_no_document_can_be_held_out():
    assert FastXML(n_estimators=2, propensity=True).fit(np.eye(3), np.eye(3)).alpha_ == AUTHORS_ALPHA


def test_rare_labels_come_first_with_propensity():
    counts = TRAIN.Y.sum(axis=0).A1
    plain, weighted = (fitted(propensity=propensity).predict_topk(TEST.X, k=3).labels for propensity in (False, True))
    assert counts[weighted[weighted >= 0]].mean() < counts[plain[plain >= 0]].mean()


def test_normalized_documents_have_no_length():
    model = fitted(normalize=True, C=3.0)
    long, short = model.predict_topk(TEST.X * 7, k=5), model.predict_topk(TEST.X, k=5)
    assert np.array_equal(long.labels, short.labels)
    plain = fitted()
    assert not np.array_equal(plain.predict_topk(TEST.X * 0.01, k=5).labels, plain.predict_topk(TEST.X, k=5).labels)


def test_more_trees_are_better():
    def precision(model):
        top = model.fit(TRAIN.X, TRAIN.Y).predict_topk(TEST.X, k=3)
        return TEST.Y[np.arange(60)[:, None], top.labels].mean()

    assert precision(FastXML(n_estimators=20)) > precision(FastXML(n_estimators=1))


@pytest.mark.parametrize(
    ("name", "change", "rule"),
    [
        ("child_", lambda child: np.where(child > 0, 1, 0).astype(np.int32), "children"),
        ("label_weights_", np.zeros_like, "label weights above 0"),
        ("tail_norms_", lambda norms: norms - 5, "norms of at most 2"),
        ("tail_", lambda tail: tail * np.float32(2), "values of at most 1"),
    ],
)
def test_a_state_that_no_training_makes_is_refused(name, change, rule):
    model = fitted(propensity=True, alpha=0.5)
    model.check_state()
    if name == "tail_":
        model.tail_.data[0] = 1.0
    setattr(model, name, change(getattr(model, name)))
    with pytest.raises(StateError, match=rule):
        model.check_state()
