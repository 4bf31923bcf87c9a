"""FastXML (Prabhu and Varma, KDD 2014) and PfastreXML (Jain, Prabhu and Varma, KDD 2016): trees of documents.

1. Give every document a bias feature of 1. Weigh the gain of label l by 1, or with ``propensity`` by 1/p_l.
2. Grow ``n_estimators`` trees. At a node, put each document on one of two sides at random.
3. For each side, rank the labels by the sum of their gains, each over the document's ideal DCG (with ``propensity``: by
   the plain sum). Move each document to the side with the larger DCG. Repeat while the mean nDCG rises.
4. Fit a logistic regression with an L1 penalty that separates the sides; a loss weighs ``C`` over its side's share.
5. A document goes where the sign of w.x says. Split both sides again, down to ``max_leaf_size`` documents.
6. A leaf's score of a label is the share of its documents that have it (times 1/p_l); the trees are averaged.
7. With ``propensity``: w_l is the mean of the documents with label l, each of length 1. The tail classifier says
   s_l = 1 / (1 + exp(gamma |w_l - x|^2)); the score is then tree^alpha s_l^(1 - alpha). Unless given, ``alpha`` is
   chosen on held-out documents, with ``TRIAL_TREES`` trees grown on the others.

| the paper's symbol | here |
|---|---|
| T, MaxLeaf, C_delta | ``n_estimators``, ``max_leaf_size``, ``C`` |
| w of a node, r+ and r- | ``weights_``; only needed in training |
| p_l, A, B | ``propensity``, ``A``, ``B`` |

Where we differ, and why: a leaf is saved as its training documents, whose labels are saved once, not as its most
frequent labels: that is smaller, and no label is cut off. Weights are rounded to whole numbers up to 127, since a
split needs only the sign of w.x; documents go where the rounded weights say in training too. The tail classifiers
rank all labels of the leaves, not the best 1,000. The authors' program has an alpha of 0.8: on Delicious, that is far
below their published precision. A node whose sides cannot be separated is a leaf, which keeps at most ``MAX_DOCUMENTS``
documents, drawn at random.
"""

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import AllBut, boolean, integer, real
from labelspace.estimator.state_constraints import IDS, array, ids, must, offsets, plain, sparse
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.csr_arrays import CsrArrays, csr_arrays
from labelspace.kernels.dual_cd import SolverOptions
from labelspace.kernels.normalize import normalized_values
from labelspace.kernels.threads import topk_in_blocks
from labelspace.labels.masks import ids_among
from labelspace.labels.tree import check_forest
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.fastxml.kernels import Forest, GivenLabels, Tail, Targets, Weights, forest_topk, grow_tree
from labelspace.models.fit_context import FitContext, Tick
from labelspace.training.epochs import VALIDATION_K, hold_out_rows, r_precision
from labelspace.training.linear_weights import compact_ids, with_bias_column
from labelspace.types import Bools, Csr, Doubles, Floats, Ints, Longs, TopK
from labelspace.types.propensity import DEFAULT_A, DEFAULT_B, propensity_weights

ROW_BLOCK = 64  # documents per task
MAX_DOCUMENTS = 1000  # kept of a leaf: it bounds the time of a document that reaches a large one
ALPHAS = (0.8, 0.9, 1.0)  # the candidates: the alpha of the authors, or more of the trees
AUTHORS_ALPHA = 0.8  # used if there are too few documents to choose by
TRIAL_DOCUMENTS = 20_000  # most documents by which alpha is chosen: fewer make the choice uncertain, more take longer
TRIAL_SHARE = 0.2  # of these documents is held out
TRIAL_TREES = 10  # grown for the choice

Tree: TypeAlias = tuple[Ints, list[Ints], list[Weights], Ints, Ints, Ints]
"""The result of ``grow_tree``."""


