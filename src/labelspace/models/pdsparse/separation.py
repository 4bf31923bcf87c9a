"""The training state of PD-Sparse: active labels of each document, their dual variables, and the weights."""

from copy import deepcopy

import numpy as np

from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.dual_cd import squared_norms
from labelspace.models.pdsparse.kernels import ActiveLabels, GrowingRows, SeparationProblem, separation_pass
from labelspace.types import Csr, Ints

SELECTIONS = 4  # room for active labels besides a document's own, times ``n_selected``: when it is full, none is added
MIN_ROOM = 64  # room for active labels if ``n_selected`` is small

State = tuple[ActiveLabels, GrowingRows]


class SeparationTraining:
    """Documents X (n, n_features + 1), whose last column is the bias, and labels Y; steps 1 to 4 and 6 of the model."""

    def __init__(self, X: Csr, Y: Csr, C: float, l1_weight: float, n_selected: int, average: bool) -> None:
        self.n_labels = Y.shape[1]
        l1 = np.full(X.shape[1], l1_weight, np.float32)
        l1[-1] = 0.0
        self.problem = SeparationProblem(
            X=csr_arrays(X),
            Y=csr_arrays(Y),
            norms=squared_norms(X.data, X.indptr, 0.0),
            allowed=np.bincount(Y.indices, minlength=self.n_labels) > 0,
            l1=l1,
            C=float(C),
            n_selected=min(n_selected, self.n_labels),
        )
        n_own = np.diff(Y.indptr).astype(np.int32)
        room = int(n_own.max()) + max(SELECTIONS * self.problem.n_selected, MIN_ROOM)
        shape = (X.shape[0], min(room, self.n_labels))
        self.active = ActiveLabels(np.zeros(shape, np.int32), np.zeros(shape, np.float32), n_own)
        rows = np.repeat(np.arange(len(n_own)), n_own)
        self.active.labels[rows, np.arange(Y.nnz) - Y.indptr[rows]] = Y.indices
        self.V = GrowingRows.empty(X.shape[1])
        self.grows = True
        self.average = average
        self.n_steps = 0

    def run_pass(self, order: Ints) -> float:
        """Make one step for each document and return the largest step, in units of the gradient."""
        largest, at = 0.0, 0
        while at < len(order):
            at, step = separation_pass(self.problem, self.active, self.V, order, at, self.n_steps, self.grows)
            largest = max(largest, float(step))
            if at < len(order):
                self.V = self.V.grown()
        self.n_steps += len(order)
        return largest

    def weights(self) -> Csr:
        """Return W (n_features + 1, n_labels), of the mean of V or of the last V; the bias is the last row."""
        V = self.V.mean(self.n_steps) if self.average and self.n_steps else self.V
        return V.above(self.problem.l1, self.n_labels)

    def state(self) -> State:
        """Return a copy of all that a pass changes."""
        return deepcopy((self.active, self.V))

    def keep_support(self, state: State, W: Csr) -> None:
        """Go back to a state, and continue without L1, but only with the weights that are not zero in W."""
        self.active, V = state
        self.V = V.restricted(W)
        self.problem = self.problem._replace(l1=np.zeros_like(self.problem.l1))
        self.grows = False
        self.n_steps = 0
