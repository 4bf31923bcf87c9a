"""The sparse part X S: of each label the weights of a few features, by lasso on what the low rank leaves."""

import numpy as np

from labelspace.kernels.dual_cd import squared_norms
from labelspace.kernels.threads import run_blocks
from labelspace.models.leml.kernels import descend_lasso
from labelspace.models.leml.low_rank import LowRank, Targets
from labelspace.training.linear_weights import NO_WEIGHTS, feature_major_weights
from labelspace.types import Csr, Floats, Ints

LABEL_BLOCK = 32  # labels per task: so many share a read of X W
LASSO_PASSES = 20
LASSO_TOL = 0.01  # of the score of a document


class SparsePart:
    """S (n_features, n_labels), its penalty sum_jl l1_j |S_jl| + l2 |S|^2 / 2, where l1_j = l1_weight sum_i |X_ij|.

    So the first term is at least l1_weight |X S|_1, the sum of what S adds to all scores.
    """

    def __init__(self, targets: Targets, n_features: int, l1_weight: float, l2: float) -> None:
        """S = 0; features from ``n_features`` on (the bias) stay out of it."""
        by_feature = targets.X_by_feature
        self.squares = squared_norms(by_feature.data, by_feature.indptr, 0.0)
        self.squares[n_features:] = 0.0
        self.l1 = np.asarray(abs(by_feature).sum(axis=1), np.float32).ravel() * np.float32(l1_weight)
        self.l2 = l2
        self.weights: list[tuple[Ints, Floats]] = [NO_WEIGHTS] * targets.Y.shape[1]  # features and weights by label

    def update(self, targets: Targets, low_rank: LowRank) -> float:
        """Coordinate descent for each label on Y - X W H', from the weights it has; returns |Y - X W H' - X S|^2."""
        by_feature, Y = targets.X_by_feature, targets.Y_by_label
        errors = np.zeros(len(self.weights))

        def descend(start: int, stop: int) -> None:
            residuals = -(low_rank.H[start:stop] @ low_rank.A.T)
            weights = np.zeros(by_feature.shape[0], np.float32)
            for label, residual in enumerate(residuals, start):
                residual[Y.indices[Y.indptr[label] : Y.indptr[label + 1]]] += 1
                features, values = self.weights[label]
                weights[:] = 0.0
                weights[features] = values
                descend_lasso(
                    by_feature.data, by_feature.indices, by_feature.indptr, self.squares, self.l1, self.l2,
                    LASSO_PASSES, LASSO_TOL, weights, residual,
                )  # fmt: skip
                kept = np.flatnonzero(weights).astype(np.int32)
                self.weights[label] = (kept, weights[kept])
                errors[label] = np.vdot(residual, residual)

        run_blocks(descend, len(errors), LABEL_BLOCK)
        targets.S = self.matrix()
        return float(errors.sum())

    def matrix(self) -> Csr:
        """S by features."""
        return feature_major_weights(self.weights, len(self.l1))

    def penalty(self) -> float:
        """The penalty of S."""
        return float(sum(self.l1[features] @ np.abs(w) + self.l2 * np.vdot(w, w) / 2 for features, w in self.weights))
