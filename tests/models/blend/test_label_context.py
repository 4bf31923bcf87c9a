from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.estimator.state_constraints import StateError
from labelspace.models.blend import stacking_model
from labelspace.models.blend.stacking_model import count_pairs

Y = sp.csr_matrix(np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 1]], np.float32))


def as_dense(pairs):
    return sp.csr_matrix((pairs.shared, pairs.partners, pairs.starts), shape=(4, 4)).toarray()


def test_pairs_are_counted_once():
    assert np.array_equal(as_dense(count_pairs(Y)), np.triu((Y.T @ Y).toarray(), 1))
    assert count_pairs(Y).counts.tolist() == [3, 3, 2, 2]


def test_the_most_frequent_pairs_are_kept(monkeypatch):
    monkeypatch.setattr(stacking_model, "MAX_PAIRS", 1)
    assert as_dense(count_pairs(Y)).tolist()[0] == [0, 3, 0, 0]
    assert as_dense(count_pairs(Y)).sum() == 3


def test_documents_with_very_many_labels_are_left_out_of_the_pairs(monkeypatch):
    monkeypatch.setattr(stacking_model, "MAX_DOCUMENT_LABELS", 2)
    assert as_dense(count_pairs(Y)).tolist() == [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert count_pairs(Y).counts.tolist() == [3, 3, 2, 2]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"partners": np.array([3, 2, 1, 3, 2], np.int32)}, "partners of each label in order"),
        ({"counts": np.array([3, 3, -2, 2], np.float32)}, "at least 0"),
        ({"n_documents": np.array([0], np.float32)}, "at least one document"),
    ],
)
def test_a_state_that_no_training_makes_is_refused(change, rule):
    pairs = count_pairs(Y)
    pairs.check_state()
    with pytest.raises(StateError, match=rule):
        replace(pairs, **change).check_state()
