"""Fixtures of the tests of layers."""

import numpy as np
import pytest

from labelspace.training.optimizers import AdamParameter


@pytest.fixture
def recorded(monkeypatch):
    """The gradients passed to Adam, by the id of the parameter; only rows of Adagrad are updated."""
    gradients = {}

    def record(self, gradient, rate, n_steps, part=slice(None)):
        full = gradients.setdefault(id(self), np.zeros_like(self.value))  # 0 for the parts that are not updated
        full[part] = gradient.reshape(full[part].shape)

    monkeypatch.setattr(AdamParameter, "step", record)
    return gradients
