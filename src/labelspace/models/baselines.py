"""The baselines of every table: the most frequent labels for every document, and labels drawn at random."""

import zlib
from functools import cached_property

import numpy as np

from labelspace.estimator import learned
from labelspace.estimator.state_constraints import array, ids
from labelspace.features.views import BIGRAMS
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.batched_prediction import overfetch
from labelspace.models.fit_context import FitContext
from labelspace.types import Bools, Csr, Floats, Ints, Rng, TopK


class Popular(Model):
    """The most frequent training labels, whatever the document; the score is the label's share of documents.

    >>> import numpy as np
    >>> Y = np.array([[1, 1, 0], [0, 1, 0]])
    >>> Popular().fit(np.eye(2), Y).predict_topk(np.eye(2), k=2).labels[0].tolist()
    [1, 0]
    """

    name = "popular"
    weighs_documents = True
    view = BIGRAMS
    title = "Most-Common"
    choose_when = "you need a baseline: any method must beat it"

    share_: Floats = learned(array("float32", "n_labels"))  # share of the documents; 0 for a label without documents

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        weights = context.document_weights(Y.shape[0])
        by_label = np.bincount(Y.indices, np.repeat(weights, np.diff(Y.indptr)), Y.shape[1])
        self.share_ = (by_label / weights.sum()).astype(np.float32)

    @cached_property
    def _by_share(self) -> Ints:
        """The labels of training documents, most frequent first; the smaller id first among equally frequent labels."""
        seen = np.flatnonzero(self.share_ > 0)
        return seen[np.argsort(-self.share_[seen], kind="stable")].astype(np.int32)

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        labels = self._by_share
        if allowed is not None:
            labels = self.mask_cache.get(allowed, lambda: self._by_share[allowed[self._by_share]])
        best = labels[:k]
        out = TopK.empty(X.shape[0], k)
        out.labels[:, : len(best)] = best
        out.scores[:, : len(best)] = self.share_[best]
        return out


class Random(Model):
    """Labels drawn evenly from those with training documents. A draw depends only on the seed and the document.

    >>> import numpy as np
    >>> X, Y = np.eye(3), np.eye(3)
    >>> Random(random_state=1).fit(X, Y).predict_topk(X, k=3).labels.shape
    (3, 3)
    """

    name = "random"
    view = BIGRAMS
    title = "Random"
    choose_when = "you need the lowest baseline: what random labels give"
    random_state: int = parameters.random_state()

    seen_: Ints = learned(ids("n_seen", below="n_labels"))  # labels with a training document

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        self.seen_ = np.unique(Y.indices).astype(np.int32)

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        if allowed is not None:
            return overfetch(self._predict, X, k, allowed)
        out = TopK.empty(X.shape[0], k)
        n = min(k, len(self.seen_))
        for row in range(X.shape[0]):
            at = slice(X.indptr[row], X.indptr[row + 1])
            # The document's content seeds the draw, so that a batch and single rows agree.
            content = zlib.crc32(X.data[at].tobytes(), zlib.crc32(X.indices[at].tobytes()))
            rng = np.random.default_rng([self.random_state, content])
            out.labels[row, :n] = self.seen_[_draw(rng, len(self.seen_), n)]
        out.scores[:, :n] = 1.0 / np.arange(1, n + 1)
        return out


def _draw(rng: Rng, n: int, k: int) -> list[int]:
    """Draw k of n numbers in random order, by the first steps of a Fisher-Yates shuffle, without the other numbers.

    >>> few, all_five = (_draw(np.random.default_rng(1), n=5, k=k) for k in (2, 5))
    >>> sorted(all_five), few == all_five[:2]
    ([0, 1, 2, 3, 4], True)
    """
    at: dict[int, int] = {}  # the number at a position, if it is not the position itself
    drawn = []
    for i, j in enumerate(rng.integers(np.arange(k), n).tolist()):
        drawn.append(at.get(j, j))
        at[j] = at.pop(i, i)
    return drawn
