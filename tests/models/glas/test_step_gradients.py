"""One training step on a tiny case: the gradients of all weights against those of the paper's objective."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.models.glas import Glas, losses, network
from labelspace.models.glas import model as glas_model
from labelspace.models.glas.encoder import Encoder
from labelspace.models.glas.network import Net
from labelspace.models.glas.training_data import TrainingData
from labelspace.training.dense_layers import DenseLayer
from labelspace.training.optimizers import AdagradParameter, AdamParameter
from labelspace.training.sparse_layers import SparseLayer
from tests.models.glas.cases import ENCODERS, training_data
from tests.models.glas.reference_loss import objective

N, FEATURES, LABELS, DIM = 7, 9, 17, 6
PARAMS = {"embedding_dim": DIM, "input_dropout": 0.1, "dropout": 0.3, "reg_weight": 3.0, "n_hardest": 3}
PARAMS |= {"n_negatives": 4, "learning_rate": 0.05, "feature_learning_rate": 0.2}
LOSSES = [{"loss": loss, "all_labels": all_} for loss in ("bce", "softmax", "margin") for all_ in (True, False)]
REGULARIZERS = [{"regularizer": name} for name in ("spread_out", "gravity", "none")]
MEASURES = [{"similarity": measure} for measure in ("geometric", "jaccard", "pmi")]
COMBINED = [{"n_layers": 2, "weight_norm": True, "regularizer": "gravity", "loss": "softmax", "all_labels": False}]


def tiny(seed=4):
    """Documents of which one has no label and two labels have no document."""
    rng = np.random.default_rng(seed)
    X = rng.random((N, FEATURES)) * (rng.random((N, FEATURES)) < 0.7)
    X[:, 0] = 1.0  # no document is empty
    Y = rng.random((N, LABELS)) < 0.2
    Y[5] = True  # a document that is not in the batch
    Y[:, [3, 8]] = False
    Y[2] = False
    Y[4, 5] = True
    return sp.csr_matrix(X, dtype=np.float32), sp.csr_matrix(Y, dtype=np.float32)


def tiny_net(model, seed=5):
    """A net with every weight away from its initial value."""
    rng = np.random.default_rng(seed)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    dense = None
    if model.n_layers == 2:
        dense = DenseLayer(normal(DIM, DIM), model.weight_norm)
        dense.bias.value[:], dense.norm.value[:] = normal(DIM), 0.8
    encoder = Encoder(SparseLayer(normal(FEATURES, DIM), model.weight_norm), dense, model.activation == "relu")
    encoder.bias.value[:], encoder.gain.value[:] = 0.5 * normal(DIM), 1.3
    embeddings = np.full((LABELS, DIM + 1), np.nan, np.float32)  # the bias column is not read in training
    embeddings[:, :-1] = normal(LABELS, DIM)
    embeddings[:, :-1] /= np.linalg.norm(embeddings[:, :-1], axis=1, keepdims=True)
    return Net(encoder, embeddings, AdagradParameter(normal(LABELS)), AdamParameter(np.array([1.1], np.float32)))


def parameters(net):
    """Every parameter object of a net by its name in the reference, but E and V."""
    encoder = net.encoder
    named = {"c": encoder.bias, "g": encoder.gain, "b": net.bias, "log_s": net.log_scale}
    if encoder.dense is not None:
        named |= {"R": encoder.dense.rows, "c2": encoder.dense.bias, "g2": encoder.dense.norm}
    return named


def weights_of(net):
    """Every weight of a net in float64, by its name in the reference."""
    values = {key: parameter.value for key, parameter in parameters(net).items()}
    values |= {"E": net.encoder.features.vectors, "V": net.label_embeddings[:, :-1]}
    return {key: value.astype(np.float64) for key, value in values.items()}


def one_step(model, monkeypatch):
    """Run one step of training; the weights before, what was sampled, and the gradients of every weight."""
    monkeypatch.setattr(network, "LABEL_BLOCK", 4)  # blocks that do not divide the labels
    monkeypatch.setattr(losses, "ROW_BLOCK", 3)
    X, Y = tiny()
    net, data = tiny_net(model), training_data(model, X, Y)
    before, drawn, gradients = weights_of(net), {}, {}
    names = {id(parameter): key for key, parameter in parameters(net).items()}

    def record_steps(cls):
        step = cls.step

        def spy(self, gradient, learning_rate, *rest):
            which = rest[0] if cls is AdagradParameter else slice(None)
            gradients.setdefault(names[id(self)], np.zeros(self.value.shape))[which] = gradient
            step(self, gradient, learning_rate, *rest)

        monkeypatch.setattr(cls, "step", spy)

    def record_labels(gradient, ids, start, stop, *rest):
        gradients.setdefault("V", np.zeros((LABELS, DIM)))[ids[start:stop]] = gradient

    def remember(key, function):
        def spy(*args):
            drawn[key] = function(*args)
            return drawn[key]

        return spy

    record_steps(AdamParameter)
    record_steps(AdagradParameter)
    monkeypatch.setattr(network, "adagrad_unit_rows", record_labels)
    monkeypatch.setattr(glas_model, "sample_positives", remember("positives", glas_model.sample_positives))
    monkeypatch.setattr(TrainingData, "sample_labels", remember("sampled", TrainingData.sample_labels))
    monkeypatch.setattr(Encoder, "forward", remember("activations", Encoder.forward))
    rows = np.array([4, 0, 2, 6, 1], np.int32)
    hard = None if data.all_labels else np.random.default_rng(7).choice(data.labels, (N, 1))[rows]
    model._step(net, data, rows, hard, 1.0, np.random.default_rng(6))
    features = net.encoder.features
    moved = features.vectors - before["E"]  # Adagrad's first step: its memory is the gradient's mean square
    gradients["E"] = -moved * np.sqrt(features.squares)[:, None] / model.feature_learning_rate
    return before, drawn | {"Y_batch": Y[rows].toarray(), "Y": Y.toarray()}, gradients


def by_differences(w, drawn, model, step=1e-6, entries=12):
    """Central differences at some entries of each weight, nan at the others."""
    gradients = {key: np.full(value.shape, np.nan) for key, value in w.items()}
    for key, value in w.items():
        for entry in np.random.default_rng(8).permutation(list(np.ndindex(value.shape)))[:entries]:
            ends = []
            for sign in (1, -1):
                moved = value.copy()
                moved[tuple(entry)] += sign * step
                ends.append(float(np.sum(objective({**w, key: moved}, drawn, model, np))))
            gradients[key][tuple(entry)] = (ends[0] - ends[1]) / (2 * step)
    return gradients


def by_torch(w, drawn, model):
    torch = pytest.importorskip("torch")
    tensors = {key: torch.tensor(value, requires_grad=True) for key, value in w.items()}
    objective(tensors, drawn, model, torch).sum().backward()
    return {key: (value * 0 if value.grad is None else value.grad).detach().numpy() for key, value in tensors.items()}


def tangential(gradient, vectors):
    """The part of each row of a gradient that is orthogonal to the row of some vectors."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return gradient - (gradient * units).sum(axis=1, keepdims=True) * units


