"""What the tests of gradients share."""

import numpy as np

from labelspace.training.optimizers import AdamParameter


def record_adam(monkeypatch):
    """The gradients that Adam gets, by the id of the parameter; Adam updates nothing from now on."""
    gradients = {}

    def record(self, gradient, rate, number, part=slice(None)):
        full = gradients.setdefault(id(self), np.zeros_like(self.value))  # 0 for parts without a step
        full[part] = gradient.reshape(full[part].shape)

    monkeypatch.setattr(AdamParameter, "step", record)
    return gradients


def first_adagrad_step(gradient, learning_rate):
    """The first step of row-wise Adagrad; 0 for a row without gradient."""
    sizes = np.sqrt(np.square(gradient).mean(axis=1, keepdims=True))
    return -learning_rate * gradient / np.where(sizes > 1e-9, sizes, 1)
