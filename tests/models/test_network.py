import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from labelspace.errors import ParameterError
from labelspace.models import network
from labelspace.models.network import Layers, Network, to_label_errors
from labelspace.models.popular import Popular
from labelspace.training import output_layer as output
from labelspace.training import sparse_layers as sparse_layers
from labelspace.training.optimizers import AdamParameter
from labelspace.training.output_layer import OutputLayer
from labelspace.training.sparse_layers import SparseLayer


def hits(model, documents, k):
    return model.predict_topk(documents.X, k).to_csr(documents.Y.shape[1]).multiply(documents.Y).sum()


def test_it_beats_the_most_frequent_labels(data):
    train, test = data
    ours, theirs = (hits(model.fit(train.X, train.Y), test, 3) for model in (Network(), Popular()))
    assert ours > 2 * theirs


def case(seed=3):
    """A tiny network in float64, where finite differences are exact enough, and a batch for it."""
    rng = np.random.default_rng(seed)
    X = sp.random(6, 9, 0.5, "csr", np.float64, rng=rng)
    Y = sp.csr_matrix((rng.random((6, 5)) < 0.4).astype(np.float64))
    groups = {"E": (9, 4), "c": (4,), "W": (5, 4), "b": (5,)}
    return X, Y, {key: rng.standard_normal(shape) for key, shape in groups.items()}


def loss(X, Y, w):
    """Binary cross-entropy, summed over the labels, averaged over the documents."""
    z = np.maximum(X @ w["E"] + w["c"], 0) @ w["W"].T + w["b"]
    return (np.logaddexp(0, z) - Y.toarray() * z).sum() / X.shape[0]


def slopes(X, Y, w, key, step=1e-5):
    """The gradient of the loss by central differences."""
    out = np.empty_like(w[key])
    for place in np.ndindex(out.shape):
        ends = []
        for sign in (1, -1):
            moved = {**w, key: w[key].copy()}
            moved[key][place] += sign * step
            ends.append(loss(X, Y, moved))
        out[place] = (ends[0] - ends[1]) / (2 * step)
    return out


@pytest.fixture
def gradients(monkeypatch):
    """The gradients that one step on the tiny case hands to Adam and, of E, the change that Adagrad made of it."""
    monkeypatch.setattr(output, "LABEL_BLOCK", 2)  # blocks that do not divide the labels
    X, Y, w = case()
    w32 = {key: value.astype(np.float32) for key, value in w.items()}
    found = {}
    last = OutputLayer(w32["W"].copy(), w32["b"].copy())
    layers = Layers(SparseLayer(w32["E"].copy()), AdamParameter(w32["c"].copy()), last)
    owners = {id(layers.hidden_bias): "c", id(last.weights): "W", id(last.bias): "b"}

    def record(self, gradient, rate, number, part=slice(None)):
        key = owners[id(self)]
        found.setdefault(key, np.full(self.value.shape, np.nan))[part] = gradient

    monkeypatch.setattr(AdamParameter, "step", record)
    given = (X.data.astype(np.float32), X.indices, X.indptr)
    activity = layers.features.embed(given, layers.hidden_bias.value)
    gate = (activity > 0).astype(np.float32)
    back = layers.descend_output(activity * gate, Y, np.arange(6, dtype=np.int32), rate=0.1)
    layers.descend_input(given, back * gate, 0.1, 0.1)
    return {**found, "E": layers.features.vectors - w32["E"]}


@pytest.mark.parametrize("key", ["c", "W", "b"])
def test_gradients_agree_with_finite_differences(gradients, key):
    assert np.allclose(gradients[key], slopes(*case(), key), atol=1e-5)


def test_the_step_of_the_features_vectors_is_their_scaled_gradient(gradients):
    slope = slopes(*case(), "E")
    first = np.sqrt(np.square(slope).mean(axis=1, keepdims=True))  # Adagrad's memory after one step
    assert np.allclose(gradients["E"], -0.1 * slope / np.where(first > 0, first, 1), atol=1e-4)


def test_errors_of_certain_labels_are_zero_and_quiet():
    Y = sp.csr_matrix([[1.0, 0.0]])
    scores = np.array([[500, -500]], np.float32)
    to_label_errors(Y, np.zeros(1, np.int32), scores, 0)
    assert scores.tolist() == [[0, 0]]


def test_another_seed_is_another_network(data):
    train, _ = data
    one, again, other = (Network(epochs=1, seed=seed).fit(train.X, train.Y) for seed in (0, 0, 1))
    assert np.array_equal(one.vectors_, again.vectors_)
    assert not np.array_equal(one.vectors_, other.vectors_)


def test_blocks_and_threads_change_nothing_but_time(data, monkeypatch):
    train, _ = data
    monkeypatch.setattr(output, "LABEL_BLOCK", 16)
    monkeypatch.setattr(network, "ROW_BLOCK", 8)
    monkeypatch.setattr(sparse_layers, "ROW_BLOCK", 8)
    monkeypatch.setattr(sparse_layers, "FEATURE_BLOCK", 32)
    models = []
    for threads in (1, 2, 3):
        monkeypatch.setenv("LABELSPACE_THREADS", str(threads))
        with threadpool_limits(threads, user_api="blas"):
            models.append(Network(epochs=2).fit(train.X, train.Y))
    for key in Network.state:
        assert all(np.array_equal(getattr(models[0], key), getattr(model, key)) for model in models[1:])


def test_a_label_without_documents_is_never_suggested(data):
    train, test = data
    Y = train.Y.tolil()
    Y[:, 11] = 0
    top = Network(epochs=1).fit(train.X, Y.tocsr()).predict_topk(test.X, train.Y.shape[1])
    assert 11 not in top.labels
    assert (top.labels[:, -1] == -1).all()


def test_a_feature_without_documents_says_nothing():
    X = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    model = Network().fit(X, np.eye(2))
    empty, unknown = (model.predict_topk(np.array([row]), 2) for row in ([0.0, 0, 0], [0.0, 0, 1]))
    assert np.array_equal(empty.scores, unknown.scores)


def test_progress_is_told_by_epoch(data):
    train, _ = data
    told = []
    Network(epochs=3).fit(train.X, train.Y, progress=lambda *news: told.append(news))
    assert told == [("epochs", 1, 3), ("epochs", 2, 3), ("epochs", 3, 3)]


@pytest.mark.parametrize(("steps", "epochs"), [(1, 6), (160, 10), (10**6, 15)])
def test_epochs_are_chosen_within_bounds(data, monkeypatch, steps, epochs):
    monkeypatch.setattr(network, "STEPS", steps)
    train, told = data[0].rows(range(64)), []
    Network(hidden=4).fit(train.X, train.Y, progress=lambda *news: told.append(news))
    assert told[-1] == ("epochs", epochs, epochs)


@pytest.mark.parametrize(("key", "value"), [("dropout", 1.0), ("input_dropout", -0.1), ("dropout", float("nan"))])
def test_a_dropout_lies_below_one(key, value):
    with pytest.raises(ParameterError, match=f"{key} of network must be at least 0 and below 1, but is"):
        Network(**{key: value}).fit(np.eye(2), np.eye(2))
