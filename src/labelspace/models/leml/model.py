"""LEML, and with ``sparse`` RobustXML: one linear model of low rank for all labels.

Yu, Jain, Kar, Dhillon, "Large-scale Multi-label Learning with Missing Labels", ICML 2014; Xu, Tao, Xu, "Robust Extreme
Multi-label Learning", KDD 2016. X: documents (n, d), Y: their labels (n, L); W (d, k), H (L, k), S (d, L);
k: ``embedding_dim``.

Minimize |Y - X W H' - X S|^2 / 2 + lambda (|W|^2 + |H|^2) / 2, and with S its penalty, by turns:

1. Append a feature of value 1 to each document (``bias``). Initialize W at random, H = 0, S = 0.
2. With A = X W, each label's row of H is a ridge regression: H = (Y - X S)' A (A'A + lambda I)^-1.
3. Rotate W and H so that H'H = D is diagonal; W H' stays the same. The equations of W, X'X W D + lambda W =
   X'(Y - X S) H, are then one system per column: all take some steps of conjugate gradients from the last W.
4. With ``sparse``, S: for each label a lasso on what X W H' leaves of Y, by coordinate descent.
5. Repeat 2 to 4 until the objective falls by less than a share of ``tol``, ``max_iter`` times at most.
6. Store W in 8 bits, and H in an index. A document's embedding is x W; a label's score is x W h + x s.

X W H' (n, L) is never formed: products with it are products with X and with A, H of k columns.

Where we differ, and why: with the rotation 3 iterations do more than 10 without. RobustXML penalizes
the scores, l3 |X S|_1, and so S is dense. We penalize l3 sum_jl |S_jl| sum_i |X_ij|, which is at least as large: S
itself is sparse, and few weights are stored and read. Labels are not split into blocks: memory does not require it.
A label without training documents is never suggested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from threadpoolctl import threadpool_limits

from labelspace import index
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import boolean, integer, list_of, real
from labelspace.estimator.state_constraints import array, must, part, plain
from labelspace.estimator.state_constraints import sparse as sparse_matrix
from labelspace.features.normalize import normalize_rows
from labelspace.index import Index, index_class
from labelspace.index.exact import Exact
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.dual_cd import squared_norms
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.threads import run_blocks, topk_in_blocks
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.batched_prediction import index_among, overfetch
from labelspace.models.fit_context import FitContext
from labelspace.models.leml.kernels import LabelVectors, Lasso, descend_lasso, low_rank_sparse_topk
from labelspace.training.linear_weights import NO_WEIGHTS, feature_major_weights, with_bias_column
from labelspace.training.losses import seen_labels
from labelspace.training.sparse_layers import embedded, product
from labelspace.types import Bools, Csr, Doubles, Floats, Ints, Rng, TopK

MAX_DIM = 500  # of embeddings, if the dimension is not given
ROW_BLOCK = 64  # documents per task
INDEX_QUERIES = 300  # documents by which the kind of index is chosen
INIT_STD = 0.1  # of W
CG_STEPS = 10  # most conjugate gradient steps for W; the next iteration goes on from there
CG_TOL = 0.1  # the steps end when the gradient has fallen to this share
LABEL_BLOCK = 32  # labels per task, which share a read of X W
LASSO_PASSES = 20  # most passes per label; the next iteration goes on from there
LASSO_TOL = 0.01  # of the score of a document


class Leml(Model):
    """A linear map to few dimensions that all labels share, so that frequent labels help rare ones.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = Leml().fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "leml"
    title = "LEML (Yu et al. 2014): a linear model of low rank; RobustXML (Xu et al. 2016): plus a sparse one"
    choose_when = "training must take seconds and documents have many labels, or labels are missing"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"max_iter": 10, "tol": 0.0},
        "robustxml": {"sparse": True, "max_iter": 10, "tol": 0.0},
    }

    embedding_dim: int | None = param(
        None, integer(1, at_most=4096), f"Rank of the model; none takes the number of labels, but at most {MAX_DIM}."
    )
    reg_weight: float = param(2.0, real(above=0), "Weight of the squared weights of the low rank (lambda).")
    bias: bool = param(True, boolean(), "Append a feature of value 1 to every document.")
    sparse: bool = param(
        False, boolean(), "Add a sparse linear model, for labels that the low rank misses (RobustXML)."
    )
    l1_weight: float = param(
        0.03, real(above=0), "Weight of the sum of what the sparse part adds to scores."
    ).only_with(sparse=True)
    l2_weight: float = param(1.0, real(at_least=0), "Weight of the squared weights of the sparse part.").only_with(
        sparse=True
    )
    tol: float = param(0.001, real(at_least=0), "Stop when the objective falls by less than this share.")
    max_iter: int = param(10, integer(1), "Maximum number of times that all parts are updated.")
    normalize: bool = parameters.normalize()
    random_state: int = parameters.random_state()

    feature_embeddings_: Int8s = learned(array("int8", "n_features", "dim"))  # W
    feature_scales_: Floats = learned(array("float32", "n_features"))
    document_bias_: Floats = learned(array("float32", "dim"))  # the row of W that belongs to the feature of value 1
    sparse_weights_: Csr = learned(sparse_matrix("float32", "n_features", "n_labels"))  # S
    index_: Index = learned(part(index_class))  # of H
    objective_: list[float] = learned(plain(list_of(real())))  # after each iteration

    def check_state(self) -> None:
        """Check that the index holds vectors of labels, exact ones if there is a sparse part to add."""
        must(self.index_.dimension == len(self.document_bias_), "an index of the length of its embeddings")
        must(int(self.index_.ids.max(initial=-1)) < self.n_labels_, f"an index of its {self.n_labels_} labels")
        exact = isinstance(self.index_, Exact) and self.index_.storage == "float32"
        must(exact or not self.sparse, "an exact index in float32 with a sparse part")

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = normalize_rows(X) if self.normalize else X
        with threadpool_limits(1, user_api="blas"):
            low_rank, S = self._descend(X, Y, context)
        self.feature_embeddings_, self.feature_scales_ = quantize_int8(low_rank.W[: X.shape[1]])  # step 6
        self.document_bias_ = low_rank.W[X.shape[1] :].sum(axis=0)
        self.sparse_weights_ = S
        self._build_index(X, Y, low_rank.H, context)

    def _descend(self, X: Csr, Y: Csr, context: FitContext) -> tuple[LowRank, Csr]:
        """Make steps 1 to 5: return W and H, and S."""
        n_features, n_labels = X.shape[1], Y.shape[1]
        if self.bias:  # step 1
            X = with_bias_column(X)
        targets = Targets(X, Y)
        dim = self.embedding_dim or min(n_labels, MAX_DIM)
        low_rank = LowRank.random(X, n_labels, dim, np.random.default_rng(self.random_state))
        rest = SparsePart(targets, n_features, self.l1_weight, self.l2_weight)
        self.objective_ = []
        for iteration in range(self.max_iter):
            low_rank.update_labels(targets, self.reg_weight)  # step 2
            low_rank.update_features(targets, self.reg_weight)  # step 3
            error = rest.update(targets, low_rank) if self.sparse else low_rank.squared_error(targets)  # step 4
            self.objective_.append(error / 2 + self.reg_weight * low_rank.penalty() + rest.penalty())
            context.progress("iterations", iteration + 1, self.max_iter)
            if iteration and self.objective_[-1] > (1 - self.tol) * self.objective_[-2]:  # step 5
                break
        return low_rank, rest.matrix()[:n_features]

    def _build_index(self, X: Csr, Y: Csr, H: Floats, context: FitContext) -> None:
        seen = seen_labels(Y)
        if self.sparse:
            self.index_ = Exact(H[seen], seen)
            return
        rows = np.random.default_rng([self.random_state, 1]).permutation(X.shape[0])[:INDEX_QUERIES]
        queries = self._embed(X[np.sort(rows)])
        self.index_ = index.choose(H[seen], seen, queries, seed=self.random_state, progress=context.progress)

    def _embed(self, X: Csr) -> Floats:
        """Return X W of each document: (n, dim)."""
        return embedded(csr_arrays(X), self.feature_embeddings_, self.feature_scales_, self.document_bias_)

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        if allowed is None:
            return self._search(self.index_, X, k)
        some = index_among(self.index_, allowed, self.mask_cache)
        return overfetch(self._predict, X, k, allowed) if some is None else self._search(some, X, k)

    def _search(self, index: Index, X: Csr, k: int) -> TopK:
        X = normalize_rows(X) if self.normalize else X
        embeddings = self._embed(X)
        if not len(index):
            return TopK.empty(X.shape[0], k)
        if not self.sparse:
            return index.search(embeddings, k)
        assert isinstance(index, Exact)
        candidates = LabelVectors(index.arrays_["vectors"], index.ids, self.n_labels_)
        parts = (csr_arrays(X), embeddings, candidates, csr_arrays(self.sparse_weights_))
        return topk_in_blocks(low_rank_sparse_topk, *parts, n=X.shape[0], k=k, block=ROW_BLOCK)

    def report(self) -> dict[str, Any]:
        """Report the objective after each iteration, and the number of weights of the sparse part."""
        self.check_fitted()
        weights = {"sparse_weights": int(self.sparse_weights_.nnz)} if self.sparse else {}
        return {"objective": [round(value, 3) for value in self.objective_]} | weights


