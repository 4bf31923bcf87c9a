"""A training step of NeuralXC against torch's gradients of eq. 1, and the loss of the output decoder."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.models.neuralxc.model import NeuralXC, NeuralXCNet, OutputLoss
from labelspace.training import dense_layers, losses
from labelspace.training.autoencoder import DECODER_RATE_FACTOR, TrainingPhase
from labelspace.training.losses import SampledLabels
from tests.models.neuralxc.parameters import STACKS, copies, parameters
from tests.models.recorded_gradients import first_adagrad_step, record_adam

N, FEATURES, LABELS = 6, 9, 7
DEEP = {"input_layers": "8,5", "output_layers": "6,5,4", "regressor": "7", "activation": "tanh", "input_code": "elu"}
CASES = {
    "plain": {},
    "mean": {"reduction": "mean"},
    "deep": DEEP,
    "shallow f": {"input_layers": "8,5", "output_layers": 6, "output_code": "elu", "reduction": "mean"},
    "dropout": {"dropout": 0.4},
    "paper": NeuralXC.presets["paper"],
    "authors": {**NeuralXC.presets["authors"], "input_layers": "8,7,5", "output_layers": "6,4", "regressor": 5},
}
PHASES = {
    "all": TrainingPhase(0.7, 0.4, True),
    "codes": TrainingPhase(0.7, 0.4, False),
    "classes": TrainingPhase(0.0, 0.0, True),
    "inputs": TrainingPhase(0.7, 0.0, True),
    "outputs": TrainingPhase(0.0, 0.4, True),
}


@pytest.fixture(name="tiny")
def tiny_data():
    rng = np.random.default_rng(3)
    X = sp.random(N, FEATURES, 0.5, "csr", np.float32, rng=rng)
    Y = (rng.random((N, LABELS)) < 0.4).astype(np.float32)
    Y[2] = 0  # a document without labels
    return normalize_rows(X), sp.csr_matrix(Y)


def eq1(torch, X, Y, w, model, phase, mask):
    """The loss of eq. 1 in torch, with the parameters of the net as tensors."""
    activations = {"relu": torch.relu, "tanh": torch.tanh, "elu": torch.nn.functional.elu, "linear": lambda z: z}
    inner = activations[model.activation]

    def through(values, name, depth, last):
        for at in range(depth):
            values = values @ w[f"{name}{at}rows"].T + w[f"{name}{at}bias"]
            values = (last if at == depth - 1 else inner)(values)
        return values

    depths = {name: sum(f"{name}{at}rows" in w for at in range(5)) for name in STACKS}
    x, y = (torch.tensor(M.toarray(), dtype=torch.float64) for M in (X, Y))

    def encode(values, name, table, last, mask):
        first = (inner if depths[name] else last)(values @ table + w[name])
        return through(first * mask, name, depths[name], last)

    code = encode(x, "phi_i", w["E_i"], activations[model.input_code], torch.tensor(mask))
    label_code = encode(y, "phi_o", w["E_o"], activations[model.output_code], 1.0)
    weights, bias = (w["W"], w["b"]) if "b" in w else (w["W"][:, :-1], w["W"][:, -1])

    def scores(values):
        return through(values, "psi_o", depths["psi_o"], inner) @ weights.T + bias

    divisors = (X.shape[1], Y.shape[1]) if model.reduction == "mean" else (1, 1)
    reconstruction = through(code, "psi_i", depths["psi_i"], inner) @ w["D_i"].T
    total = phase.alpha * (reconstruction - x).square().sum() / divisors[0]
    total = total + phase.beta * (torch.sigmoid(scores(label_code)) - y).square().sum() / divisors[1]
    if phase.classify:
        z = scores(through(code, "f", depths["f"], activations[model.output_code]))
        total = total + torch.nn.functional.binary_cross_entropy_with_logits(z, y, reduction="sum") / divisors[1]
    return total / X.shape[0]


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("phase", PHASES.values(), ids=PHASES)
@pytest.mark.parametrize("params", CASES.values(), ids=CASES)
def test_a_step_has_the_gradients_of_eq_1_that_torch_finds(tiny, monkeypatch, params, phase, sampled):
    torch = pytest.importorskip("torch")
    X, Y = tiny
    monkeypatch.setattr(dense_layers, "LABEL_BLOCK", 3)  # blocks that do not divide the labels
    if sampled:  # so many negatives that all labels are sampled, and the sums are exact
        monkeypatch.setattr(losses, "MAX_UNSAMPLED_LABELS", 1)
    model = NeuralXC().set_params(
        **{"input_layers": 8, "output_layers": 6, "dropout": 0.0, "n_negatives": 200, **params}
    )
    net = NeuralXCNet(model, X, Y)
    rng = np.random.default_rng(1)
    dense, tables = parameters(net)
    for table in [part.value for part in dense.values()] + [part.vectors for part in tables.values()]:
        table[:] = 0.5 * rng.standard_normal(table.shape)
    before, outputs, gradients = copies(net), [], record_adam(monkeypatch)
    forward = net.phi_i.forward
    monkeypatch.setattr(net.phi_i, "forward", lambda *args: outputs.append(forward(*args)) or outputs[-1])
    order = rng.permutation(N).astype(np.int32)
    model._train_step(net, phase, order, 1.0)

    w = {key: torch.tensor(value, dtype=torch.float64, requires_grad=True) for key, value in before.items()}
    eq1(torch, X[order], Y[order], w, model, phase, outputs[0].dropout_mask).backward()
    expected = {key: np.zeros(t.shape) if t.grad is None else t.grad.numpy() for key, t in w.items()}
    for key, part in dense.items():
        assert np.allclose(gradients.get(id(part), 0), expected[key], atol=1e-5), key
    after = copies(net)
    sparse_rate = model.feature_learning_rate if phase.classify else model.learning_rate
    rates = {"E_i": sparse_rate, "E_o": sparse_rate, "W": sparse_rate, "D_i": DECODER_RATE_FACTOR * model.learning_rate}
    for key in tables:
        assert np.allclose(after[key] - before[key], first_adagrad_step(expected[key], rates[key]), atol=1e-4), key
    assert np.abs(expected["W"]).max() > 0.001


@pytest.mark.parametrize("phase", [PHASES["all"], PHASES["codes"], PHASES["classes"]], ids=["all", "codes", "classes"])
def test_gradients_at_sampled_labels_are_those_at_all_labels_times_their_weights(tiny, phase):
    Y = sp.csr_matrix(tiny[1].toarray() * (np.arange(LABELS) != 3))  # label 3 is sampled
    rows = np.array([4, 0, 2, 5], np.int32)
    true, n = Y[rows], 4 * (phase.classify + (phase.beta > 0))
    exact = np.random.default_rng(2).standard_normal((n, LABELS)).astype(np.float32)
    positives = np.unique(true.indices)
    ids, weights = np.append(positives, 3).astype(np.int32), np.append(np.ones(len(positives)), 3.5).astype(np.float32)
    columns = np.searchsorted(positives, true.indices).astype(np.int32)
    labels = SampledLabels(ids, columns, true.indptr, weights, len(positives))
    sampled = exact[:, ids]
    OutputLoss(Y, rows, None, phase, mean=False).to_gradient(exact, 0)
    OutputLoss(Y, rows, labels, phase, mean=False).to_gradient(sampled, 0)
    assert np.allclose(sampled, exact[:, ids] * weights, atol=1e-6)
    assert np.abs(exact).max() > 0.01
