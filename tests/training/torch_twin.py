"""The layers in torch, for gradients by autograd."""

import numpy as np


def in_torch(torch, values, activation):
    return {
        "relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "elu": torch.nn.functional.elu,
        "linear": lambda z: z,
    }[activation](values)  # fmt: skip


class Twins:
    """Weights as tensors of float64 that collect gradients."""

    def __init__(self, torch):
        self.torch, self.known = torch, {}

    def __call__(self, array):
        return self.torch.tensor(np.asarray(array), dtype=self.torch.float64, requires_grad=True)

    def of(self, parameter):
        """The twin of a parameter of Adam."""
        if id(parameter) not in self.known:
            self.known[id(parameter)] = self(parameter.value)
        return self.known[id(parameter)]

    def mlp(self, mlp, values):
        for layer, activation in zip(mlp.layers, mlp.activations, strict=True):
            values = in_torch(self.torch, values @ self.of(layer.rows).T + self.of(layer.bias), activation)
        return values

    def agree(self, recorded):
        """Check that the gradients passed to Adam, by the id of the parameter, are those of the twins."""
        assert recorded.keys() == self.known.keys()
        for key, twin in self.known.items():
            assert np.allclose(recorded[key], twin.grad.numpy(), atol=1e-4)
