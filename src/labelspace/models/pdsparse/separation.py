"""PD-Sparse in training: active labels of each document, their dual variables, and the weights of all labels."""

import numpy as np

from labelspace.kernels.dual_cd import squared_norms
from labelspace.models.pdsparse.growing_rows import GrowingRows
from labelspace.models.pdsparse.kernels import add_truth, separation_pass
from labelspace.types import Bools, Csr, Floats, Ints

SELECTIONS, MIN_ROOM = 4, 64  # active labels beside a document's own: so often ``n_selected``, but at least so many

State = tuple[Ints, Floats, Ints, GrowingRows]


class SeparationTraining:
    """Documents X (n, n_features + 1), whose last column is the bias, and labels Y; steps 1 to 4 and 6 of the model."""

    def __init__(self, X: Csr, Y: Csr, C: float, l1_weight: float, n_selected: int, average: bool) -> None:
        self.X, self.Y, self.C, self.n_selected = X, Y, float(C), min(n_selected, Y.shape[1])
        self.l1 = np.full(X.shape[1], l1_weight, np.float32)
        self.l1[-1] = 0.0
        self.norms = squared_norms(X.data, X.indptr, 0.0)
        self.seen: Bools = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
        room = int(np.diff(Y.indptr).max()) + max(SELECTIONS * self.n_selected, MIN_ROOM)
        self.active = np.zeros((X.shape[0], min(room, Y.shape[1])), np.int32)
        self.alpha = np.zeros(self.active.shape, np.float32)
        self.n_active = np.diff(Y.indptr).astype(np.int32)
        add_truth(Y.indices, Y.indptr, self.active)
        self.V = GrowingRows.empty(X.shape[1], Y.shape[1])
        self.grows, self.average, self.n_steps = True, average, 0

    def run_pass(self, order: Ints) -> float:
        """One step for each document; returns the largest step, in units of the gradient."""
        X, Y, V, largest, at = self.X, self.Y, self.V, np.zeros(1, np.float32), 0
        while True:
            at = separation_pass(
                X.data, X.indices, X.indptr, self.norms, Y.indices, Y.indptr, self.seen, order, at, self.C,
                self.n_steps, self.n_selected, self.active, self.alpha, self.n_active, self.l1, self.grows,
                V.labels, V.values, V.moments, V.starts, V.sizes, V.rooms, V.end, largest,
            )  # fmt: skip
            if at == len(order):
                self.n_steps += at
                return float(largest[0])
            V.grow()

    def weights(self) -> Csr:
        """W (n_features + 1, n_labels), the bias in the last row: of the mean of V over the steps, or of the last V."""
        return (self.V.mean(self.n_steps) if self.average and self.n_steps else self.V).above(self.l1)

    def state(self) -> State:
        """A copy of all that a pass changes."""
        return self.active.copy(), self.alpha.copy(), self.n_active.copy(), self.V.copy()

    def keep_support(self, state: State, W: Csr) -> None:
        """Go back to a state, and on from there without L1, but only with the weights that are not zero in W."""
        self.active, self.alpha, self.n_active, self.V = state
        self.V.keep(W)
        self.l1 = np.zeros_like(self.l1)
        self.grows, self.n_steps = False, 0
