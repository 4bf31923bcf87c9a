import numpy as np
import pytest

from labelspace.training.dense_layers import ACTIVATIONS, Dense, Stack, activated, flatten_layers, slopes, through
from tests.training.torch_twin import Twins, in_torch

WIDTHS = [6, 5, 4, 3]


@pytest.fixture
def rng():
    return np.random.default_rng(2)


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def random_stack(rng, depth, activation, last):
    """Layers with offsets that are not 0."""
    stack = Stack.random(WIDTHS[: depth + 1], activation, last, rng)
    for layer in stack.layers:
        layer.offset.value[:] = normal(rng, len(layer.offset.value))
    return stack


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_an_activation_and_its_slope_are_torch_s(rng, activation):
    torch = pytest.importorskip("torch")
    values = 3 * normal(rng, 40)
    z = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    expected = in_torch(torch, z, activation)
    expected.sum().backward()
    out = activated(values.copy(), activation)
    assert out.dtype == np.float32
    assert np.allclose(out, expected.detach().numpy(), atol=1e-6)
    assert np.allclose(slopes(out, activation), z.grad.numpy(), atol=1e-5)


@pytest.mark.parametrize("last", ACTIVATIONS)
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_stack_has_the_values_and_gradients_that_torch_finds(rng, recorded, depth, last):
    torch = pytest.importorskip("torch")
    activation = ACTIVATIONS[(ACTIVATIONS.index(last) + depth) % len(ACTIVATIONS)]  # each stands between, too
    stack = random_stack(rng, depth, activation, last)
    assert stack.activations == [activation] * (depth - 1) + [last] * (depth > 0)
    inputs, gradient = normal(rng, 7, WIDTHS[0]), normal(rng, 7, WIDTHS[depth])
    values = stack.forward(inputs.copy())
    back = stack.backward(values, gradient, 0.1, 1)

    twins = Twins(torch)
    x = twins(inputs)
    out = twins.stack(stack, x)
    (out * torch.tensor(gradient)).sum().backward()

    assert len(values) == depth + 1
    assert np.array_equal(values[0], inputs), "what went in is left as it is"
    assert np.allclose(values[-1], out.detach().numpy(), atol=1e-5)
    assert np.allclose(back, x.grad.numpy(), atol=1e-5)
    twins.agree(recorded)
    assert len(recorded) == 2 * depth


def test_a_normalised_layer_has_the_gradients_that_torch_finds(rng, recorded):
    torch = pytest.importorskip("torch")
    layer = Dense(normal(rng, 4, 6) * 3, normalized=True)
    layer.length.value[:] = 1.7
    inputs, gradient = normal(rng, 7, 6), normal(rng, 7, 4)
    out = layer.forward(inputs)
    back = layer.descend(inputs, gradient, 0.1, 1)
    parts = [layer.rows, layer.offset, layer.length]
    rows, offset, length = (torch.tensor(part.value, dtype=torch.float64, requires_grad=True) for part in parts)
    x = torch.tensor(inputs, dtype=torch.float64, requires_grad=True)
    expected = x @ (length * rows / rows.norm(dim=1, keepdim=True)).T + offset
    (expected * torch.tensor(gradient)).sum().backward()
    assert np.allclose(out, expected.detach().numpy(), atol=1e-5)
    assert np.allclose(back, x.grad.numpy(), atol=1e-5)
    for part, twin in zip(parts, (rows, offset, length), strict=True):
        assert np.allclose(recorded[id(part)], twin.grad.numpy(), atol=1e-5)


@pytest.mark.parametrize("first", ACTIVATIONS)
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_kept_layers_do_what_the_stack_did(rng, depth, first):
    stack = random_stack(rng, depth, "elu", "tanh")
    rows = normal(rng, 9, WIDTHS[0])
    chain = [(WIDTHS[0], first), *zip(WIDTHS[1 : depth + 1], stack.activations, strict=True)]
    flat = flatten_layers(stack.layers)
    assert flat.dtype == np.float32
    assert flat.shape == (sum((a + 1) * b for a, b in zip(WIDTHS[:depth], WIDTHS[1 : depth + 1], strict=True)),)
    out = through(rows.copy(), flat, chain)
    assert np.allclose(out, stack.forward(activated(rows.copy(), first))[-1], atol=1e-5)
    for row in range(9):
        assert np.array_equal(through(rows[row : row + 1].copy(), flat, chain)[0], out[row]), "each row by itself"


def test_a_normalised_layer_is_kept_as_it_is_used(rng):
    layer = Dense(normal(rng, 4, 6) * 3, normalized=True)
    rows = normal(rng, 3, 6)
    out = through(rows.copy(), flatten_layers([layer]), [(6, "linear"), (4, "linear")])
    assert np.allclose(out, layer.forward(rows), atol=1e-5)


def test_the_layers_of_two_stacks_are_kept_one_after_another(rng):
    one, two = (Stack.random(widths, "relu", "linear", rng) for widths in ([6, 5], [5, 3]))
    rows = normal(rng, 4, 6)
    chain = [(6, "linear"), (5, "linear"), (3, "linear")]
    out = through(rows.copy(), flatten_layers([*one.layers, *two.layers]), chain)
    assert np.allclose(out, two.forward(one.forward(rows)[-1])[-1], atol=1e-5)


def test_a_step_moves_against_the_gradient_by_about_the_rate(rng):
    layer = Dense.random(6, 4, rng)
    before = layer.rows.value.copy()
    inputs, gradient = normal(rng, 7, 6), normal(rng, 7, 4)
    layer.descend(inputs, gradient, 0.01, 1)
    assert np.allclose(layer.rows.value - before, -0.01 * np.sign(gradient.T @ inputs), atol=1e-4)
