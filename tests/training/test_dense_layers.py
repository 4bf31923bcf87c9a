import numpy as np
import pytest

from labelspace.training.dense_layers import (
    ACTIVATIONS,
    MLP,
    DenseLayer,
    activate,
    activation_derivative,
    flatten_layers,
    forward_flat,
)
from tests.training.torch_twin import Twins, in_torch

WIDTHS = [6, 5, 4, 3]


@pytest.fixture
def rng():
    return np.random.default_rng(2)


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def random_mlp(rng, depth, activation, last):
    """Layers with biases that are not 0."""
    mlp = MLP.random(WIDTHS[: depth + 1], activation, last, rng)
    for layer in mlp.layers:
        layer.bias.value[:] = normal(rng, len(layer.bias.value))
    return mlp


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_an_activation_and_its_derivative_are_those_of_torch(rng, activation):
    torch = pytest.importorskip("torch")
    values = 3 * normal(rng, 40)
    z = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    expected = in_torch(torch, z, activation)
    expected.sum().backward()
    out = activate(values.copy(), activation)
    assert out.dtype == np.float32
    assert np.allclose(out, expected.detach().numpy(), atol=1e-6)
    assert np.allclose(activation_derivative(out, activation), z.grad.numpy(), atol=1e-5)


@pytest.mark.parametrize("last", ACTIVATIONS)
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_mlp_has_the_values_and_gradients_of_torch(rng, recorded, depth, last):
    torch = pytest.importorskip("torch")
    activation = ACTIVATIONS[(ACTIVATIONS.index(last) + depth) % len(ACTIVATIONS)]  # each is used for hidden layers too
    mlp = random_mlp(rng, depth, activation, last)
    assert mlp.activations == [activation] * (depth - 1) + [last] * (depth > 0)
    inputs, gradient = normal(rng, 7, WIDTHS[0]), normal(rng, 7, WIDTHS[depth])
    values = mlp.forward(inputs.copy())
    back = mlp.backward(values, gradient, 0.1, 1)

    twins = Twins(torch)
    x = twins(inputs)
    out = twins.mlp(mlp, x)
    (out * torch.tensor(gradient)).sum().backward()

    assert len(values) == depth + 1
    assert np.array_equal(values[0], inputs), "the input is not changed"
    assert np.allclose(values[-1], out.detach().numpy(), atol=1e-5)
    assert np.allclose(back, x.grad.numpy(), atol=1e-5)
    twins.agree(recorded)
    assert len(recorded) == 2 * depth


def test_a_normalized_layer_has_the_gradients_of_torch(rng, recorded):
    torch = pytest.importorskip("torch")
    layer = DenseLayer(normal(rng, 4, 6) * 3, normalized=True)
    layer.norm.value[:] = 1.7
    inputs, gradient = normal(rng, 7, 6), normal(rng, 7, 4)
    out = layer.forward(inputs)
    back = layer.backward(inputs, gradient, 0.1, 1)
    parts = [layer.rows, layer.bias, layer.norm]
    rows, bias, norm = (torch.tensor(part.value, dtype=torch.float64, requires_grad=True) for part in parts)
    x = torch.tensor(inputs, dtype=torch.float64, requires_grad=True)
    expected = x @ (norm * rows / rows.norm(dim=1, keepdim=True)).T + bias
    (expected * torch.tensor(gradient)).sum().backward()
    assert np.allclose(out, expected.detach().numpy(), atol=1e-5)
    assert np.allclose(back, x.grad.numpy(), atol=1e-5)
    for part, twin in zip(parts, (rows, bias, norm), strict=True):
        assert np.allclose(recorded[id(part)], twin.grad.numpy(), atol=1e-5)


@pytest.mark.parametrize("first", ACTIVATIONS)
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_flattened_layers_compute_the_same_as_the_mlp(rng, depth, first):
    mlp = random_mlp(rng, depth, "elu", "tanh")
    rows = normal(rng, 9, WIDTHS[0])
    specs = [(WIDTHS[0], first), *zip(WIDTHS[1 : depth + 1], mlp.activations, strict=True)]
    flat = flatten_layers(mlp.layers)
    assert flat.dtype == np.float32
    assert flat.shape == (sum((a + 1) * b for a, b in zip(WIDTHS[:depth], WIDTHS[1 : depth + 1], strict=True)),)
    out = forward_flat(rows.copy(), flat, specs)
    assert np.allclose(out, mlp.forward(activate(rows.copy(), first))[-1], atol=1e-5)
    for row in range(9):
        assert np.array_equal(forward_flat(rows[row : row + 1].copy(), flat, specs)[0], out[row]), (
            "whatever the other rows are"
        )


def test_a_normalized_layer_is_flattened_with_its_effective_weights(rng):
    layer = DenseLayer(normal(rng, 4, 6) * 3, normalized=True)
    rows = normal(rng, 3, 6)
    out = forward_flat(rows.copy(), flatten_layers([layer]), [(6, "linear"), (4, "linear")])
    assert np.allclose(out, layer.forward(rows), atol=1e-5)


def test_the_layers_of_two_mlps_can_be_flattened_together(rng):
    one, two = (MLP.random(widths, "relu", "linear", rng) for widths in ([6, 5], [5, 3]))
    rows = normal(rng, 4, 6)
    specs = [(6, "linear"), (5, "linear"), (3, "linear")]
    out = forward_flat(rows.copy(), flatten_layers([*one.layers, *two.layers]), specs)
    assert np.allclose(out, two.forward(one.forward(rows)[-1])[-1], atol=1e-5)


def test_a_step_goes_against_the_gradient_by_about_the_learning_rate(rng):
    layer = DenseLayer.random(6, 4, rng)
    before = layer.rows.value.copy()
    inputs, gradient = normal(rng, 7, 6), normal(rng, 7, 4)
    layer.backward(inputs, gradient, 0.01, 1)
    assert np.allclose(layer.rows.value - before, -0.01 * np.sign(gradient.T @ inputs), atol=1e-4)