class Targets:
    """The targets of X W H': Y - X S, where X S is what the sparse part already explains."""

    def __init__(self, X: Csr, Y: Csr) -> None:
        self.X, self.Y = X, Y
        self.X_by_feature, self.Y_by_label = X.T.tocsr(), Y.T.tocsr()
        self.S: Csr | None = None  # (n_features, n_labels)

    def times(self, H: Floats) -> Floats:
        """Return (Y - X S) H."""
        out = product(self.Y, H)
        return out if self.S is None else out - product(self.X, product(self.S, H))

    def transposed_times(self, A: Floats) -> Floats:
        """Return (Y - X S)' A."""
        out = product(self.Y_by_label, A)
        return out if self.S is None else out - product(self.S.T.tocsr(), product(self.X_by_feature, A))


@dataclass
class LowRank:
    """W (n_features, dim), H (n_labels, dim), and A = X W."""

    W: Floats
    H: Floats
    A: Floats

    @classmethod
    def random(cls, X: Csr, n_labels: int, dim: int, rng: Rng) -> Self:
        """Draw W at random, 0 for features without documents; H is 0."""
        W = rng.standard_normal((X.shape[1], dim), np.float32) * np.float32(INIT_STD)
        W[np.bincount(X.indices, minlength=X.shape[1]) == 0] = 0.0
        return cls(W, np.zeros((n_labels, dim), np.float32), product(X, W))

    def update_labels(self, targets: Targets, reg_weight: float) -> None:
        """Set H = (Y - X S)' A (A'A + lambda I)^-1."""
        gram = (self.A.T @ self.A).astype(np.float64) + reg_weight * np.eye(self.A.shape[1])
        self.H = np.ascontiguousarray(np.linalg.solve(gram, targets.transposed_times(self.A).T).T, np.float32)

    def rotate(self) -> Floats:
        """Rotate W and H so that H'H is diagonal, and return the diagonal; neither W H' nor the objective changes."""
        values, Q = np.linalg.eigh((self.H.T @ self.H).astype(np.float64))
        turn = Q.astype(np.float32)
        self.W, self.H, self.A = self.W @ turn, self.H @ turn, self.A @ turn
        return np.asarray(np.maximum(values, 0.0).astype(np.float32))

    def update_features(self, targets: Targets, reg_weight: float) -> None:
        """Make conjugate gradient steps on X'X W H'H + lambda W = X'(Y - X S) H, for each column of W by itself."""
        diagonal, weight = self.rotate(), np.float32(reg_weight)
        X, X_by_feature = targets.X, targets.X_by_feature
        residual = product(X_by_feature, targets.times(self.H) - self.A * diagonal) - weight * self.W
        direction, squares = residual.copy(), _column_products(residual, residual)
        goal = CG_TOL**2 * squares.sum()
        for _ in range(CG_STEPS):
            XP = product(X, direction)
            curved = product(X_by_feature, XP * diagonal)
            curved += weight * direction
            step = _ratio(squares, _column_products(direction, curved))
            self.W += step * direction
            self.A += step * XP
            residual -= step * curved
            before, squares = squares, _column_products(residual, residual)
            if squares.sum() <= goal:
                break
            direction = residual + _ratio(squares, before) * direction

    def squared_error(self, targets: Targets) -> float:
        """Return |Y - A H'|^2, the error without a sparse part."""
        cross = float(np.vdot(targets.transposed_times(self.A), self.H))
        square = float(np.vdot(self.A.T @ self.A, self.H.T @ self.H))
        return float(targets.Y.nnz) - 2 * cross + square

    def penalty(self) -> float:
        """Return (|W|^2 + |H|^2) / 2."""
        return (float(np.vdot(self.W, self.W)) + float(np.vdot(self.H, self.H))) / 2


