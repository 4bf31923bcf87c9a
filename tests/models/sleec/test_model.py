import numpy as np

from labelspace.features.normalize import normalize_rows
from labelspace.models.sleec import Sleec
from labelspace.models.sleec.learner import cluster_documents, zero_smallest
from labelspace.models.sleec.model import vote_weights


def test_neighbors_are_those_of_brute_force_on_the_embeddings(data):
    train, test = data
    model = Sleec(embedding_dim=20, n_clusters=2, n_estimators=1).fit(train.X, train.Y)
    learner, X = model.learners_[0], normalize_rows(test.X)
    near, cluster = learner.nearest(X, 8), learner.cluster_of(X)
    points = learner.vectors * learner.scales[:, None]
    for c in np.unique(cluster):
        rows = np.flatnonzero(cluster == c)
        W = learner.weights[learner.weight_rows[c]] * learner.weight_scales[learner.weight_rows[c]][:, None]
        members = slice(learner.starts[c], learner.starts[c + 1])
        squares = np.square((X[rows] @ W)[:, None] - points[members]).sum(axis=2)
        assert np.allclose(-near.scores[rows], np.sort(squares, axis=1)[:, :8], atol=1e-4)
        best = learner.documents[members][squares.argmin(axis=1)]
        assert (near.labels[rows, 0] == best).mean() > 0.95  # but for ties of int8


def test_the_embeddings_of_training_documents_are_those_of_the_regressors(data):
    train, _ = data
    model = Sleec(embedding_dim=20).fit(train.X, train.Y)
    learner = model.learners_[0]
    W = learner.weights[learner.weight_rows[0]] * learner.weight_scales[learner.weight_rows[0]][:, None]
    expected = (normalize_rows(train.X) @ W)[learner.documents]
    assert np.allclose(learner.vectors * learner.scales[:, None], expected, atol=0.02)


def test_documents_with_like_labels_are_nearer_than_by_their_features(data):
    train, test = data
    model = Sleec(embedding_dim=30).fit(train.X, train.Y)
    hits = test.Y[np.arange(200), model.predict_topk(test.X, 1).labels[:, 0]].mean()
    X, Q = normalize_rows(train.X), normalize_rows(test.X)
    cosine = train.Y[np.asarray((Q @ X.T).toarray().argsort(axis=1)[:, -50:]).ravel()].toarray()
    by_features = cosine.reshape(200, 50, -1).sum(axis=1).argmax(axis=1)
    assert hits > test.Y[np.arange(200), by_features].mean() + 0.02


def test_clusters_are_not_empty_and_have_all_documents(data):
    documents, starts = cluster_documents(data[0].X, 30, seed=0)
    assert np.array_equal(np.sort(documents), np.arange(700))
    assert (np.diff(starts) > 0).all()
    assert starts[-1] == 700


def test_vote_weights_by_hand():
    # Squared distances 1 and 4, of 4: exp(-s/4) and exp(-s).
    weights = vote_weights(np.array([[-1.0, -4.0, -np.inf]], np.float32), sharpness=4.0)
    first, last = np.exp(-1), np.exp(-4)
    assert np.allclose(weights, [[first / (first + last), last / (first + last), 0]])


def test_the_smallest_values_of_each_column_are_zeroed():
    values = np.array([[1, -9], [-2, 8], [3, 0.1], [4, 7]], np.float32)
    assert zero_smallest(values, 0.25).tolist() == [[0, -9], [-2, 8], [3, 0], [4, 7]]


def test_more_dimensions_clusters_and_neighbors_than_documents():
    model = Sleec(n_clusters=9, n_estimators=2).fit(np.eye(3), np.eye(3))
    assert np.array_equal(model.predict_topk(np.eye(3), 1).labels, [[0], [1], [2]])
