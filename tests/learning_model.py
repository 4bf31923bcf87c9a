"""A method that can go on learning, for tests: the most frequent labels, counted on."""

import numpy as np
import pytest

from labelspace.models.baselines import Popular
from labelspace.models.registry import METHODS


class Counting(Popular):
    """The most frequent labels of all documents so far."""

    name = "counting"

    def partial_fit(self, new):
        self.share_ = (new.labels.counts / new.labels.n_documents).astype(np.float32)
        return ["shapes"]  # a part that cannot learn


@pytest.fixture
def learns(monkeypatch):
    """Register the method counting."""
    monkeypatch.setitem(METHODS, "counting", f"{__name__}:Counting")
