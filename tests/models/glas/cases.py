"""Small models and documents that the tests of glas share."""

from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.models.glas import Glas, training
from labelspace.models.glas.training import TrainingData

ENCODERS = [
    {"n_layers": n_layers, "activation": activation, "weight_norm": weight_norm}
    for n_layers in (1, 2)
    for activation in ("relu", "linear")
    for weight_norm in (False, True)
]


def small_data():
    """Documents that are learned in a moment."""
    return planted(n=260, d=150, l=30, seed=2)


def uninformative_data():
    """Labels in pairs that share every document, and features that say nothing of them."""
    rng = np.random.default_rng(9)
    Y = np.kron(rng.random((200, 6)) < 0.3, [1, 1])
    Y[0] = 1
    return sp.csr_matrix(rng.random((200, 30)), dtype=np.float32), sp.csr_matrix(Y, dtype=np.float32)


def quick(**params):
    """A small model, also with settings that have no effect with the others."""
    return Glas().set_params(**{"embedding_dim": 16, "epochs": 3, **params})


def training_data(model, X, Y):
    """What a model trains on, as its ``fit`` builds it."""
    return TrainingData.build(X, Y, model)


def after_one_epoch(model, data):
    """A net after one epoch, with its training data."""
    X, Y = data.X.copy(), data.Y
    net, train = training.initial_net(model, X, Y), training_data(model, X, Y)
    training.run_epoch(model, net, train, 0, lambda *step: None)
    return net, train


def before_store(model, look, *documents, **options):
    """Fit, and call ``look(net, X)`` when the training is over, before the net is stored."""
    store = Glas._store

    def spy(model, net, X, *rest):
        look(net, X)
        store(model, net, X, *rest)

    with patch.object(Glas, "_store", spy):
        model.fit(*documents, **options)


def trained_arrays(model, *documents, **options):
    """Fit; copies of the net's arrays at the end of training, by name."""
    arrays = {}
    before_store(model, lambda net, X: arrays.update(copies(net)), *documents, **options)
    return arrays


def copies(net):
    return {name: value.copy() for name, value in net.arrays().items()}


def similarities_by_definition(Y, measure):
    """U, label by label, of a dense Y."""
    n, both = len(Y), Y.T @ Y
    U = np.eye(Y.shape[1])
    for i, j in np.argwhere(both > 0):
        one, other, shared = both[i, i], both[j, j], both[i, j]
        U[i, j] = {
            "arithmetic": (shared / one + shared / other) / 2,
            "geometric": np.sqrt(shared / one * shared / other),
            "jaccard": shared / (one + other - shared),
            "pmi": max(np.log(shared * n / (one * other)) / -np.log(shared / n), 0) if i != j else 1,
        }[measure]
    return U
