"""Training on codes: which parts each phase trains, and a step against torch's gradients."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.models.hierarchicalxc import model as hierarchicalxc
from labelspace.models.hierarchicalxc.classifiers import NodeTargets, init_classifiers
from labelspace.models.hierarchicalxc.model import HierarchicalXC
from labelspace.training import epochs
from labelspace.training.autoencoder import DECODER_RATE_FACTOR, TrainingPhase
from tests.models.recorded_gradients import first_adagrad_step, record_adam


@pytest.fixture
def nets(monkeypatch):
    """The nets that are trained from now on."""
    nets, build = [], hierarchicalxc.CodeNet
    monkeypatch.setattr(hierarchicalxc, "CodeNet", lambda *parts: nets.append(build(*parts)) or nets[-1])
    return nets


def copies(net):
    """Copies of the autoencoder's parameters, and of the classifiers."""
    layers = [*net.encoder.mlp.layers, *net.decoder.mlp.layers]
    autoencoder = [net.encoder.features.vectors, net.encoder.bias.value, net.decoder.features.vectors]
    autoencoder += [part.value for layer in layers for part in (layer.rows, layer.bias)]
    return [table.copy() for table in autoencoder], net.classifiers.vectors.copy()


@pytest.mark.parametrize("training", ["staged", "pretrained", "joint"])
def test_staged_training_freezes_the_code_while_the_classifiers_are_trained(data, monkeypatch, nets, training):
    states, batches = [], epochs.batches

    def copy_first(*args):
        states.append(copies(nets[0]))
        yield from batches(*args)

    monkeypatch.setattr(epochs, "batches", copy_first)
    train = data[0].rows(range(200))
    HierarchicalXC(input_layers="16,8", epochs=1, training=training).fit(train.X, train.Y)
    states.append(copies(nets[0]))
    changed = [
        ({not np.array_equal(*pair) for pair in zip(old[0], new[0], strict=True)}, not np.array_equal(old[1], new[1]))
        for old, new in zip(states, states[1:], strict=False)
    ]
    expected = {
        "staged": [({True}, False), ({False}, True)],
        "pretrained": [({True}, False), ({True}, True)],
        "joint": [({True}, True)],
    }
    assert changed == expected[training]


@pytest.mark.parametrize("layers", ["8", "8,5"])
@pytest.mark.parametrize(
    "phase", [TrainingPhase(0.7, 0.0, True), TrainingPhase(0.0, 0.0, True), TrainingPhase(0.7, 0.0, False)]
)
def test_a_step_has_the_gradients_that_torch_finds(monkeypatch, nets, layers, phase):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    X = normalize_rows(sp.random(6, 9, 0.5, "csr", np.float32, rng=rng))
    Y = (rng.random((6, 7)) < 0.4).astype(np.float32)
    Y[0], Y[1], Y[2] = 1, 0, 0  # every label has a document, two documents have none
    Y = sp.csr_matrix(Y)
    model = HierarchicalXC(input_layers=layers, activation="tanh", input_code="elu", epochs=1, off_path=1, dropout=0.0)
    model.fit(X, Y)
    net = nets[0]
    stacks = [*net.encoder.mlp.layers, *net.decoder.mlp.layers]
    dense = [net.encoder.bias, *(part for layer in stacks for part in (layer.rows, layer.bias))]
    tables = {"E": net.encoder.features, "D": net.decoder.features, "N": net.classifiers}
    for table in [part.value for part in dense] + [layer.vectors for layer in tables.values()]:
        table[:] = 0.5 * rng.standard_normal(table.shape)
    for layer in tables.values():
        layer.squares[:] = 0
    gradients = record_adam(monkeypatch)
    before = {key: layer.vectors.copy() for key, layer in tables.items()}
    w = {id(part): torch.tensor(part.value, dtype=torch.float64, requires_grad=True) for part in dense}
    w |= {key: torch.tensor(table, dtype=torch.float64, requires_grad=True) for key, table in before.items()}
    order = rng.permutation(6).astype(np.int32)
    model._train_step(net, X, rng, phase, order, 1.0)

    tanh, elu = torch.tanh, torch.nn.functional.elu
    x = torch.tensor(X[order].toarray(), dtype=torch.float64)
    code = (tanh if net.encoder.mlp.layers else elu)(x @ w["E"] + w[id(net.encoder.bias)])
    for layer in net.encoder.mlp.layers:
        code = elu(code @ w[id(layer.rows)].T + w[id(layer.bias)])
    decoded = code
    for layer in net.decoder.mlp.layers:
        decoded = tanh(decoded @ w[id(layer.rows)].T + w[id(layer.bias)])
    loss = phase.alpha * (decoded @ w["D"].T - x).square().sum()
    if phase.classify:
        z = code @ w["N"][:, :-1].T + w["N"][:, -1]
        targets, nodes, ends = net.targets.of_rows(order)
        rows = np.repeat(np.arange(6), np.diff(ends))
        loss = loss + torch.nn.functional.binary_cross_entropy_with_logits(
            z[rows, nodes], torch.tensor(targets, dtype=torch.float64), reduction="sum"
        )
    (loss / 6).backward()
    expected = {key: np.zeros(t.shape) if t.grad is None else t.grad.numpy() for key, t in w.items()}
    for part in dense:
        assert np.allclose(gradients.get(id(part), 0), expected[id(part)], atol=1e-5)
    sparse_rate = model.feature_learning_rate if phase.classify else model.learning_rate
    rates = {"E": sparse_rate, "D": DECODER_RATE_FACTOR * model.learning_rate, "N": model.node_learning_rate}
    for key, layer in tables.items():
        step = first_adagrad_step(expected[key], rates[key])
        assert np.allclose(layer.vectors - before[key], step, atol=1e-4), key


@pytest.mark.parametrize("prior_bias", [True, False])
def test_biases_of_nodes_start_at_their_frequency_or_at_0(data, prior_bias):
    train = data[0].rows(range(200))
    tree = HierarchicalXC(input_layers=4, epochs=1).fit(train.X, train.Y).label_trees()[0]
    targets = NodeTargets(tree, train.Y, 0)
    vectors = init_classifiers(targets, 4, prior_bias, np.random.default_rng(0)).vectors
    assert np.array_equal(vectors[:, -1], targets.log_odds() if prior_bias else np.zeros(len(tree)))
    assert vectors[:, :-1].all()
