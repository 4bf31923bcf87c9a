"""Weights of documents and labels: every method learns by them, or refuses them by name."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.errors import DataError, ParameterError
from labelspace.models.capabilities import WeighsDocuments, WeighsLabels, methods_with
from labelspace.models.registry import METHODS, create
from labelspace.types import TopK
from tests.checks import digest
from tests.models.test_contract import made, reads_text

WEIGHING = methods_with(WeighsDocuments)
EXACT = {
    "one_vs_rest": {"tol": 1e-6, "max_iter": 2000, "threshold": 0.0},
    "label_tree": {"tol": 1e-6, "max_iter": 2000, "threshold": 0.0, "tune": False},
    "pdsparse": {"tol": 1e-6, "max_iter": 2000, "threshold": 0.0, "per_label": True, "l1_weight": 0.0},
    "popular": {},
}
"""Where a document of weight 2 is the same as two documents, once the solver has converged."""


def scores(top: TopK, n_labels: int) -> np.ndarray:
    return top.to_csr(n_labels, with_scores=True).toarray()


@pytest.fixture(scope="module")
def data():
    return planted(n=120, d=60, l=8, seed=3)


@pytest.mark.parametrize("name", WEIGHING)
def test_of_documents_that_contradict_each_other_the_weightier_ones_win(name, data) -> None:
    X = sp.vstack([data.X, data.X]).tocsr()
    Y = sp.csr_matrix(
        np.repeat(np.eye(2, dtype=np.float32), 120, axis=0)
    )  # each document with one label, and the other
    weights = np.repeat([5.0, 0.5], 120)
    for heavy, given in enumerate((weights, weights[::-1])):
        params = {"patience": None} if name == "pdsparse" else {}  # which stops by documents that contradict, too
        top = made(name, **params).fit(X, Y, sample_weight=given).predict_topk(data.X, 2)
        assert (top.labels[:, 0] == heavy).mean() > 0.9


@pytest.mark.parametrize("name", [name for name in METHODS if name not in WEIGHING])
def test_a_method_that_cannot_weigh_says_who_can(name, data) -> None:
    X = ["a text"] * 120 if reads_text(name) else data.X
    with pytest.raises(ParameterError, match=f"{name} does not; train with --method .*one_vs_rest"):
        made(name).fit(X, data.Y, sample_weight=np.full(120, 2.0))


@pytest.mark.parametrize("name", WEIGHING)
def test_weights_of_1_change_no_byte_and_weights_of_0_leave_documents_out(name, data, tmp_path) -> None:
    made(name).fit(data.X[:100], data.Y[:100]).save(tmp_path / "plain")
    made(name).fit(data.X[:100], data.Y[:100], sample_weight=np.ones(100)).save(tmp_path / "ones")
    made(name).fit(data.X, data.Y, sample_weight=np.arange(120) < 100).save(tmp_path / "zeros")
    assert digest(tmp_path / "plain") == digest(tmp_path / "ones") == digest(tmp_path / "zeros")


@pytest.mark.parametrize("name", EXACT)
def test_a_weight_of_2_is_the_document_twice(name, data) -> None:
    twice = np.arange(0, 120, 3)
    rows = np.concatenate([np.arange(120), twice])
    weights = np.ones(120)
    weights[twice] = 2
    weighted = create(name, **EXACT[name]).fit(data.X, data.Y, sample_weight=weights).predict_topk(data.X, 8)
    repeated = create(name, **EXACT[name]).fit(data.X[rows], data.Y[rows]).predict_topk(data.X, 8)
    plain = create(name, **EXACT[name]).fit(data.X, data.Y).predict_topk(data.X, 8)
    difference = np.abs(scores(weighted, 8) - scores(repeated, 8)).max()
    assert difference < 0.1 * np.abs(scores(weighted, 8) - scores(plain, 8)).max()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"one number for each of 120 documents, but have shape \(3,\)"),
        (np.full(120, np.nan), "finite and at least 0, but that of document 0 is nan"),
        (np.r_[np.ones(119), -1], "finite and at least 0, but that of document 119 is -1"),
        (np.zeros(120), "all are 0"),
        (["heavy"] * 120, "must be numbers"),
    ],
)
def test_wrong_weights_are_refused(weights, message, data) -> None:
    with pytest.raises(DataError, match=message):
        made("one_vs_rest").fit(data.X, data.Y, sample_weight=weights)


@pytest.mark.parametrize("name", METHODS)
def test_a_heavier_label_comes_first_or_the_method_says_who_can(name, data) -> None:
    X = ["a text"] * 120 if reads_text(name) else data.X
    weights = np.where(np.arange(8) == 5, 1000.0, 1.0)
    if name not in methods_with(WeighsLabels):
        with pytest.raises(ParameterError, match=f"{name} does not; train with --method blend"):
            made(name).fit(X, data.Y, label_weight=weights)
        return
    weighted = made(name).fit(X, data.Y, label_weight=weights)
    plain = made(name).fit(X, data.Y, label_weight=np.full(8, 3.0))  # all worth the same
    assert (weighted.predict_topk(X, 8).labels[:, 0] == 5).mean() > 0.9
    assert not weighted.ranks_by_probability
    assert plain.ranks_by_probability
    # The probabilities stay what they are.
    one, other = (scores(model.predict_topk(X, 8, calibrated=True), 8) for model in (weighted, plain))
    assert np.allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("weights", [np.ones(3), np.zeros(8), np.r_[np.ones(7), 0], np.r_[np.ones(7), np.inf]])
def test_wrong_weights_of_labels_are_refused(weights, data) -> None:
    with pytest.raises(DataError, match="weights of labels must be"):
        made("blend").fit(data.X, data.Y, label_weight=weights)
