import numpy as np
import pytest

from labelspace.errors import ParameterError
from labelspace.models.partial_fit import learn_more
from labelspace.models.pdsparse import PDSparse
from tests.checks import precision_at_1


def test_more_l1_has_fewer_weights(data):
    train, _ = data
    for per_label in (False, True):
        few, many = (PDSparse(per_label=per_label, l1_weight=l1).fit(train.X, train.Y) for l1 in (0.5, 0.01))
        assert 0 < few.weights_.nnz < many.weights_.nnz


def test_passes_without_l1_change_weights_but_add_none(data, monkeypatch):
    train, _ = data
    taken = []  # before they are rounded
    take = PDSparse._take
    monkeypatch.setattr(PDSparse, "_take", lambda model, W: (taken.append(W), take(model, W)))
    for n in (0, 3):
        PDSparse(patience=None, max_iter=3, post_max_iter=n, tol=1e-6).fit(train.X, train.Y)
        taken.append(taken[-1])
    plain, post = taken[3], taken[-1]
    assert abs(plain - post).max() > 0.01
    assert set(zip(*post.nonzero(), strict=True)) <= set(zip(*plain.nonzero(), strict=True))


def test_it_keeps_the_best_pass_and_stops(data):
    train, test = data
    seen = []
    model = PDSparse(max_iter=30, post_max_iter=0, patience=1, tol=1e-9)
    model.fit(train.X, train.Y, validation=(test.X, test.Y), progress=lambda *step: seen.append(step))
    assert len(seen) < 30
    n_best = len(seen) - 1  # the last pass was no improvement
    short = PDSparse(max_iter=n_best, post_max_iter=0, patience=None, tol=1e-9).fit(train.X, train.Y)
    assert (model.weights_ != short.weights_).nnz == 0


def test_too_few_documents_to_stop_by_are_all_trained_on(data):
    train, _ = data
    model = PDSparse().fit(train.X[:2], train.Y[:2])
    assert model.seen_.sum() == (train.Y[:2].sum(axis=0) > 0).sum()


@pytest.mark.parametrize("per_label", [True, False])
def test_none_normalizes_per_label_only(data, per_label):
    train, test = data
    model = PDSparse(per_label=per_label).fit(train.X, train.Y)
    scores = [model.predict_topk(X, 3).scores for X in (test.X, test.X * 3)]
    assert np.allclose(*scores, atol=1e-6) == per_label


def test_classifiers_trained_together_cannot_go_on_learning(data):
    train, _ = data
    model = PDSparse(max_iter=2).fit(train.X, train.Y)
    with pytest.raises(ParameterError, match="per_label of pdsparse is False; train with per_label=True"):
        learn_more(model, train.X[:5], train.Y[:5])


def test_weights_stay_sparse_as_they_go_on(data):
    train, test = data
    n = len(train) // 2
    half, whole = (PDSparse(per_label=True).fit(train.X[:rows], train.Y[:rows]) for rows in (n, len(train)))
    before = half.weights_.nnz
    for start in range(n, len(train), n // 4):
        learn_more(half, train.X[start : start + n // 4], train.Y[start : start + n // 4])
    assert before < half.weights_.nnz < 1.2 * whole.weights_.nnz
    right, best = (precision_at_1(model, test) for model in (half, whole))
    assert right > best - 0.05
