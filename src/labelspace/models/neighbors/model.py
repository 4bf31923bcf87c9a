"""Neighbors: k-nearest-neighbor tagging on sparse features.

1. Scale every training document to length one (cosine), leave out its weakest features, round it to 8 bits with a scale
   per feature, and store the matrix by columns: an inverted index. Features that many documents share are stored apart,
   as dense rows, and never left out.
2. If the number of neighbors m or the power p is not given, choose it: tag a sample of the training documents from all
   other documents, and take the pair that ranks their labels best.
3. For a document, without its weakest features, find the m training documents of largest inner product.
4. Each votes for its labels with similarity ** p; a label's score is its share of the votes.

Where we differ from the textbook, and why: the vote is sharpened by a power, since a near duplicate says more than
thirty distant documents, but by how much depends on the data (step 2). The weakest features of long documents are left
out (``pruning``): most are frequent features, whose postings are most of the cost. Except for this, and rounding to 8
bits, the search is exact, and nothing is hashed: the features that most documents share are read only for documents
that can still be among the best (``kernels.py``).

Documents that are learned later (``partial_fit``) are appended to the index, which is then as if trained with all of
them, except for three things: m and p stay as chosen; numbers that are stored already are rounded a second time where a
new document has the largest value of a feature; and what was left out of a document stays out, by the features that
were common when it was learned.
"""

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import integer, real
from labelspace.estimator.state_constraints import IDS, array, ids, must, offsets, plain
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.knn import LabelSets, vote_by_similarity
from labelspace.kernels.normalize import normalized_values
from labelspace.kernels.quantize import Int8s
from labelspace.kernels.threads import run_blocks, thread_zeros
from labelspace.labels.document_neighbors import total_dcg
from labelspace.labels.masks import ids_among
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.evidence import ColumnShares, Evidence, Voter, logit
from labelspace.models.fit_context import FitContext
from labelspace.models.neighbors import kernels
from labelspace.models.neighbors.index import COMMON_SHARE, append_rows, empty_index
from labelspace.models.neighbors.kernels import Postings
from labelspace.models.partial_fit import NewDocuments
from labelspace.training.linear_weights import compact_ids
from labelspace.types import Bools, Csr, Doubles, Floats, Ints, Longs, Progress, TopK

MIN_FEATURES = 32  # of a document that are never left out: short documents cost little, and each of their words counts
ROW_BLOCK = 128  # documents per task
PRUNING_BLOCK = 1024  # documents per task of pruning, which is quick
SAMPLE = 1000  # training documents tagged from the others to choose m and p
N_NEIGHBORS = (10, 20, 50, 100)  # candidates
POWERS = (1.0, 2.0, 4.0, 8.0)  # candidates
CHOICE_K = 5  # ranks that count in the choice
NO_WEIGHTS = np.zeros(0, np.float32)  # of documents that all weigh the same
SHOWN_VOTERS = 10  # nearest documents that voted for a label, in an explanation
SHOWN_COLUMNS = 15  # columns that a voter shares with the document, in an explanation


class Votes(NamedTuple):
    """The votes for one document, best first."""

    documents: Ints  # (m,)
    similarities: Doubles
    products: Floats  # (m, nnz) what each feature of the document adds to a similarity
    columns: Ints  # (nnz,) the features of the document


