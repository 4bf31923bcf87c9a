"""PD-Sparse (Yen, Huang, Zhong, Ravikumar and Dhillon, ICML 2016); per label, PPD-Sparse (Yen et al., KDD 2017).

PD-Sparse:
1. Minimize |W|^2 / 2 + lambda |W|_1 + C sum_i max(0, 1 + max_n w_n.x_i - min_p w_p.x_i), where p are the labels of
   document i and n all other labels (separation ranking loss), in the dual: few a_ik are above 0, and W is V = X' a,
   soft-thresholded by lambda.
2. Pass over the documents in random order. The labels of document i are active from the start; the ``n_selected``
   best-ranked others that violate the margin become active (the search of Frank-Wolfe).
3. Minimize over the a_ik of all active labels (fully corrective): a projection on a_ik >= 0 with equal sums over p and
   over n, at most C. Labels n whose a_ik is 0 cease to be active. Update V.
4. W is soft(V), or with ``average`` soft(mean of V over all steps so far, step t with weight t): a mean of dual points
   is a dual point, too, and depends little on the documents that came last (Lacoste-Julien et al., ICML 2013).
5. After each pass, rank held-out documents; stop after ``patience`` passes without improvement.
6. Go back to the best pass, and make up to ``post_max_iter`` passes without L1, with only the nonzero weights.
7. The best pass of all is the model.

PPD-Sparse (``per_label``), for each label by itself:
1. Minimize |w|^2 / 2 + lambda |w|_1 + C sum_i max(0, 1 - y_i w.x_i)^2 by dual coordinate descent; w is soft(v).
2. Active documents: the documents with the label, and others drawn at random.
3. Pass over the active documents; others with a_i = 0 cease to be active. Now and then the documents that violate the
   margin most become active.
4. Set weights below ``threshold`` in size to zero.

Where we differ, and why: the searches are exact, not sampled, which is fast enough for thousands of labels and the same
for every seed. Rows of V are lists in one pool, not hash tables: a step reads all of a row anyway. The bias has no L1.
Per label, ``partial_fit`` goes on from the saved weights (``training.warm_start``).
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np

from labelspace.errors import ParameterError
from labelspace.estimator import param
from labelspace.estimator.parameter_constraints import boolean, integer, optional, real
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.dual_cd import SolverOptions, squared_norms
from labelspace.kernels.threads import run_blocks
from labelspace.models import parameters
from labelspace.models.fit_context import FitContext, Held
from labelspace.models.linear_model import LinearModel
from labelspace.models.partial_fit import NewDocuments
from labelspace.models.pdsparse import kernels
from labelspace.models.pdsparse.kernels import ActiveLabels, GrowingRows, LabelProblem, SeparationProblem
from labelspace.training import epochs
from labelspace.training.linear_weights import NO_WEIGHTS, LinearWeights, feature_major_weights, with_bias_column
from labelspace.training.warm_start import WarmOptions, sums_of_squares
from labelspace.types import Csr, Doubles, Ints

LABEL_BLOCK = 2  # labels per task: few, so that an interrupt takes effect soon
BIAS = 1.0  # the value of the bias feature
SELECTIONS = 4  # room for active labels besides a document's own, times ``n_selected``: when it is full, none is added
MIN_ROOM = 64  # room for active labels if ``n_selected`` is small

State = tuple[ActiveLabels, GrowingRows]


def joint_param(*declaration: Any) -> Any:  # noqa: ANN401 - the arguments of ``param``
    """Declare a parameter of PD-Sparse, which trains all labels together."""
    return param(*declaration).only_with(per_label=False)


class PDSparse(LinearModel):
    """Linear classifiers with L1, trained on active labels or on active documents.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = PDSparse().fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "pdsparse"
    weighs_documents = True
    title = "PD-Sparse, PPD-Sparse (Yen et al. 2016, 2017): linear classifiers with L1"
    choose_when = (
        "labels are up to some thousand and linear classifiers should be as good as they get (`per_label`), "
        "or the model must be small"
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"average": False, "max_iter": 200, "post_max_iter": 200},
        "ppdsparse": {"per_label": True, "max_iter": 30},
    }
    per_label: bool = param(False, boolean(), "Train each label by itself with squared hinge loss: PPD-Sparse.")
    l1_weight: float = param(0.1, real(at_least=0), "Weight of the L1 regularizer.")
    C: float = parameters.C(1.0)
    average: bool = joint_param(True, boolean(), "Average the weights over all steps, later ones with more weight.")
    n_selected: int = joint_param(50, integer(1), "Labels that a step may make active in a document.")
    threshold: float = parameters.threshold(0.01).only_with(per_label=True)
    tol: float = parameters.tol()
    max_iter: int = parameters.max_iter(50)
    post_max_iter: int = joint_param(0, integer(0), "Maximum number of passes without L1 afterwards.")
    patience: int | None = joint_param(
        3, optional(integer(1)), "Stop after this many passes without improvement on validation documents."
    )
    normalize: bool | None = param(
        None, boolean(), "Scale every document to length one first; none does so per label only."
    )
    random_state: int = parameters.random_state()

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        self.seen_ = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
        if self.per_label:
            self._fit_labels(self._scaled(X), Y, context)
        else:
            self._fit_together(X, Y, context)

    def partial_fit(self, new: NewDocuments) -> Sequence[str]:
        """Go on learning from further documents, by a warm start: see ``training.warm_start``."""
        if not self.per_label:
            rule = "learning from further documents needs classifiers that are trained by themselves"
            raise ParameterError(f"{rule}, but per_label of pdsparse is False; train with per_label=True")
        options = WarmOptions(self._solver, float(self.threshold), float(self.l1_weight))
        self._learn_more(new, options, self.random_state)
        return ()

    @property
    def _solver(self) -> SolverOptions:
        return SolverOptions(float(self.C), float(self.tol), self.max_iter)

    def _scaled(self, X: Csr) -> Csr:
        scales = self.per_label if self.normalize is None else self.normalize
        return normalize_rows(X) if scales else X

    def _fit_together(self, X: Csr, Y: Csr, context: FitContext) -> None:
        """Train by PD-Sparse."""
        self.squares_ = None  # nothing can be learned later
        X, Y, C, held_out = self._split(X, Y, context)
        with_bias = with_bias_column(self._scaled(X))
        training = SeparationTraining(with_bias, Y, C, self.l1_weight, self.n_selected, self.average)
        rng = np.random.default_rng(self.random_state)
        best, state, weights = -1.0, training.state(), training.weights()
        for post, passes in enumerate((self.max_iter, self.post_max_iter)):
            scores = []
            if post and passes:
                training.keep_support(state, weights)  # step 6
            for done in range(passes):
                step = training.run_pass(rng.permutation(X.shape[0]).astype(np.int32))  # steps 2 and 3
                context.progress("passes" if not post else "passes without L1", done + 1, passes)
                W = training.weights()
                self._take(W)
                scores.append(0.0 if held_out is None else self._score(held_out))  # step 5
                if held_out is None or scores[-1] > best:  # step 7
                    best, weights = scores[-1], W
                    state = training.state() if not post else state
                if step <= self.tol or (held_out is not None and epochs.should_stop(scores, self.patience)):
                    break
        self._take(weights)

    def _split(self, X: Csr, Y: Csr, context: FitContext) -> tuple[Csr, Csr, Doubles, Held | None]:
        """Return documents to train on with the C of each, and documents to stop by, None if there are too few."""
        C = float(self.C) * context.document_weights(X.shape[0])
        if self.patience is not None and context.validation is None:
            rows = epochs.hold_out_rows(Y, epochs.HELD_OUT_SHARE, epochs.MAX_HELD_OUT, self.random_state)
            if rows is None:
                return X, Y, C, None
            train, held = rows
            return X[train], Y[train], C[train], (X[held], Y[held])
        return X, Y, C, None if self.patience is None else context.validation

    def _score(self, held_out: Held) -> float:
        return epochs.r_precision(self._predict(held_out[0], min(epochs.VALIDATION_K, self.n_labels_)), held_out[1])

    def _take(self, W: Csr) -> None:
        self.classifiers_ = LinearWeights.from_matrix(W[:-1], W[-1].toarray().ravel())

    def _fit_labels(self, X: Csr, Y: Csr, context: FitContext) -> None:
        """Train by PPD-Sparse."""
        documents = Y.tocsc()
        norms = squared_norms(X.data, X.indptr, BIAS)
        n_features = X.shape[1]
        weights, by_feature = context.document_weights(X.shape[0]), csr_arrays(X.tocsc())
        problem = LabelProblem(csr_arrays(X), by_feature, norms, weights, float(self.l1_weight), self._solver)
        bias = np.zeros(Y.shape[1], np.float32)
        trained = [NO_WEIGHTS] * Y.shape[1]

        def train(start: int, stop: int) -> None:
            for label in np.flatnonzero(self.seen_[start:stop]) + start:
                v = np.zeros(n_features + 1, np.float32)
                positives = documents.indices[documents.indptr[label] : documents.indptr[label + 1]]
                kernels.solve_l1_squared_hinge(problem, positives, self.random_state * Y.shape[1] + label, v)
                w = v[:-1] - np.clip(v[:-1], -self.l1_weight, self.l1_weight)
                large = np.flatnonzero(np.abs(w) >= max(self.threshold, 1e-12)).astype(np.int32)
                trained[label] = (large, w[large].astype(np.float32))
                bias[label] = v[-1]

        run_blocks(train, Y.shape[1], LABEL_BLOCK, lambda done, total: context.progress("labels", done, total))
        self.classifiers_ = LinearWeights.from_matrix(feature_major_weights(trained, n_features), bias)
        self.squares_ = sums_of_squares(X)


class SeparationTraining:
    """Documents X (n, n_features + 1), whose last column is the bias, and labels Y; steps 1 to 4 and 6 of the model."""

    def __init__(self, X: Csr, Y: Csr, C: Doubles, l1_weight: float, n_selected: int, average: bool) -> None:
        self.n_labels = Y.shape[1]
        l1 = np.full(X.shape[1], l1_weight, np.float32)
        l1[-1] = 0.0
        norms = squared_norms(X.data, X.indptr, 0.0)
        allowed = np.bincount(Y.indices, minlength=self.n_labels) > 0
        n_selected = min(n_selected, self.n_labels)
        self.problem = SeparationProblem(csr_arrays(X), csr_arrays(Y), norms, allowed, l1, C, n_selected)
        n_own = np.diff(Y.indptr).astype(np.int32)
        room = int(n_own.max()) + max(SELECTIONS * n_selected, MIN_ROOM)
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
            at, step = kernels.separation_pass(self.problem, self.active, self.V, order, at, self.n_steps, self.grows)
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
