import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from labelspace.training import dense_layers as output
from labelspace.training.dense_layers import OutputLayer, SampledOutputLayer, append_ones
from labelspace.training.optimizers import AdamParameter

BATCH, WIDTH, LABELS = 5, 4, 7


@pytest.fixture
def rng():
    return np.random.default_rng(6)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(output, "LABEL_BLOCK", 3)  # does not divide the labels


@pytest.fixture(name="case")
def some_case(rng):
    """Weights, a bias, inputs of the layer, and target scores."""
    shapes = (LABELS, WIDTH), (LABELS,), (BATCH, WIDTH), (BATCH, LABELS)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def loss_gradient_of(target):
    """The gradient of half the squared distance to a target, which has a column per label."""

    def loss_gradient(scores, start):
        scores -= target[:, start : start + scores.shape[1]]

    return loss_gradient


def by_torch(weights, bias, hidden, target):
    """The gradients of the same by autograd."""
    torch = pytest.importorskip("torch")
    W, b, a = (torch.tensor(part, dtype=torch.float64, requires_grad=True) for part in (weights, bias, hidden))
    (0.5 * (a @ W.T + b - torch.tensor(target)).square().sum()).backward()
    return W.grad.numpy(), b.grad.numpy(), a.grad.numpy()


def test_the_output_layer_has_the_gradients_of_torch(case, monkeypatch):
    weights, bias, hidden, target = case
    layer, gradients = OutputLayer(weights.copy(), bias.copy()), {}

    def record(self, gradient, rate, n_steps, part=slice(None)):
        assert (rate, n_steps) == (0.1, 4)
        gradients.setdefault(id(self), np.full(self.value.shape, np.nan))[part] = gradient

    monkeypatch.setattr(AdamParameter, "step", record)
    back = layer.backward(hidden, loss_gradient_of(target), 0.1, 4)
    by_weights, by_bias, by_hidden = by_torch(*case)
    assert np.allclose(gradients[id(layer.weights)], by_weights, atol=1e-5)
    assert np.allclose(gradients[id(layer.bias)], by_bias, atol=1e-5)
    assert np.allclose(back, by_hidden, atol=1e-5)


def test_the_output_layer_does_not_depend_on_the_threads(case, monkeypatch):
    weights, bias, hidden, target = case
    layers, backs = [], []
    for threads in ("1", "3"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        layers.append(OutputLayer(weights.copy(), bias.copy()))
        with threadpool_limits(1, user_api="blas"):
            backs.append([layers[-1].backward(hidden, loss_gradient_of(target), 0.1, n_steps) for n_steps in (1, 2, 3)])
    assert np.array_equal(*backs)
    assert np.array_equal(layers[0].weights.value, layers[1].weights.value)
    assert np.array_equal(layers[0].bias.value, layers[1].bias.value)


@pytest.mark.parametrize("ids", [list(range(LABELS)), [6, 1, 3], []])
def test_sampled_labels_have_the_gradients_of_the_full_layer(case, ids):
    weights, bias, hidden, target = case
    layer, ids = SampledOutputLayer(weights.copy(), bias.copy()), np.array(ids, np.int32)
    back = layer.backward(hidden, ids, loss_gradient_of(target[:, ids]), 0.1)
    by_weights, by_bias, by_hidden = by_torch(weights[ids], bias[ids], hidden, target[:, ids])
    assert np.allclose(back, by_hidden, atol=1e-5)
    gradient = np.concatenate([by_weights, by_bias[:, None]], axis=1)
    sizes = np.sqrt(np.square(gradient).mean(axis=1, keepdims=True))  # Adagrad's state after one step
    expected = np.concatenate([weights, bias[:, None]], axis=1)
    expected[ids] -= 0.1 * gradient / sizes
    assert np.allclose(layer.rows.vectors, expected, atol=1e-5)
    others = np.setdiff1d(np.arange(LABELS), ids)
    assert np.array_equal(layer.bias_values[others], bias[others])


@pytest.mark.parametrize("kind", [OutputLayer, SampledOutputLayer])
def test_both_start_alike_and_are_quantized_by_unit(kind, rng):
    bias = np.linspace(-1, 1, LABELS, dtype=np.float32)
    layer = kind.random(bias, 400, rng)
    assert np.array_equal(layer.bias_values, bias)
    quantized, scales = layer.quantized_weights()
    assert quantized.shape == (400, LABELS)
    assert quantized.dtype == np.int8
    assert quantized.flags.c_contiguous
    weights = layer.weights.value if kind is OutputLayer else layer.rows.vectors[:, :-1]
    assert np.allclose(np.linalg.norm(weights, axis=1), 1, atol=0.2)
    assert (np.abs(quantized.T * scales[:, None] - weights) <= scales[:, None] * 0.501).all()


def test_the_biases_of_sampled_labels_are_a_copy(case):
    weights, bias, *_ = case
    layer = SampledOutputLayer(weights, bias)
    layer.bias_values[:] = 9
    assert np.array_equal(layer.bias_values, bias)


def test_ones_are_the_last_column():
    padded = append_ones(np.array([[2, 3], [4, 5]], np.float32))
    assert padded.tolist() == [[2, 3, 1], [4, 5, 1]]
    assert padded.dtype == np.float32
    assert append_ones(np.zeros((0, 2), np.float32)).shape == (0, 3)