class SparsePart:
    """S (n_features, n_labels): for each label the weights of a few features, by lasso on what the low rank leaves.

    Its penalty is sum_jl l1_j |S_jl| + l2 |S|^2 / 2, where l1_j = l1_weight sum_i |X_ij|. The first term is at
    least l1_weight |X S|_1, the sum of what S adds to all scores.
    """

    def __init__(self, targets: Targets, n_features: int, l1_weight: float, l2: float) -> None:
        """Start with S = 0, which has no weights of the features from ``n_features`` on (the bias)."""
        by_feature = targets.X_by_feature
        squares = squared_norms(by_feature.data, by_feature.indptr, 0.0)
        squares[n_features:] = 0.0
        l1 = np.asarray(abs(by_feature).sum(axis=1), np.float32).ravel() * np.float32(l1_weight)
        self.lasso = Lasso(csr_arrays(by_feature), squares, l1, l2)
        self.weights: list[tuple[Ints, Floats]] = [NO_WEIGHTS] * targets.Y.shape[1]  # features and weights by label

    def update(self, targets: Targets, low_rank: LowRank) -> float:
        """Descend for each label on Y - X W H' from its present weights, and return |Y - X W H' - X S|^2."""
        Y = targets.Y_by_label
        errors = np.zeros(len(self.weights))

        def descend(start: int, stop: int) -> None:
            residuals = -(low_rank.H[start:stop] @ low_rank.A.T)
            weights = np.zeros(len(self.lasso.l1), np.float32)
            for label, residual in enumerate(residuals, start):
                residual[Y.indices[Y.indptr[label] : Y.indptr[label + 1]]] += 1
                features, values = self.weights[label]
                weights[:] = 0.0
                weights[features] = values
                descend_lasso(self.lasso, LASSO_PASSES, LASSO_TOL, weights, residual)
                kept = np.flatnonzero(weights).astype(np.int32)
                self.weights[label] = (kept, weights[kept])
                errors[label] = np.vdot(residual, residual)

        run_blocks(descend, len(errors), LABEL_BLOCK)
        targets.S = self.matrix()
        return float(errors.sum())

    def matrix(self) -> Csr:
        """Return S by features."""
        return feature_major_weights(self.weights, len(self.lasso.l1))

    def penalty(self) -> float:
        """Return the penalty of S."""
        l1, l2 = self.lasso.l1, self.lasso.l2
        return float(sum(l1[features] @ np.abs(w) + l2 * np.vdot(w, w) / 2 for features, w in self.weights))


def _column_products(a: Floats, b: Floats) -> Doubles:
    return np.asarray(np.einsum("ij,ij->j", a, b).astype(np.float64))


def _ratio(a: Doubles, b: Doubles) -> Floats:
    """Return a / b, and 0 where b is 0: that column is solved."""
    return np.asarray(np.divide(a, b, out=np.zeros_like(a), where=b > 0).astype(np.float32))