class Neighbors(Model):
    """Nearest neighbors: a document gets the labels of the training documents most similar to it.

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
    names_documents = True
    weighs_documents = True
    choose_when = "training must be instant, labels are very many, or near duplicates are common"
    n_neighbors: int | None = param(None, integer(1), "Nearest training documents that vote; none chooses on a sample.")
    power: float | None = param(None, real(at_least=0), "Exponent of similarity in a vote; none chooses on a sample.")
    pruning: float = param(
        0.1, real(at_least=0, below=1), "Share of a long document's squared length left out; 0: none."
    )
    random_state: int = parameters.random_state()

    # The numbers of unit rows in 8 bits, and in three parts: see kernels.py.
    scales_: Floats = learned(array("float32", "n_features"))
    values_: Int8s = learned(array("int8", "n_values"))  # of rare features, feature after feature
    rows_: Ints = learned(ids("n_values", below="n_documents", dtypes=IDS))  # the document of each value
    starts_: Ints = learned(offsets("n_features", into="n_values"))  # where each feature begins
    gap_values_: Int8s = learned(array("int8", "n_gaps"))  # of frequent features
    gaps_: npt.NDArray[np.uint8] = learned(array("uint8", "n_gaps"))  # from the document of a value to that of the next
    gap_starts_: Ints = learned(offsets("n_features", into="n_gaps"))
    common_column_: Ints = learned(ids("n_features", below="n_common", at_least=-1))  # of a common feature in common_
    common_: Int8s = learned(array("int8", "n_documents", "n_common"))
    common_norms_: Floats = learned(array("float32", "n_documents"))  # length of a row of common_
    labels_of_: Ints = learned(ids("n_pairs", below="n_labels", dtypes=IDS))  # the labels of all documents
    label_starts_: Ints = learned(offsets("n_documents", into="n_pairs"))
    n_neighbors_: int = learned(plain(integer(1)))  # m
    power_: float = learned(plain(real(at_least=0)))  # p
    # Of the documents; None if all weigh the same, as in models saved before there were weights.
    weights_: Floats | None = learned(array("float32", "n_documents", at_least=0, optional=True), default=None)
    pruning_: float = learned(plain(real(at_least=0, below=1)), default=0.0)  # models saved before pruning existed

    _last_voters: tuple[tuple[Any, ...], tuple[Ints, Floats]] | None = None

    def check_state(self) -> None:
        """Check that there are documents to compare with, and that gaps end within them."""
        must(len(self.common_norms_) > 0, "documents")
        ends = np.append(0, np.cumsum(self.gaps_, dtype=np.int64))[self.gap_starts_]
        must(np.diff(ends).max(initial=0) < len(self.common_norms_), "gaps between its documents")

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = normalize_rows(X)
        self.pruning_ = float(self.pruning)
        self.weights_ = None if context.sample_weight is None else context.sample_weight.astype(np.float32)
        self._set_index(append_rows(empty_index(X.shape[1]), self._prune_documents(X)))  # step 1
        self.labels_of_, self.label_starts_ = compact_ids(Y.indices.copy(), Y.shape[1]), Y.indptr.copy()
        numbers = N_NEIGHBORS if self.n_neighbors is None else (self.n_neighbors,)
        powers = POWERS if self.power is None else (self.power,)
        choices = [(int(m), float(p)) for m, p in product(numbers, powers)]
        if len(choices) > 1:
            choices = self._best_first(choices, X, Y, context.progress)  # step 2
        self.n_neighbors_, self.power_ = choices[0]

    def _prune_documents(self, X: Csr) -> Csr:
        """Prune unit rows to index: drop their weakest features, except those that are stored densely."""
        kept = strong_entries(X, self.pruning_, MIN_FEATURES)
        is_common = np.bincount(X.indices[kept], minlength=X.shape[1]) > COMMON_SHARE * X.shape[0]
        return keep_entries(X, kept | is_common[X.indices])

    def _prune(self, Q: Csr) -> Csr:
        """Prune unit rows to search for: drop the features that the index would drop."""
        return keep_entries(Q, strong_entries(Q, self.pruning_, MIN_FEATURES) | (self.common_column_[Q.indices] >= 0))

    def _set_index(self, index: Postings) -> None:
        for name, values in index._asdict().items():
            setattr(self, f"{name}_", values)

    def partial_fit(self, new: NewDocuments) -> Sequence[str]:
        """Append documents to the index, with their labels; a document whose labels are not known votes for none."""
        self._set_index(append_rows(self._index, self._prune(normalize_rows(new.X))))
        if self.weights_ is not None:
            self.weights_ = np.append(self.weights_, np.ones(new.X.shape[0], np.float32))
        self.labels_of_ = compact_ids(np.concatenate([self.labels_of_, new.Y.indices]), new.n_labels)
        ends = self.label_starts_[-1] + new.Y.indptr[1:].astype(np.int64)
        label_starts = np.concatenate([self.label_starts_, ends])
        self.label_starts_ = label_starts.astype(np.int32 if label_starts[-1] < 2**31 else np.int64)
        return ()

    def growing_views(self) -> Collection[str]:
        """Return the view of the documents."""
        return (self.view.name,)

    def insert_features(self, at: Mapping[str, Longs]) -> None:
        """Insert features that no document has before these columns."""
        columns = at[self.view.name]
        self.scales_ = np.insert(self.scales_, columns, 0)
        self.common_column_ = np.insert(self.common_column_, columns, -1)
        self.starts_ = np.insert(self.starts_, columns, self.starts_[columns])
        self.gap_starts_ = np.insert(self.gap_starts_, columns, self.gap_starts_[columns])

    def _best_first(
        self, choices: list[tuple[int, float]], X: Csr, Y: Csr, progress: Progress
    ) -> list[tuple[int, float]]:
        """Sort the choices by how well they rank a sample of training documents, each tagged from all others."""
        rows = np.sort(np.random.default_rng(self.random_state).permutation(X.shape[0])[:SAMPLE])
        near, similarity = self._nearest(X[rows], max(m for m, _ in choices) + 1, progress)
        itself = near == rows[:, None]
        similarity[itself] = -np.inf
        order = np.argsort(-similarity, axis=1, kind="stable")  # moves the document itself behind all others
        near = np.take_along_axis(np.where(itself, -1, near), order, axis=1).astype(np.int32)
        similarity = np.take_along_axis(similarity, order, axis=1)
        truth = Y[rows]
        k = min(CHOICE_K, self.n_labels_)
        gains = [total_dcg(self._vote(near, similarity, m, p, k), truth) for m, p in choices]
        return [choices[i] for i in np.argsort(-np.array(gains), kind="stable")]

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        near, similarity = self._voters(normalize_rows(X))  # step 3
        if allowed is not None:
            return self._vote_among(near, similarity, k, allowed)
        return self._vote(near, similarity, self.n_neighbors_, self.power_, k)  # step 4

    def predict_twice(self, X: Csr, k: int, depth: int, allowed: Bools) -> tuple[TopK, TopK]:
        """Return the k best of all labels and the ``depth`` best of the allowed ones, by the same voters."""
        near, similarity = self._voters(normalize_rows(X))
        among = self._vote_among(near, similarity, depth, allowed)
        return self._vote(near, similarity, self.n_neighbors_, self.power_, k), among

    def explain(self, X: Csr, labels: Ints) -> list[Evidence]:
        """Explain the scores of labels by the documents that voted, and by the features that each shares."""
        Q = normalize_rows(X)
        near, similarity = (rows[0] for rows in self._voters(Q))
        Q = self._prune(Q)
        voters = near[near >= 0]
        products = np.empty((len(voters), Q.nnz), np.float32)
        slots = thread_zeros("neighbors", len(self.common_norms_), np.int32)
        kernels.shared_products(Q.data, Q.indices, self._index, voters, slots, products)
        votes = Votes(voters, similarity[near >= 0].astype(np.float64), products, Q.indices)
        return [self._evidence(label, votes) for label in labels.tolist()]

    @cached_property
    def _label_counts(self) -> Longs:
        """Count the training documents of each label."""
        return np.bincount(self.labels_of_, minlength=self.n_labels_)

    def _evidence(self, label: int, votes: Votes) -> Evidence:
        """Explain the score of a label by the votes of the documents that have it.

        The log-odds are log V - log W, where V are the votes for the label and W all other votes. The baseline is the
        label's share of all documents. The share of a document is the share of its vote in V. A feature causes a part
        of the similarity behind a vote: on average a of V, and b of W. The share of the feature is a times what is
        explained, plus p (a - b), the change of the log-odds in proportion to the feature; these changes cancel out
        over all features.
        """
        documents, similarities, products, columns = votes
        baseline = logit(self._label_counts[label] / len(self.common_norms_))
        weights = (similarities / similarities[:1]) ** self.power_
        weights = weights if self.weights_ is None else weights * self.weights_[documents]
        spans = zip(self.label_starts_[documents].tolist(), self.label_starts_[documents + 1].tolist(), strict=True)
        carry = np.array([label in self.labels_of_[start:stop] for start, stop in spans], bool)
        total, own = float(weights.sum()), float(weights[carry].sum())
        log_odds = logit(own / total) if total else logit(0.0)
        if not own:
            return Evidence(log_odds, baseline)
        parts = products / np.maximum(products.sum(axis=1, keepdims=True), 1e-30)
        a = weights[carry] @ parts[carry] / own
        shares = (log_odds - baseline) * a
        if own < total:
            b = weights[~carry] @ parts[~carry] / (total - own)
            shares = shares + self.power_ * (a - b)
        voters = []
        for i in np.flatnonzero(carry)[:SHOWN_VOTERS].tolist():
            n_shown = min(SHOWN_COLUMNS, int((parts[i] > 0).sum()))
            shared = columns[np.argsort(-products[i], kind="stable")[:n_shown]]
            vote = float((log_odds - baseline) * weights[i] / own)
            voters.append(Voter(int(documents[i]), float(similarities[i]), vote, shared, self.view.name))
        return Evidence(log_odds, baseline, {self.view.name: ColumnShares(columns, shares)}, voters=voters)

    def _vote_among(self, near: Ints, similarity: Floats, k: int, allowed: Bools) -> TopK:
        labels = self.mask_cache.get(allowed, lambda: ids_among(self.labels_of_, self.label_starts_, allowed))
        return self._vote(near, similarity, self.n_neighbors_, self.power_, k, labels)

    @cached_property
    def _index(self) -> Postings:
        """The index as kernels take it."""
        return Postings(*(getattr(self, f"{name}_") for name in Postings._fields))

    def _voters(self, Q: Csr) -> tuple[Ints, Floats]:
        """Find the documents that vote; for a single document they are kept, since it may be explained next."""
        key = (Q.data, Q.indices, self.common_norms_)
        last = self._last_voters
        if last is not None and all(one is other for one, other in zip(last[0], key, strict=True)):
            return last[1]
        found = self._nearest(Q, self.n_neighbors_)
        if Q.shape[0] == 1:
            self._last_voters = (key, found)
        return found

    def _nearest(self, Q: Csr, m: int, progress: Progress | None = None) -> tuple[Ints, Floats]:
        """Find the m nearest training documents of unit rows, best first. Shapes (n, m)."""
        n_documents = len(self.common_norms_)
        m = min(m, n_documents)
        Q = self._prune(Q)
        queries = csr_arrays(Q)
        near, similarity = np.empty((Q.shape[0], m), np.int32), np.empty((Q.shape[0], m), np.float32)

        def find(start: int, stop: int) -> None:
            sums = thread_zeros("neighbors", n_documents, np.int32)
            out = (near[start:stop], similarity[start:stop])
            kernels.nearest_quantized_rows(queries, start, stop, self._index, sums, *out)

        report = None if progress is None else lambda done, total: progress("choosing neighbors", done, total)
        run_blocks(find, Q.shape[0], ROW_BLOCK, report)
        return near, similarity

    def _vote(
        self, near: Ints, similarity: Floats, m: int, p: float, k: int, labels: tuple[Ints, Ints] | None = None
    ) -> TopK:
        """Rank the labels of documents by their votes; only ``labels`` count, if given."""
        out = TopK.empty(len(near), k)
        given = LabelSets(*(labels or (self.labels_of_, self.label_starts_)))
        weights = NO_WEIGHTS if self.weights_ is None else self.weights_
        m = min(m, near.shape[1])

        def count(start: int, stop: int) -> None:
            part = slice(start, stop)
            votes = thread_zeros("votes", self.n_labels_, np.float32)
            found = near[part], similarity[part], m, float(p), weights
            vote_by_similarity(*found, given, votes, out.labels[part], out.scores[part])

        run_blocks(count, len(near), ROW_BLOCK)
        return out


def strong_entries(X: Csr, share: float, at_least: int) -> Bools:
    """Return which values of X to keep: the values left out have at most ``share`` of the sum of squares of their row.

    The weakest are left out first, and values of the same size together. At least ``at_least`` are kept in every row.

    >>> import scipy.sparse as sp
    >>> X = sp.csr_matrix(np.array([[0.1, 1.0, -0.3], [1.0, 1.0, 1.0]]))
    >>> strong_entries(X, share=0.05, at_least=1).tolist()
    [False, True, True, True, True, True]
    """
    kept = np.ones(X.nnz, bool)
    if not share:
        return kept

    def mark(start: int, stop: int) -> None:
        kernels.strong_values(X.data, X.indptr, start, stop, share, at_least, kept)

    run_blocks(mark, X.shape[0], PRUNING_BLOCK)
    return kept


def keep_entries(X: Csr, kept: Bools) -> Csr:
    """Return X, whose rows have norm 1, with the ``kept`` values only, and rows of norm 1 again.

    >>> import scipy.sparse as sp
    >>> X = sp.csr_matrix(np.array([[0.6, 0.8], [0.8, 0.6]], np.float32))
    >>> keep_entries(X, np.array([False, True, True, True])).toarray().tolist()
    [[0.0, 1.0], [0.800000011920929, 0.6000000238418579]]
    """
    if kept.all():
        return X
    indptr = np.append(0, np.cumsum(kept))[X.indptr].astype(X.indptr.dtype)
    sizes, values = np.diff(indptr), X.data[kept]
    # A row that lost nothing stays as it is, bit for bit: it must not depend on the other rows.
    changed = np.repeat(sizes != np.diff(X.indptr), sizes)
    rows = copy(X)  # SciPy's constructor takes ten times as long
    rows.data = np.where(changed, normalized_values(values, indptr), values)
    rows.indices, rows.indptr = X.indices[kept], indptr
    return rows
