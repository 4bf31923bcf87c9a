import json

import numpy as np
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.models.neighbors import Neighbors
from labelspace.store.model_folder import sealed


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


def long_documents(n=300, d=2000, words=90):
    """Each label has words of its own, which weigh much; all documents share others, which weigh little."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 20, n)
    own = 100 * (y[:, None] % 20) + rng.integers(0, 60, (n, words))
    other = 100 * rng.integers(0, 20, (n, words)) + rng.integers(60, 100, (n, words))
    columns, values = np.hstack([own, other]), np.hstack([np.ones((n, words)), np.full((n, words), 0.1)])
    X = sp.csr_matrix((values.ravel(), (np.repeat(np.arange(n), 2 * words), columns.ravel())), (n, d), np.float32)
    return X, sp.csr_matrix(np.eye(20)[y])


def test_the_weakest_features_of_long_documents_are_left_out():
    X, Y = long_documents()
    exact, pruned = (Neighbors(n_neighbors=10, power=2.0, pruning=share).fit(X[:250], Y[:250]) for share in (0, 0.1))
    sizes = [np.count_nonzero(m.values_) + np.count_nonzero(m.gap_values_) for m in (exact, pruned)]
    assert sizes[1] < 0.7 * sizes[0]
    labels, expected = (m.predict_topk(X[250:], 1).labels for m in (pruned, exact))
    assert np.array_equal(labels, expected), "they say nothing of the labels"
    near, similarity = pruned._nearest(normalize_rows(X[:250]), 1)
    assert near.ravel().tolist() == list(range(250)), "a document of the index is found"
    assert np.allclose(similarity, 1, atol=0.02), "and is the same, not only similar"


def test_short_documents_and_dense_columns_lose_nothing():
    rng = np.random.default_rng(1)
    short = sp.random(200, 500, 0.03, "csr", np.float32, rng)
    dense = sp.csr_matrix(rng.standard_normal((200, 60)), dtype=np.float32)
    for X in (short, dense):
        models = [Neighbors(n_neighbors=5, power=1.0, pruning=share).fit(X, np.eye(200)) for share in (0, 0.1)]
        tops = [model.predict_topk(X, 5) for model in models]
        assert np.array_equal(tops[0].labels, tops[1].labels)
        assert np.array_equal(tops[0].scores, tops[1].scores)


def test_a_model_saved_before_pruning_was_known_prunes_nothing(tmp_path):
    X, Y = long_documents()
    model = Neighbors(n_neighbors=10, power=2.0, pruning=0).fit(X, Y)
    model.save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    stored = json.loads(file.read_text())
    drop_keys(stored, {"pruning", "pruning_"})
    file.write_text(json.dumps(sealed(stored)))
    loaded = Neighbors.load(tmp_path / "model")
    assert loaded.pruning_ == 0
    expected, top = model.predict_topk(X, 5), loaded.predict_topk(X, 5)
    assert np.array_equal(top.labels, expected.labels)
    assert np.array_equal(top.scores, expected.scores)


def drop_keys(value, keys):
    """Delete some keys of a dict and all dicts within."""
    for key in list(value):
        if key in keys:
            del value[key]
        elif isinstance(value[key], dict):
            drop_keys(value[key], keys)
