"""Most-Common: the same labels for every document, the most frequent of train first. The baseline of every table."""

import numpy as np

from labelspace.estimator import learned
from labelspace.features.views import BIGRAMS
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.state_constraints import array
from labelspace.types import Bools, Csr, Floats, TopK


class Popular(Model):
    """Suggests the most frequent training labels, whatever the document; the score is the label's share of documents.

    >>> import numpy as np
    >>> Y = np.array([[1, 1, 0], [0, 1, 0]])
    >>> Popular().fit(np.eye(2), Y).predict_topk(np.eye(2), k=2).labels[0].tolist()
    [1, 0]
    """

    name = "popular"
    view = BIGRAMS
    title = "Most-Common"
    choose_when = "you need a baseline: any method must beat it"

    share_: Floats = learned(array("float32", "n_labels"))  # share of the training documents; 0 for a label never seen

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        self.share_ = (np.bincount(Y.indices, minlength=Y.shape[1]) / Y.shape[0]).astype(np.float32)

    def _predict(self, X: Csr, k: int) -> TopK:
        return self._rank(X, k, self.share_ > 0)

    def _predict_allowed(self, X: Csr, k: int, allowed: Bools) -> TopK:
        return self._rank(X, k, allowed & (self.share_ > 0))

    def _rank(self, X: Csr, k: int, allowed: Bools) -> TopK:
        scores = np.where(allowed, self.share_, -np.inf)[None, :]
        best = TopK.from_scores(scores, k)
        return TopK(np.repeat(best.labels, X.shape[0], axis=0), np.repeat(best.scores, X.shape[0], axis=0))
