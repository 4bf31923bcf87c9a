"""One-vs-rest linear machines, pruned: DiSMEC (Babbar and Schölkopf, WSDM 2017) on one machine.

1. For every label l, the documents that carry l are positive, all others negative.
2. Minimize |w|^2 / 2 + C sum_i max(0, 1 - y_i (w.x_i + b))^2 by dual coordinate descent.
3. Set weights below ``threshold`` in size to zero: they carry little but most of the memory.
4. Score a document by w_l.x + b_l, and rank the labels.

| the paper's symbol | here |
|---|---|
| C | ``C`` |
| Delta (pruning) | ``threshold`` |
| w_l | a column of ``weights_`` |

Where we differ, and why: the labels are spread over threads, not machines; rows are scaled to length one first
(``normalize``), which makes one C fit most data; a score is shown as 1 / (1 + exp(-2 margin)), which keeps the order
and lies between 0 and 1. This score is no calibrated probability. A label without training documents is never
suggested. ``partial_fit`` goes on from the saved weights (``training.warm_start``).
"""

from collections.abc import Sequence

import numpy as np

from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.dual_cd import SolverOptions, solve_squared_hinge, squared_norms
from labelspace.kernels.lanes import LANES
from labelspace.kernels.threads import run_blocks
from labelspace.models import parameters
from labelspace.models.fit_context import FitContext
from labelspace.models.linear_model import LinearModel
from labelspace.models.partial_fit import NewDocuments
from labelspace.training.linear_weights import NO_WEIGHTS, LinearWeights, feature_major_weights
from labelspace.training.warm_start import WarmOptions, sums_of_squares
from labelspace.types import Csr

BIAS = 1.0  # the value of the bias feature, as in LIBLINEAR


class OneVsRest(LinearModel):
    """One pruned linear classifier per label, squared hinge.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = OneVsRest().fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "one_vs_rest"
    title = "DiSMEC (Babbar and Schölkopf 2017): one-vs-rest squared hinge, pruned"
    choose_when = "labels are at most a few thousand and accuracy matters more than training time"
    C: float = parameters.C(0.5)
    threshold: float = parameters.threshold(0.01)
    tol: float = parameters.tol()
    max_iter: int = parameters.max_iter(100)
    normalize: bool = parameters.normalize()
    random_state: int = parameters.random_state()
    weighs_documents = True

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = self._scaled(X)
        documents = Y.tocsc()  # step 1: column l lists the positives of label l
        frequency = np.diff(documents.indptr)
        self.seen_ = frequency > 0
        bias = np.zeros(Y.shape[1], np.float32)
        norms, weights = squared_norms(X.data, X.indptr, BIAS), context.document_weights(X.shape[0])
        trained = [NO_WEIGHTS] * Y.shape[1]

        options = self._solver
        # Labels that are trained side by side are about equally frequent.
        by_frequency = np.argsort(-frequency, kind="stable")[: np.count_nonzero(frequency)]

        def train(start: int, stop: int) -> None:
            labels = by_frequency[start:stop]
            signs = np.zeros((X.shape[0], LANES), np.float32)
            signs[:, : len(labels)] = -1.0
            for lane, label in enumerate(labels):
                signs[documents.indices[documents.indptr[label] : documents.indptr[label + 1]], lane] = 1.0
            w = np.zeros((X.shape[1] + 1, LANES), np.float32)
            alpha = np.empty_like(signs)
            seed = self.random_state * Y.shape[1] + start
            order = np.empty(X.shape[0], np.int32)
            solve_squared_hinge(csr_arrays(X), norms, weights, signs, BIAS, options, seed, w, alpha, order)  # step 2
            for lane, label in enumerate(labels):
                own = np.ascontiguousarray(w[:-1, lane])
                large = np.flatnonzero(np.abs(own) >= max(self.threshold, 1e-12)).astype(np.int32)  # step 3
                trained[label] = (large, own[large])
                bias[label] = w[-1, lane] * BIAS

        run_blocks(train, len(by_frequency), LANES, lambda done, total: context.progress("labels", done, total))
        self.classifiers_ = LinearWeights.from_matrix(feature_major_weights(trained, X.shape[1]), bias)
        self.squares_ = sums_of_squares(X)

    def partial_fit(self, new: NewDocuments) -> Sequence[str]:
        """Go on learning from further documents, by a warm start: see ``training.warm_start``."""
        self._learn_more(new, WarmOptions(self._solver, float(self.threshold)), self.random_state)
        return ()

    @property
    def _solver(self) -> SolverOptions:
        return SolverOptions(float(self.C), float(self.tol), self.max_iter)
