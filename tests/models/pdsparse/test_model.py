import numpy as np
import pytest

from labelspace.models.pdsparse import PDSparse


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
