import numpy as np
import scipy.sparse as sp

from labelspace.models.neighbors import Neighbors


def test_a_vote_worked_by_hand():
    # Query (1, 1)/sqrt 2. Documents: (1, 0) and (0, 1) with cosine .7071 each, (1, 1) with cosine 1, and one that
    # shares nothing. Power 2: votes .5, .5, 1. Label 0 has the first and third: 1.5 / 2; label 1 the second: .5 / 2.
    X = np.array([[3.0, 0, 0], [0, 2.0, 0], [1.0, 1.0, 0], [0, 0, 1.0]])
    Y = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]])
    top = Neighbors(n_neighbors=4, power=2.0).fit(X, Y).predict_topk(np.array([[5.0, 5.0, 0]]), k=3)
    assert top.labels.tolist() == [[0, 1, -1]]
    assert np.allclose(top.scores[0, :2], [0.75, 0.25], atol=1e-3), "but for rounding to 8 bits"


def test_the_length_of_a_document_does_not_matter():
    X, Y = np.eye(3), np.eye(3)
    model = Neighbors().fit(X * [[1], [10], [100]], Y)
    assert np.array_equal(model.predict_topk(X * 7, 1).labels, [[0], [1], [2]])


def test_more_neighbors_than_documents_are_all_of_them():
    top = Neighbors(n_neighbors=1000).fit(np.eye(2), np.eye(2)).predict_topk(np.ones((1, 2)), k=2)
    assert np.allclose(top.scores, 0.5)


def test_a_high_power_leaves_the_vote_to_the_nearest():
    X = np.array([[1.0, 0.0], [1.0, 1.0]])
    top = Neighbors(n_neighbors=2, power=1e6).fit(X, np.eye(2)).predict_topk(np.array([[1.0, 0.9]]), k=2)
    assert top.labels.tolist() == [[1, -1]]
    assert top.scores[0, 0] == 1.0


def test_negative_similarity_is_no_vote():
    model = Neighbors().fit(sp.csr_matrix([[1.0, 0.0], [-1.0, 0.0]]), np.eye(2))
    assert model.predict_topk(np.array([[1.0, 0.0]]), k=2).labels.tolist() == [[0, -1]]