class FastXML(Model):
    """Trees of documents: a label's score is its share of the training documents in the same leaves.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = FastXML(n_estimators=10).fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "fastxml"
    title = "FastXML, PfastreXML (Prabhu, Jain and Varma 2014, 2016): trees of documents"
    choose_when = "documents have many labels that occur together, and features are few"
    trains_in_tasks = True
    presets = {"paper": {}, "pfastrexml": {"propensity": True}}
    n_estimators: int = param(50, integer(1), "Number of trees, averaged.")
    max_leaf_size: int = param(10, integer(1), "Maximum documents of a leaf.")
    C: float = parameters.C(1.0)
    tol: float = param(0.01, real(above=0, at_most=1), "Stopping tolerance of the logistic regressions.")
    max_iter: int = param(20, integer(1), "Maximum number of Newton steps of the logistic regressions.")
    propensity: bool = param(False, boolean(), "Weigh labels by inverse propensity: rare labels count more.")
    A: float = param(DEFAULT_A, real(at_least=0), "Exponent of the propensities.").only_with(propensity=True)
    B: float = param(DEFAULT_B, real(above=0), "Offset of the propensities.").only_with(propensity=True)
    alpha: float | None = param(
        None,
        real(at_least=0, at_most=1),
        "Share of the trees in a score, against the tail classifiers; none chooses it on held-out documents.",
    ).only_with(propensity=True)
    gamma: float = param(30.0, real(above=0), "Steepness of the tail classifiers.").only_with(
        propensity=True, alpha=AllBut(1)
    )
    normalize: bool = parameters.normalize(False)
    random_state: int = parameters.random_state()

    # Node i of all trees has the children child_[i] and child_[i] + 1; 0 is a leaf. Feature n_features is the bias.
    child_: Ints = learned(ids("n_nodes", below="n_nodes"))
    roots_: Ints = learned(ids("n_trees", below="n_nodes"))
    features_: Ints = learned(ids("n_weights", below="n_features + 1", dtypes=IDS))
    weights_: Weights = learned(array("int8", "n_weights"))
    weight_starts_: Longs = learned(offsets("n_nodes", into="n_weights"))
    documents_: Ints = learned(ids("n_placed", below="n_documents", dtypes=IDS))  # of the leaves
    document_starts_: Longs = learned(offsets("n_nodes", into="n_placed"))
    document_labels_: Ints = learned(ids("n_given", below="n_labels", dtypes=IDS))  # document after document
    label_starts_: Longs = learned(offsets("n_documents", into="n_given"))
    label_weights_: Floats = learned(array("float32", "n_labels"))  # 1/p_l over the largest
    alpha_: float = learned(plain(real(at_least=0, at_most=1)))
    tail_: Csr = learned(sparse("float32", "n_features + 1", "n_labels"))  # column l is w_l; empty for an alpha_ of 1
    tail_norms_: Floats = learned(array("float32", "n_labels"))  # |w_l|^2

    def check_state(self) -> None:
        """Check that the children form trees, and that scores are numbers."""
        check_forest(self.child_, np.where(self.child_ > 0, self.child_ + 2, 0), self.roots_)
        must((self.label_weights_ > 0).all(), "label weights above 0")
        must((np.abs(self.tail_.data) <= 1).all(), "mean documents with values of at most 1")
        must((np.abs(self.tail_norms_ - 1) <= 1).all(), "mean documents with norms of at most 2")

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        self.alpha_ = self._chosen_alpha(X, Y) if self.propensity else 1.0
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        weights = propensity_weights(counts, Y.shape[0], self.A, self.B) if self.propensity else np.ones(Y.shape[1])
        self.label_weights_ = (weights / weights.max()).astype(np.float32)
        documents = with_bias_column(normalize_rows(X) if self.normalize else X)  # step 1
        self._grow_trees(documents, Y, weights, context)  # steps 2 to 5
        self.document_labels_ = self._compact(Y.indices, (X.shape[0], X.shape[1] + 1))
        self.label_starts_ = Y.indptr.astype(np.int64)
        tail = sp.csr_matrix((X.shape[1] + 1, Y.shape[1]), dtype=np.float32)
        if self.alpha_ < 1:  # step 7
            means = sp.diags(1 / np.maximum(counts, 1))
            tail = (normalize_rows(with_bias_column(X)).T @ Y @ means).tocsr().astype(np.float32)
        self.tail_ = tail
        self.tail_norms_ = np.bincount(tail.indices, tail.data.astype(np.float64) ** 2, Y.shape[1]).astype(np.float32)

    def _chosen_alpha(self, X: Csr, Y: Csr) -> float:
        """Return ``alpha``, or the member of ``ALPHAS`` with the best R-precision on held-out documents."""
        if self.alpha is not None:
            return float(self.alpha)
        sample = np.random.default_rng(self.random_state).permutation(X.shape[0])[:TRIAL_DOCUMENTS]
        X, Y = X[sample], Y[sample]
        split = hold_out_rows(Y, TRIAL_SHARE, TRIAL_DOCUMENTS, self.random_state)
        if split is None:
            return AUTHORS_ALPHA
        params = {**self.get_params(), "n_estimators": min(self.n_estimators, TRIAL_TREES), "alpha": ALPHAS[0]}
        train, held_out = split
        trial = FastXML(**params).fit(X[train], Y[train])

        def accuracy(alpha: float) -> float:
            trial.alpha_ = alpha
            return r_precision(trial.predict_topk(X[held_out], min(VALIDATION_K, Y.shape[1])), Y[held_out])

        return max(ALPHAS, key=accuracy)

    def _grow_trees(self, X: Csr, Y: Csr, weights: Doubles, context: FitContext) -> None:
        discounts = 1 / np.log2(np.arange(2, Y.shape[1] + 2))
        ideal = np.cumsum(discounts)[np.maximum(np.diff(Y.indptr), 1) - 1]
        row_weights = np.ones(Y.shape[0]) if self.propensity else 1 / ideal
        targets = Targets(CsrArrays(weights[Y.indices].astype(np.float32), Y.indices, Y.indptr), row_weights, discounts)
        n = self.n_estimators
        trees = context.train_learners(_grow, (X, targets, self), n, lambda done: context.progress("trees", done, n))
        self._join(trees, X.shape)

    def _join(self, trees: list[Tree], shape: tuple[int, int]) -> None:
        """Join the arrays of all trees into one array of each kind."""
        children, features, weights, n_weights, documents, n_documents = map(list, zip(*trees, strict=True))
        starts = np.cumsum([0, *map(len, children)]).astype(np.int32)
        self.roots_ = starts[:-1]
        moved = [np.where(child > 0, child + start, 0) for child, start in zip(children, starts, strict=False)]
        self.child_ = np.concatenate(moved).astype(np.int32)
        self.features_ = self._compact(np.concatenate([part for tree in features for part in tree]), shape)
        self.weights_ = np.concatenate([part for tree in weights for part in tree])
        self.weight_starts_ = np.append(0, np.cumsum(np.concatenate(n_weights)))
        self.documents_ = self._compact(np.concatenate(documents), shape)
        self.document_starts_ = np.append(0, np.cumsum(np.concatenate(n_documents)))

    def _compact(self, ids: Ints, shape: tuple[int, int]) -> Ints:
        """Return ids in 16 bits if that suffices for all kinds of ids: kernels are compiled for one type."""
        return compact_ids(ids, max(*shape, self.n_labels_))

    def leaf_labels(self, leaf: int) -> tuple[Ints, Doubles]:
        """Return the labels of the documents in a leaf, and for each the share of the documents that have it."""
        self.check_fitted()
        documents = self.documents_[self.document_starts_[leaf] : self.document_starts_[leaf + 1]]
        spans = [slice(self.label_starts_[i], self.label_starts_[i + 1]) for i in documents.astype(np.int64)]
        given = np.concatenate([np.zeros(0, np.int32), *(self.document_labels_[span] for span in spans)])
        labels, counts = np.unique(given.astype(np.int32), return_counts=True)
        return labels, counts / max(len(documents), 1)

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        rows = (self.document_labels_, self.label_starts_)
        if allowed is not None:
            rows = self.mask_cache.get(allowed, lambda: ids_among(self.document_labels_, self.label_starts_, allowed))
        values = normalized_values(X.data, X.indptr) if self.normalize else X.data
        forest = Forest(*(getattr(self, f"{name}_") for name in Forest._fields))
        given = GivenLabels(*rows, self.label_weights_)
        tail = Tail(X.data, csr_arrays(self.tail_), self.tail_norms_, float(self.alpha_), float(self.gamma))
        parts = (CsrArrays(values, X.indices, X.indptr), forest, given, tail)
        return topk_in_blocks(forest_topk, *parts, n=X.shape[0], k=k, block=ROW_BLOCK)  # steps 6 and 7


def _grow(X: Csr, targets: Targets, params: FastXML, number: int, tick: Tick) -> Tree:
    """Grow one tree."""
    options = SolverOptions(float(params.C), float(params.tol), params.max_iter)
    seed = params.random_state * params.n_estimators + number
    tree: Tree = grow_tree(csr_arrays(X), X.shape[1], targets, options, params.max_leaf_size, MAX_DOCUMENTS, seed)
    tick(1)
    return tree
