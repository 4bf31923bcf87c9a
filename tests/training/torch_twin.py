"""What the layers do, in torch: for gradients by autograd."""

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

    def of(self, part):
        """The twin of what Adam moves."""
        if id(part) not in self.known:
            self.known[id(part)] = self(part.value)
        return self.known[id(part)]

    def stack(self, stack, values):
        for layer, activation in zip(stack.layers, stack.activations, strict=True):
            values = in_torch(self.torch, values @ self.of(layer.rows).T + self.of(layer.offset), activation)
        return values

    def agree(self, recorded):
        """Whether the gradients that Adam was handed, by the id of what it moves, are those of the twins."""
        assert recorded.keys() == self.known.keys()
        for key, twin in self.known.items():
            assert np.allclose(recorded[key], twin.grad.numpy(), atol=1e-4)
