from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.models.glas import Glas, losses, network, training
from labelspace.models.glas.encoder import Encoder, EncoderShape, FixedNumbers, SgdLayer, SgdNumbers, SgdParameter
from labelspace.models.glas.losses import RegularizerGradient, loss_gradient
from labelspace.models.glas.network import Net
from labelspace.models.glas.training import TrainingData, sample_positives
from labelspace.training.dense_layers import DenseLayer
from labelspace.training.losses import SampledLabels
from labelspace.training.optimizers import AdagradParameter, AdamParameter
from labelspace.training.sparse_layers import SparseLayer
from tests.models.glas.cases import (
    ENCODERS,
    after_one_epoch,
    quick,
    similarities_by_definition,
    small_data,
    training_data,
)
from tests.models.glas.reference_loss import objective

NO_REGULARIZER = RegularizerGradient(np.zeros(0, np.int32), np.zeros((0, 16), np.float32))


@pytest.fixture(scope="module")
def small():
    return small_data()


def test_a_sampled_positive_is_one_of_the_document_s_labels_with_equal_probability():
    ends = np.array([0, 2, 2, 5], np.int32)
    positions = np.array([sample_positives(ends, np.random.default_rng(seed)) for seed in range(3000)])
    assert (positions[:, 1] == -1).all()
    assert set(positions[:, 0]) == {0, 1}
    assert np.allclose(np.bincount(positions[:, 2])[2:] / 3000, 1 / 3, atol=0.04)


def test_sampled_labels_give_the_gradient_of_all_labels_on_average(small):
    model = quick(all_labels=False, n_negatives=6, regularizer="none")
    net, data = after_one_epoch(model, small)
    rows = np.arange(0, 40, 8, dtype=np.int32)
    Y_batch, phi = data.Y[rows], net.encoder.embed(data.X[rows])
    assert len(data.labels) == 30

    def phi_gradient(sampled):
        gradient = loss_gradient(net.scores(phi, sampled), sampled, np.zeros(0, np.int64), "bce", 0.0, 0)
        return net.update_labels(gradient, phi, sampled, NO_REGULARIZER, 0.0)

    of_all = phi_gradient(SampledLabels(np.arange(30, dtype=np.int32), Y_batch.indices, Y_batch.indptr))
    hard, rng = np.tile(np.array([4, 7, -1], np.int32), (len(rows), 1)), np.random.default_rng(1)
    draws = np.array([phi_gradient(data.sample_labels(Y_batch, 6, hard, rng)) for _ in range(600)])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - of_all) < 5 * error + 1e-6).all()
    assert draws.std() > 0.05 * np.abs(of_all).mean(), "draws differ"


def test_similarities_are_a_block_of_the_matrix(small):
    data = training_data(quick(), small.X, small.Y)
    labels = np.array([2, 5, 11, 29], np.int32)
    expected = similarities_by_definition(small.Y.toarray(), "arithmetic")[np.ix_(labels, labels)]
    for _ in range(2):  # the scratch array is left as it was
        assert np.allclose(data.similarities(labels), expected, atol=1e-6)


def test_the_number_of_labels_decides_whether_all_are_trained_on(small, monkeypatch):
    assert training_data(Glas(), small.X, small.Y).all_labels
    monkeypatch.setattr(training, "MAX_UNSAMPLED_LABELS", 29)
    assert not training_data(Glas(), small.X, small.Y).all_labels
    assert training_data(Glas(all_labels=True), small.X, small.Y).all_labels


def test_the_number_of_documents_decides_input_dropout(small, monkeypatch):
    assert training_data(Glas(), small.X, small.Y).input_dropout == 0.2
    monkeypatch.setattr("labelspace.training.sparse_layers.MANY_DOCUMENTS", 259)
    assert training_data(Glas(), small.X, small.Y).input_dropout == 0.1
    assert training_data(Glas(input_dropout=0.3), small.X, small.Y).input_dropout == 0.3


N, FEATURES, LABELS, DIM = 7, 9, 17, 6
PARAMS = {"embedding_dim": DIM, "input_dropout": 0.1, "dropout": 0.3, "reg_weight": 3.0, "n_hardest": 3}
PARAMS |= {"n_negatives": 4, "learning_rate": 0.05, "feature_learning_rate": 0.2}
LOSSES = [{"loss": loss, "all_labels": all_} for loss in ("bce", "softmax", "margin") for all_ in (True, False)]
REGULARIZERS = [{"regularizer": name} for name in ("spread_out", "laplacian", "gravity", "none")]
REPEATED = [{"regularizer": name, "repeat_labels": True} for name in ("glas", "spread_out", "laplacian", "gravity")]
PAIRS = [
    {"loss": "margin", "pairs": "all", "positives": positives, "all_labels": all_labels, "margin": 0.5}
    for positives in (None, "all")
    for all_labels in (True, False)
]
CHOICES = [
    {"loss": "softmax", "positives": "one"},
    {"loss": "margin", "learn_scale": True},
    {"normalize_document_embeddings": False, "n_layers": 2},
    {"normalize_label_embeddings": False},
    {"bias": False, "hidden_bias": False, "n_layers": 2},
    {"optimizer": "sgd", "n_layers": 2, "weight_norm": True},
    {"optimizer": "sgd", "normalize_label_embeddings": False, "bias": False},
    {"n_layers": 3},
    {"n_layers": 4, "weight_norm": True, "optimizer": "sgd", "hidden_bias": False},
    {key: value for key, value in Glas.presets["paper"].items() if key not in ("embedding_dim", "reg_weight")},
]
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

    dense = [DenseLayer(normal(DIM, DIM), model.weight_norm) for _ in range(model.n_layers - 1)]
    for layer in dense:
        layer.bias.value[:], layer.norm.value[:] = normal(DIM), 0.8
    sgd = model.optimizer == "sgd"
    features = (SgdLayer if sgd else SparseLayer)(normal(FEATURES, DIM), model.weight_norm)
    relu, normalized = model.activation == "relu", model.normalize_document_embeddings
    shape = EncoderShape(DIM, relu=relu, normalized=normalized, biased=model.hidden_bias, sgd=sgd)
    encoder = Encoder(features, dense, shape)
    encoder.bias.value[:], encoder.gain.value[:] = 0.5 * normal(DIM), 1.3
    embeddings = np.full((LABELS, DIM + 1), np.nan, np.float32)  # the bias column is not read in training
    embeddings[:, :-1] = normal(LABELS, DIM)
    if model.normalize_label_embeddings:
        embeddings[:, :-1] /= np.linalg.norm(embeddings[:, :-1], axis=1, keepdims=True)
    bias = (FixedNumbers if not model.bias else SgdNumbers if sgd else AdagradParameter)(normal(LABELS))
    log_scale = (SgdParameter if sgd else AdamParameter)(np.array([1.1], np.float32))
    return Net(encoder, embeddings, bias, log_scale, model.normalize_label_embeddings)


