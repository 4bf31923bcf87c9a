"""The training set of treespace: label texts as documents, and the probabilities that biases start at."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.models.treespace.training import TrainingSet
from labelspace.models.treespace.tree import breadth_first_nodes

TREE = breadth_first_nodes(np.array([-1, 0, 0, -1]), np.array([0, 1, 2, 4]))  # 0 over 1 and 2; 4 alone; 3 has no node
X = sp.csr_matrix(np.eye(3, 4, dtype=np.float32))
Y = sp.csr_matrix(np.array([[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 1]], np.float32))
LEVEL_WEIGHTS = np.array([1, 2], np.float32)


def test_label_texts_with_features_are_further_documents_of_the_label_and_its_ancestors():
    texts = sp.csr_matrix(np.array([[0, 0, 0, 0], [3, 4, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 2]], np.float32))
    data = TrainingSet.build(X, Y, TREE, LEVEL_WEIGHTS, texts, label_text=0.5)
    assert np.allclose(data.X[3:].toarray(), [[0, 0, 0, 1], [0.6, 0.8, 0, 0]]), "labels 4 and 1, in the order of nodes"
    assert data.weights.tolist() == [[1, 2]] * 3 + [[0.5, 1]] * 2
    on_path = [data.on_path[a:b].tolist() for a, b in zip(data.starts, data.starts[1:], strict=False)]
    assert [TREE.label[nodes].tolist() for nodes in on_path] == [
        [-1, 0, 1],
        [-1, 0, 1, 2],
        [-1, 4],
        [-1, 4],
        [-1, 0, 1],
    ]


def test_label_texts_that_are_not_normalized_stay_as_they_are():
    texts = sp.csr_matrix(np.array([[0, 0, 0, 0], [3, 4, 0, 0], [0] * 4, [0] * 4, [0] * 4], np.float32))
    data = TrainingSet.build(X, Y, TREE, LEVEL_WEIGHTS, texts, label_text=0.5, normalize=False)
    assert data.X[3:].toarray().tolist() == [[3, 4, 0, 0]]


@pytest.mark.parametrize(("texts", "label_text"), [(None, 0.5), (X[[0] * 5], 0.0)])
def test_without_label_texts_or_their_weight_there_are_only_documents(texts, label_text):
    data = TrainingSet.build(X, Y, TREE, LEVEL_WEIGHTS, texts, label_text)
    assert data.X.shape == (3, 4)
    expected = {0: 2.5 / 4, 4: 1.5 / 4, 1: 2.5 / 3, 2: 1.5 / 3}
    for node in range(1, len(TREE)):
        assert data.probabilities[node] == pytest.approx(expected[int(TREE.label[node])])
