import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.models.annexml import AnnexML
from labelspace.models.annexml.model import learn_partitions
from tests.checks import precision_at_1

SMALL = {"n_estimators": 2, "embedding_dim": 8, "epochs": 3}


@pytest.fixture(scope="module")
def groups():
    """Two topics that share no label and few features."""
    rng = np.random.default_rng(0)
    topic = np.arange(200) % 2
    own = np.arange(40) // 20 == topic[:, None]
    X = np.where(own, rng.random((200, 40)) < 0.3, rng.random((200, 40)) < 0.02)
    Y = np.zeros((200, 6))
    Y[np.arange(200), 3 * topic + rng.integers(3, size=200)] = 1
    return sp.csr_matrix(X, dtype=np.float32), sp.csr_matrix(Y, dtype=np.float32), topic


def test_label_neighbors_fall_into_one_partition(groups):
    X, Y, topic = groups
    model = AnnexML(n_partitions=2, reg_weight=0.1, **SMALL)
    graph = (Y @ Y.T).sign()
    ticks = []
    weights, partition_of = learn_partitions(X, graph, model, np.random.default_rng(1), ticks.append)
    assert weights.shape == (40, 2)
    assert ticks == [200] * model.partition_epochs
    assert max((partition_of == topic).mean(), (partition_of != topic).mean()) > 0.95


def test_a_large_l1_weight_leaves_no_weights_and_one_partition(groups):
    X, Y, _ = groups
    model = AnnexML(n_partitions=4, reg_weight=1e6, **SMALL).fit(X, Y)
    assert model.weights_.shape[1] >= 2
    assert model.point_starts_[-1] == 400, "each learner has all documents"
    assert (np.diff(model.point_starts_) > 0).all(), "a partition without documents is dropped"


@pytest.mark.parametrize(("n", "given", "expected"), [(100, None, 1), (11_999, None, 1), (12_000, None, 2), (5, 9, 5)])
def test_there_is_a_partition_for_6000_documents(n, given, expected):
    assert AnnexML(n_partitions=given).count_partitions(n) == expected


def test_votes_are_counted_with_sharpness_0(groups):
    X, Y, _ = groups
    model = AnnexML(n_neighbors=7, sharpness=0.0, **SMALL).fit(X, Y)
    top = model.predict_topk(X[:20], 6)
    votes = np.where(top.labels >= 0, top.scores, 0)
    assert (votes == votes.round()).all()
    assert (votes.sum(axis=1) == 2 * 7).all(), "documents have one label each"


def test_votes_worked_by_hand():
    model = AnnexML(sharpness=2.0)
    Y = sp.csr_matrix(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]], np.float32))
    near = np.array([[[0, 1], [2, -1]]], np.int32)
    top = model._vote(near, np.array([[[1.0, 0.5], [0.0, -np.inf]]], np.float32), Y, 3)
    assert top.labels.tolist() == [[1, 0, 2]]
    assert np.allclose(top.scores, [[1 + np.exp(-1), 1, np.exp(-2)]])


def test_documents_without_labels_are_no_neighbors(groups):
    X, Y, _ = groups
    Y = sp.csr_matrix(Y.toarray() * (np.arange(200) < 150)[:, None])
    model = AnnexML(**SMALL).fit(X, Y)
    assert model.Y_.shape[0] == 150
    assert (np.diff(model.Y_.indptr) > 0).all()


def test_a_document_of_unknown_features_has_no_label():
    X = sp.csr_matrix(np.hstack([np.eye(4), np.zeros((4, 1))]), dtype=np.float32)
    model = AnnexML(**SMALL).fit(X, np.ones((4, 1)))
    assert model.predict_topk(np.array([[0, 0, 0, 0, 1.0], [1, 0, 0, 0, 0]]), 1).labels.tolist() == [[-1], [0]]


def test_training_makes_neighbors_better():
    data = planted(n=700, d=400, l=50, seed=3)
    train, test = data.rows(range(500)), data.rows(range(500, 700))
    trained, random = (
        AnnexML(n_estimators=2, n_neighbors=5, learning_rate=rate).fit(train.X, train.Y) for rate in (0.1, 1e-9)
    )
    better, worse = (precision_at_1(model, test) for model in (trained, random))
    assert better > worse + 0.05
