"""Most-Common: the most frequent training labels for every document. The baseline of every table."""

from functools import cached_property

import numpy as np

from labelspace.estimator import learned
from labelspace.estimator.state_constraints import array
from labelspace.features.views import BIGRAMS
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.types import Bools, Csr, Floats, Ints, TopK


class Popular(Model):
    """The most frequent training labels, whatever the document; the score is the label's share of documents.

    >>> import numpy as np
    >>> Y = np.array([[1, 1, 0], [0, 1, 0]])
    >>> Popular().fit(np.eye(2), Y).predict_topk(np.eye(2), k=2).labels[0].tolist()
    [1, 0]
    """

    name = "popular"
    view = BIGRAMS
    title = "Most-Common"
    choose_when = "you need a baseline: any method must beat it"

    share_: Floats = learned(array("float32", "n_labels"))  # share of the documents; 0 for a label without documents

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        self.share_ = (np.bincount(Y.indices, minlength=Y.shape[1]) / Y.shape[0]).astype(np.float32)

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
