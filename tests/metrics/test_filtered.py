"""Labels that do not count for a document."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace import metrics
from labelspace.errors import DataError
from labelspace.types import TopK

Y = sp.csr_matrix(np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32))
FILTERED = sp.csr_matrix(np.array([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]], np.float32))
SCORES = np.array([[0.9, 0.5, 0.3, 0.8], [0.2, 0.9, 0.8, 0.1], [0.9, 0.8, 0.7, 0.6]], np.float32)


def test_a_case_worked_by_hand():
    """Of document 0, labels 0 and 3 are filtered: it keeps label 1, ranked before 2. Of document 1, label 1."""
    true = metrics.labels_without(Y, FILTERED)
    assert true.toarray().tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert metrics.most_filtered(FILTERED) == 2
    top = metrics.predictions_without(TopK.from_scores(SCORES, 4), FILTERED, k=2)
    assert top.labels.tolist() == [[1, 2], [2, 0], [0, 1]]
    assert top.scores[0].tolist() == pytest.approx([0.5, 0.3])
    found = metrics.evaluate(true, top, np.array([2, 2, 1, 1]), 3, ks=[1, 2])
    assert found["P@1"] == pytest.approx(100 * 2 / 3, abs=1e-3)  # documents 0 and 1 are right; without filters, 1 of 3
    assert found["P@2"] == pytest.approx(100 * 2 / 6, abs=1e-3)
    assert found["R@2"] == pytest.approx(100 * 2 / 3, abs=1e-3)
    assert metrics.evaluate(Y, TopK.from_scores(SCORES, 2), np.array([2, 2, 1, 1]), 3, ks=[1])["P@1"] < 34


def test_the_same_as_setting_scores_to_zero():
    """As evaluation scripts of the repository do it: filtered entries of both matrices become 0."""
    rng = np.random.default_rng(0)
    scores, true = rng.random((50, 30)).astype(np.float32), (rng.random((50, 30)) < 0.1).astype(np.float32)
    filtered = sp.csr_matrix((rng.random((50, 30)) < 0.15).astype(np.float32))
    rows, labels = filtered.nonzero()
    expected_true, expected_scores = true.copy(), scores.copy()
    expected_true[rows, labels] = expected_scores[rows, labels] = 0
    deep = TopK.from_scores(scores, 5 + metrics.most_filtered(filtered))
    assert metrics.predictions_without(deep, filtered, 5).labels.tolist() == (
        TopK.from_scores(expected_scores, 5).labels.tolist()
    )
    assert metrics.labels_without(sp.csr_matrix(true), filtered).toarray().tolist() == expected_true.tolist()


def test_too_few_labels_are_padded_and_padding_is_no_label():
    top = TopK.from_scores(SCORES[:1], 2)  # labels 0 and 3, both filtered
    assert metrics.predictions_without(top, FILTERED[:1], 2).labels.tolist() == [[-1, -1]]
    assert metrics.predictions_without(TopK.empty(1, 3), FILTERED[:1], 2).labels.tolist() == [[-1, -1]]
    unknown = TopK(np.array([[9, 1]]), np.array([[2.0, 1.0]]))  # a label beyond those of the filters
    assert metrics.predictions_without(unknown, FILTERED[:1], 2).labels.tolist() == [[9, 1]]


def test_filters_of_other_documents():
    with pytest.raises(DataError, match="must have one row per document, but have 2 for 3"):
        metrics.labels_without(Y, FILTERED[:2])
