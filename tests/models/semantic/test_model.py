"""Semantic: the closed forms against plain computations, labels without documents, zero-shot, learning on."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.models.partial_fit import learn_more
from labelspace.models.semantic import Semantic
from labelspace.models.semantic.calibration import fit_line_and_power
from labelspace.models.semantic.regression import DocumentSums, leave_one_out, unit_vectors
from labelspace.types import LabelSpace

RNG = np.random.default_rng(0)
TEXTS = RNG.standard_normal((12, 20)).astype(np.float32)  # of labels


def documents(n, labels=12, noise=0.5, seed=1):
    """Vectors near those of the texts of their one or two labels."""
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, 12), np.float32)
    for row in Y:
        row[rng.choice(labels, rng.integers(1, 3), replace=False)] = 1
    X = Y @ TEXTS + noise * rng.standard_normal((n, 20))
    return sp.csr_matrix(X.astype(np.float32)), sp.csr_matrix(Y)


def solved(Z, Y, T, weight):
    """Minimize |Y - Z V'|^2 + weight |V - T|^2 as least squares over all rows at once."""
    A = np.vstack([Z, np.sqrt(weight) * np.eye(Z.shape[1])])
    return np.linalg.lstsq(A, np.vstack([Y, np.sqrt(weight) * T.T]), rcond=None)[0].T


@pytest.fixture
def sums():
    X, Y = documents(60)
    center = np.full(20, 0.05, np.float32)
    Z = unit_vectors(X, center)
    return Z, Y, DocumentSums.nothing(12, 20).plus(X, Y, center)


def test_label_vectors_solve_the_ridge_regression_towards_texts(sums):
    Z, Y, known = sums
    found = known.label_vectors(2.0 * TEXTS, known.inverse(2.0))
    np.testing.assert_allclose(found, solved(Z, Y.toarray(), TEXTS, 2.0), atol=1e-4)


def test_scores_without_a_document_are_those_of_a_fit_without_it(sums):
    Z, Y, known = sums
    inverse = known.inverse(2.0)
    scores = leave_one_out(Z, Y, known.label_vectors(2.0 * TEXTS, inverse), inverse)
    for row in (0, 17, 59):
        others = np.arange(60) != row
        expected = Z[row] @ solved(Z[others], Y.toarray()[others], TEXTS, 2.0).T
        np.testing.assert_allclose(scores[row], expected, atol=1e-3)


def test_vectors_lose_the_center_and_empty_rows_stay_empty():
    X = sp.csr_matrix(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    found = unit_vectors(X, np.array([0.6, 0.0], np.float32))
    np.testing.assert_allclose(found, [[0.0, 1.0], [0.0, 0.0]], atol=1e-6)


def test_probabilities_are_calibrated_by_scores_without_the_document():
    X, Y = documents(1500, noise=1.5)
    V, W = documents(1500, noise=1.5, seed=2)
    top = Semantic().fit(X, Y, label_features=TEXTS).predict_topk(V, 5, calibrated=True)
    listed = top.labels >= 0
    right = np.take_along_axis(W.toarray(), np.maximum(top.labels, 0), 1)[listed]
    assert abs(top.scores[listed].sum() / right.sum() - 1) < 0.05


def test_a_frequent_label_is_scaled_by_its_count_if_it_is_right_more_often():
    rng = np.random.default_rng(3)
    scores = rng.random((400, 4), np.float32)
    counts = np.array([300, 300, 3, 3])
    right = scores * np.array([1.5, 1.5, 0.5, 0.5]) > rng.random((400, 4))
    line, power = fit_line_and_power(scores, sp.csr_matrix(right.astype(np.float32)), counts, np.array([0.0, 1.0, 0.0]))
    assert power > 0.05
    assert line.weights[1] > 0


def test_a_label_without_documents_is_found_by_its_text():
    X, Y = documents(300, labels=10)  # labels 10 and 11 have none
    model = Semantic().fit(X, Y, label_features=TEXTS)
    assert model.predict_topk(TEXTS[10:], k=1).labels.tolist() == [[10], [11]]
    assert model.text_index_.ids.tolist() == [10, 11]
    only = np.arange(12) == 11
    assert model.predict_topk(TEXTS[11:], k=3, allowed=only).labels[0].tolist() == [11, -1, -1]


def test_without_label_texts_a_label_needs_documents():
    X, Y = documents(300, labels=10)
    labels = Semantic().fit(X, Y).predict_topk(TEXTS, k=12).labels
    assert not np.isin(labels, [10, 11]).any()


def test_zero_shot_ranks_by_texts_alone_and_goes_on_learning(tmp_path):
    names = LabelSpace([f"label {i}" for i in range(12)])
    model = Semantic().fit_labels(names, TEXTS)
    model.save(tmp_path / "model")
    model = Semantic.load(tmp_path / "model")
    assert model.predict_topk(TEXTS, k=1).labels[:, 0].tolist() == list(range(12))
    others = np.roll(TEXTS, 1, axis=0)
    learn_more(model, np.repeat(others, 9, axis=0), np.repeat(np.eye(12, dtype=np.float32), 9, axis=0), names)
    assert model.predict_topk(others, k=1).labels[:, 0].tolist() == list(range(12))


def test_documents_learned_later_count_as_those_of_the_training():
    X, Y = documents(200)
    names = LabelSpace([f"label {i}" for i in range(12)])
    once = Semantic(reg_weight=3.0).fit(X, Y, names, label_features=TEXTS)
    later = Semantic(reg_weight=3.0).fit(X[:150], Y[:150], names, label_features=TEXTS)
    later.center_ = once.center_
    later.sums_ = DocumentSums.nothing(12, 20).plus(X[:150], Y[:150], once.center_)
    learn_more(later, X[150:], Y[150:], names)
    np.testing.assert_allclose(later.sums_.gram, once.sums_.gram, atol=1e-6)
    np.testing.assert_allclose(later.index_.vectors(range(12)), once.index_.vectors(range(12)), rtol=0.1, atol=1e-3)


def test_vectors_must_be_given_and_of_a_size_to_invert():
    with pytest.raises(DataError, match="reads the vectors of the labels' texts, but label_features is None"):
        Semantic().fit_labels(LabelSpace(["a"]))
    with pytest.raises(DataError, match="at most 4096 features, but documents have 5000"):
        Semantic().fit(sp.csr_matrix((3, 5000), dtype=np.float32), np.eye(3))
