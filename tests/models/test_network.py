from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from labelspace.models import network
from labelspace.models.network import HiddenLayerNet, Labels, Network
from labelspace.training import dense_layers, sparse_layers
from labelspace.training.dense_layers import OutputLayer
from labelspace.training.epochs import batch_schedule
from labelspace.training.losses import label_block_bce_gradient
from labelspace.training.optimizers import AdamParameter
from labelspace.training.sparse_layers import SparseLayer
from tests.checks import digest
from tests.models.recorded_gradients import first_adagrad_step, record_adam


def case(seed=3):
    """A tiny network in float64, where finite differences are exact enough, and a batch for it."""
    rng = np.random.default_rng(seed)
    X = sp.random(6, 9, 0.5, "csr", np.float64, rng=rng)
    Y = sp.csr_matrix((rng.random((6, 5)) < 0.4).astype(np.float64))
    shapes = {"E": (9, 4), "c": (4,), "W": (5, 4), "b": (5,)}
    return X, Y, {key: rng.standard_normal(shape) for key, shape in shapes.items()}


def loss(X, Y, w):
    """Binary cross-entropy, summed over the labels, averaged over the documents."""
    z = np.maximum(X @ w["E"] + w["c"], 0) @ w["W"].T + w["b"]
    return (np.logaddexp(0, z) - Y.toarray() * z).sum() / X.shape[0]


def finite_differences(X, Y, w, key, step=1e-5):
    """The gradient of the loss by central differences."""
    out = np.empty_like(w[key])
    for at in np.ndindex(out.shape):
        values = []
        for sign in (1, -1):
            shifted = {**w, key: w[key].copy()}
            shifted[key][at] += sign * step
            values.append(loss(X, Y, shifted))
        out[at] = (values[0] - values[1]) / (2 * step)
    return out


@pytest.fixture
def step(monkeypatch):
    """The gradients that one step on the tiny case hands to Adam and, for E, the step of Adagrad."""
    monkeypatch.setattr(dense_layers, "LABEL_BLOCK", 2)  # blocks that do not divide the labels
    X, Y, w = case()
    w32 = {key: value.astype(np.float32) for key, value in w.items()}
    output = OutputLayer(w32["W"].copy(), w32["b"].copy())
    net = HiddenLayerNet(SparseLayer(w32["E"].copy()), AdamParameter(w32["c"].copy()), output)
    gradients = record_adam(monkeypatch)
    batch = (X.data.astype(np.float32), X.indices, X.indptr)
    net.train_step(batch, Labels(Y, None, np.arange(6, dtype=np.int32)), 0.0, (0.1, 0.1), np.random.default_rng(0))
    parameters = {"c": net.hidden_bias, "W": output.weights, "b": output.bias}
    return {**{key: gradients[id(p)] for key, p in parameters.items()}, "E": net.features.vectors - w32["E"]}


@pytest.mark.parametrize("key", ["c", "W", "b"])
def test_gradients_agree_with_finite_differences(step, key):
    assert np.allclose(step[key], finite_differences(*case(), key), atol=1e-5)


def test_the_step_of_the_feature_embeddings_is_their_scaled_gradient(step):
    assert np.allclose(step["E"], first_adagrad_step(finite_differences(*case(), "E"), 0.1), atol=1e-4)


def test_the_gradient_at_certain_labels_is_zero_and_quiet():
    Y = sp.csr_matrix([[1.0, 0.0]])
    scores = np.array([[500, -500]], np.float32)
    label_block_bce_gradient(Y, np.zeros(1, np.int32), scores, 0)
    assert scores.tolist() == [[0, 0]]


def test_another_seed_gives_another_network(data):
    train = data[0].rows(range(100))
    one, other = (Network(epochs=1, random_state=seed).fit(train.X, train.Y) for seed in (0, 1))
    assert not np.array_equal(one.feature_embeddings_, other.feature_embeddings_)


def test_blocks_and_threads_change_nothing_but_time(data, monkeypatch, tmp_path):
    train, _ = data
    monkeypatch.setattr(dense_layers, "LABEL_BLOCK", 16)
    monkeypatch.setattr(network, "ROW_BLOCK", 8)
    monkeypatch.setattr(sparse_layers, "ROW_BLOCK", 8)
    monkeypatch.setattr(sparse_layers, "FEATURE_BLOCK", 32)
    models = []
    for threads in (1, 2, 3):
        monkeypatch.setenv("LABELSPACE_THREADS", str(threads))
        with threadpool_limits(threads, user_api="blas"):
            models.append(Network(epochs=2).fit(train.X, train.Y))
    for at, model in enumerate(models):
        model.save(tmp_path / str(at))
    assert digest(tmp_path / "0") == digest(tmp_path / "1") == digest(tmp_path / "2")


def test_a_label_without_documents_is_never_suggested(data):
    train, test = data
    Y = train.Y.tolil()
    Y[:, 11] = 0
    top = Network(epochs=1).fit(train.X, Y.tocsr()).predict_topk(test.X, train.Y.shape[1])
    assert 11 not in top.labels
    assert (top.labels[:, -1] == -1).all()


def test_a_feature_without_documents_has_no_effect():
    X = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    model = Network().fit(X, np.eye(2))
    empty, unknown = (model.predict_topk(np.array([row]), 2) for row in ([0.0, 0, 0], [0.0, 0, 1]))
    assert np.array_equal(empty.scores, unknown.scores)


@pytest.mark.parametrize(("steps", "epochs"), [(1, 6), (160, 10), (10**6, 15)])
def test_epochs_are_chosen_within_bounds_and_reported(data, monkeypatch, steps, epochs):
    monkeypatch.setattr(network, "batch_schedule", partial(batch_schedule, steps=steps))
    train, reported = data[0].rows(range(64)), []
    Network(hidden_dim=4).fit(train.X, train.Y, progress=lambda *event: reported.append(event))
    assert reported == [("epochs", at + 1, epochs) for at in range(epochs)]
