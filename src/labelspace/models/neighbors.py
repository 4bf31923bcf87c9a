"""Neighbors: exact k-nearest-neighbor tagging on sparse features.

1. Scale every training document to length one (cosine), and store the matrix by columns: an inverted index. Features
   that most documents share are stored apart, as dense rows.
2. Where the number of neighbors m or the power p is not given, choose it: tag a sample of the training documents from
   all others, and take the pair that ranks their labels best.
3. For a document, find the m training documents of largest inner product.
4. Each votes for its labels with similarity ** p; a label's score is its share of the votes.

Where we differ from the textbook, and why: the vote is sharpened by a power, since a near duplicate says more than
thirty distant documents, but by how much depends on the data (step 2). The search is exact, nothing is hashed or
pruned: the features that most documents share are read only for documents that can still be among the best
(``kernels.knn``).
"""

from itertools import product

import numpy as np

from labelspace.estimator import learned, param
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.knn import nearest_rows
from labelspace.kernels.threads import run_blocks
from labelspace.labels.voting import count_votes, total_dcg
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.parameter_constraints import integer, real
from labelspace.state_constraints import IDS, array, ids, must, offsets, plain, sparse
from labelspace.types import Csr, Floats, Ints, Progress, TopK

COMMON_SHARE = 0.25  # features in more documents than this are stored densely
ROW_BLOCK = 128  # documents per task
SAMPLE = 1000  # training documents tagged from the others to choose m and p
N_NEIGHBORS = (10, 20, 50, 100)  # tried
POWERS = (1.0, 2.0, 4.0, 8.0)
CHOICE_K = 5  # ranks that count in the choice


class Neighbors(Model):
    """Tags a document like the training documents most similar to it.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = Neighbors().fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "neighbors"
    title = "k nearest neighbors (cosine)"
    choose_when = "training must be instant, labels are very many, or near duplicates are common"
    n_neighbors: int | None = param(None, integer(1), "Nearest training documents that vote; none chooses on a sample.")
    power: float | None = param(None, real(at_least=0), "Exponent of similarity in a vote; none chooses on a sample.")
    random_state: int = parameters.random_state()

    values_: Floats = learned(array("float32", "n_values"))  # the rare features of unit rows, feature after feature
    rows_: Ints = learned(ids("n_values", below="n_documents", dtypes=IDS))  # the document of each value
    starts_: Ints = learned(offsets("n_features", into="n_values"))  # where each feature begins
    common_column_: Ints = learned(ids("n_features", below="n_common", at_least=-1))  # of a common feature in common_
    common_: Floats = learned(array("float32", "n_documents", "n_common"))
    common_norms_: Floats = learned(array("float32", "n_documents"))  # length of a row of common_
    Y_: Csr = learned(sparse("float32", "n_documents", "n_labels"))
    n_neighbors_: int = learned(plain(integer(1)))  # m
    power_: float = learned(plain(real(at_least=0)))  # p

    def check_state(self) -> None:
        """There must be documents to compare with."""
        must(len(self.common_norms_) > 0, "documents")

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = normalize_rows(X)
        self._build_index(X)  # step 1
        self.Y_ = Y.copy()  # the caller may go on using theirs
        numbers = N_NEIGHBORS if self.n_neighbors is None else (self.n_neighbors,)
        powers = POWERS if self.power is None else (self.power,)
        choices = [(int(m), float(p)) for m, p in product(numbers, powers)]
        if len(choices) > 1:
            choices = self._best_first(choices, X, context.progress)  # step 2
        self.n_neighbors_, self.power_ = choices[0]

    def _build_index(self, X: Csr) -> None:
        frequent = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) > COMMON_SHARE * X.shape[0])
        self.common_column_ = np.full(X.shape[1], -1, np.int32)
        self.common_column_[frequent] = np.arange(len(frequent), dtype=np.int32)
        self.common_ = np.ascontiguousarray(X[:, frequent].toarray())
        self.common_norms_ = np.sqrt(np.square(self.common_, dtype=np.float64).sum(axis=1)).astype(np.float32)
        rare = X.copy()
        rare.data[self.common_column_[rare.indices] >= 0] = 0.0
        rare.eliminate_zeros()
        index = rare.tocsc()
        self.values_, self.starts_ = index.data, index.indptr
        self.rows_ = index.indices.astype(np.uint16 if X.shape[0] <= 2**16 else np.int32)

    def _best_first(self, choices: list[tuple[int, float]], X: Csr, progress: Progress) -> list[tuple[int, float]]:
        """The choices by how well they rank a sample of training documents, each tagged from all others, best first."""
        rows = np.sort(np.random.default_rng(self.random_state).permutation(X.shape[0])[:SAMPLE])
        near, similarity = self._nearest(X[rows], max(m for m, _ in choices) + 1, progress)
        itself = near == rows[:, None]
        similarity[itself] = -np.inf
        order = np.argsort(-similarity, axis=1, kind="stable")  # moves the document itself behind all others
        near = np.take_along_axis(np.where(itself, -1, near), order, axis=1).astype(np.int32)
        similarity = np.take_along_axis(similarity, order, axis=1)
        truth, k = self.Y_[rows], min(CHOICE_K, self.n_labels_)
        gains = [total_dcg(self._vote(near, similarity, m, p, k), truth) for m, p in choices]
        return [choices[i] for i in np.argsort(-np.array(gains), kind="stable")]

    def _predict(self, X: Csr, k: int) -> TopK:
        near, similarity = self._nearest(normalize_rows(X), self.n_neighbors_)  # step 3
        return self._vote(near, similarity, self.n_neighbors_, self.power_, k)  # step 4

    def _nearest(self, Q: Csr, m: int, progress: Progress | None = None) -> tuple[Ints, Floats]:
        """The m nearest training documents of unit rows, best first. Shapes (n, m)."""
        m = min(m, self.Y_.shape[0])
        near, similarity = np.empty((Q.shape[0], m), np.int32), np.empty((Q.shape[0], m), np.float32)

        def find(start: int, stop: int) -> None:
            nearest_rows(
                Q.data, Q.indices, Q.indptr, start, stop, self.values_, self.rows_, self.starts_,
                self.common_column_, self.common_, self.common_norms_, near[start:stop], similarity[start:stop],
            )  # fmt: skip

        report = None if progress is None else lambda done, total: progress("choosing neighbors", done, total)
        run_blocks(find, Q.shape[0], ROW_BLOCK, report)
        return near, similarity

    def _vote(self, near: Ints, similarity: Floats, m: int, p: float, k: int) -> TopK:
        near, similarity = near[:, :m], similarity[:, :m]
        # Relative to the nearest, so that a high power does not turn all votes to zero.
        weights = np.divide(similarity, similarity[:, :1], out=np.zeros_like(similarity), where=near >= 0)
        np.power(weights, np.float32(p), out=weights, where=near >= 0)
        top = count_votes(near, weights, self.Y_, k)
        np.divide(top.scores, np.maximum(weights.sum(axis=1, keepdims=True), np.float32(1e-30)), out=top.scores)
        return top