@pytest.mark.parametrize("differentiate", [pytest.param(by_torch, marks=pytest.mark.slow), by_differences])
@pytest.mark.parametrize(
    "params",
    ENCODERS + LOSSES + REGULARIZERS + MEASURES + COMBINED,
    ids=lambda params: "-".join(map(str, params.values())),
)
def test_gradients_are_those_of_the_paper_s_objective(monkeypatch, params, differentiate):
    model = Glas(**PARAMS | params)
    w, drawn, ours = one_step(model, monkeypatch)
    expected = differentiate(w, drawn, model)
    if not model.weight_norm:
        expected = {key: value for key, value in expected.items() if key not in ("g", "g2")}
    else:
        ours["E"] = tangential(ours["E"].T, w["E"].T).T  # the rest changes the norm alone
    if model.loss == "margin":
        expected = {key: value for key, value in expected.items() if key != "log_s"}
    ours["V"] = tangential(ours["V"], w["V"])
    assert ours.keys() == expected.keys()
    for key, gradient in expected.items():
        known = np.isfinite(gradient)
        largest = np.abs(gradient[known]).max()
        assert largest > 1e-3, f"{key} is tested by something"
        assert np.allclose(ours[key][known], gradient[known], rtol=1e-3, atol=1e-4 * largest), key
    if model.all_labels is False:
        assert drawn["sampled"].weights.max() > 1, "some labels represent others"
