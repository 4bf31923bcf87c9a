"""What is trained by plain SGD, as in the paper, or not at all, in place of Adam and row-wise Adagrad."""

import numpy as np

from labelspace.kernels.normalize import row_norms
from labelspace.training.optimizers import AdagradParameter, AdamParameter
from labelspace.training.sparse_layers import Batch, SparseLayer
from labelspace.types import Floats, Ints


class SgdParameter(AdamParameter):
    """Weights trained by SGD: value <- value - rate gradient."""

    def __post_init__(self) -> None:
        self.mean = self.square = np.zeros(0, np.float32)

    def step(self, gradient: Floats, rate: float, n_steps: int, part: slice = slice(None)) -> None:
        """Update the rows of a part, given their gradient."""
        self.value[part] -= np.float32(rate) * gradient


class FixedParameter(SgdParameter):
    """Weights that stay as they are."""

    def step(self, gradient: Floats, rate: float, n_steps: int, part: slice = slice(None)) -> None:
        """Nothing."""


class SgdNumbers(AdagradParameter):
    """Single numbers trained by SGD."""

    def __post_init__(self) -> None:
        self.square = np.zeros(0, np.float32)

    def step(self, gradient: Floats, rate: float, ids: Ints | slice) -> None:
        """Update the numbers with these ids, each named once, given their gradient."""
        self.value[ids] -= np.float32(rate) * gradient


class FixedNumbers(SgdNumbers):
    """Single numbers that stay as they are."""

    def step(self, gradient: Floats, rate: float, ids: Ints | slice) -> None:
        """Nothing."""


class SgdLayer(SparseLayer):
    """Feature embeddings trained by SGD."""

    def backward(self, batch: Batch, gradient: Floats, rate: float) -> None:
        """Update the embeddings of a batch's features, as ``SparseLayer.backward``."""
        if self.normalized:
            gradient = gradient * self.unit_scales
        features, by_features = self.gradients(batch, gradient)
        before = self.vectors[features]
        self.vectors[features] = after = before - np.float32(rate) * by_features
        if self.normalized:
            self.squared_norms += (np.square(after, dtype=np.float64) - np.square(before, dtype=np.float64)).sum(axis=0)


def update_rows(
    gradient: Floats, ids: Ints, rate: float, vectors: Floats, squares: Floats | None, normalized: bool
) -> None:
    """Update the rows ``ids`` of some vectors, which may be wider than the gradient, given their gradient.

    ``squares`` is the state of row-wise Adagrad, None with SGD. Normalized rows move along the sphere.
    """
    width = gradient.shape[1]
    rows = vectors[ids, :width]
    if normalized:
        gradient = gradient - np.einsum("ij,ij->i", gradient, rows)[:, None] * rows
    if squares is not None:
        squares[ids] += np.einsum("ij,ij->i", gradient, gradient) / np.float32(width)
        gradient = gradient / (np.sqrt(squares[ids]) + np.float32(1e-10))[:, None]
    rows -= np.float32(rate) * gradient
    vectors[ids, :width] = rows / row_norms(rows)[:, None] if normalized else rows