def parameters(net):
    """Every parameter object of a net by its name in the reference, but E and V."""
    encoder = net.encoder
    named = {"c": encoder.bias, "g": encoder.gain, "b": net.bias, "log_s": net.log_scale}
    for at, dense in enumerate(encoder.dense):
        named |= {f"R{at}": dense.rows, f"c{at}": dense.bias, f"g{at}": dense.norm}
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
            which = rest[0] if issubclass(cls, AdagradParameter) else slice(None)
            gradients.setdefault(names[id(self)], np.zeros(self.value.shape))[which] = gradient
            step(self, gradient, learning_rate, *rest)

        monkeypatch.setattr(cls, "step", spy)

    def record_labels(gradient, ids, start, stop, *rest):
        gradients.setdefault("V", np.zeros((LABELS, DIM)))[ids[start:stop]] = gradient

    def record_rows(gradient, ids, *rest):
        record_labels(gradient, ids, 0, len(ids))

    def remember(key, function):
        def spy(*args):
            drawn[key] = function(*args)
            return drawn[key]

        return spy

    for cls in (AdamParameter, AdagradParameter, SgdParameter, SgdNumbers):
        record_steps(cls)
    monkeypatch.setattr(network, "adagrad_unit_rows", record_labels)
    monkeypatch.setattr(network, "update_rows", record_rows)
    monkeypatch.setattr(training, "sample_positives", remember("positives", training.sample_positives))
    monkeypatch.setattr(TrainingData, "sample_labels", remember("sampled", TrainingData.sample_labels))
    monkeypatch.setattr(Encoder, "forward", remember("activations", Encoder.forward))
    rows = np.array([4, 0, 2, 6, 1], np.int32)
    hard = None if data.all_labels else np.random.default_rng(7).choice(data.labels, (N, 1))[rows]
    training.train_step(model, net, data, rows, hard, 1.0, np.random.default_rng(6))
    features = net.encoder.features
    gradients["E"] = (before["E"] - features.vectors) / model.feature_learning_rate
    if model.optimizer == "adagrad":  # in its first step the memory is the gradient's mean square
        gradients["E"] *= np.sqrt(features.squares)[:, None]
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
    import torch

    tensors = {key: torch.tensor(value, requires_grad=True) for key, value in w.items()}
    objective(tensors, drawn, model, torch).sum().backward()
    return {key: (value * 0 if value.grad is None else value.grad).detach().numpy() for key, value in tensors.items()}


def tangential(gradient, vectors):
    """The part of each row of a gradient that is orthogonal to the row of some vectors."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return gradient - (gradient * units).sum(axis=1, keepdims=True) * units


@pytest.mark.parametrize(
    "params",
    ENCODERS + LOSSES + REGULARIZERS + MEASURES + COMBINED + REPEATED + PAIRS + CHOICES,
    ids=lambda params: "-".join(map(str, params.values())),
)
def test_gradients_are_those_of_the_paper_s_objective(monkeypatch, params):
    differentiate = by_torch if find_spec("torch") else by_differences  # all entries, or some
    model = Glas().set_params(**PARAMS | params)
    w, drawn, ours = one_step(model, monkeypatch)
    expected = differentiate(w, drawn, model)
    dense, fixed = range(model.n_layers - 1), []
    if not model.weight_norm:
        fixed += ["g", *(f"g{at}" for at in dense)]
    else:
        ours["E"] = tangential(ours["E"].T, w["E"].T).T  # the rest changes the norm alone
    if not model.hidden_bias:
        fixed += ["c", *(f"c{at}" for at in dense)]
    if not model.bias:
        fixed += ["b"]
    if not (model.loss != "margin" if model.learn_scale is None else model.learn_scale):
        fixed += ["log_s"]
    expected = {key: value for key, value in expected.items() if key not in fixed}
    if model.normalize_label_embeddings:
        ours["V"] = tangential(ours["V"], w["V"])
    assert ours.keys() == expected.keys()
    for key, gradient in expected.items():
        known = np.isfinite(gradient)
        largest = np.abs(gradient[known]).max()
        assert largest > 1e-3, f"{key} is tested by something"
        assert np.allclose(ours[key][known], gradient[known], rtol=1e-3, atol=1e-4 * largest), key
    if model.all_labels is False:
        assert drawn["sampled"].weights.max() > 1, "some labels represent others"
