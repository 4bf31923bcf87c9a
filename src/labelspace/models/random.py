"""Random: labels drawn at random, for each document the same ones every time. The other baseline of every table."""

import zlib

import numpy as np

from labelspace.estimator import learned
from labelspace.features.views import BIGRAMS
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.state_constraints import ids
from labelspace.types import Csr, Ints, TopK


class Random(Model):
    """Suggests labels drawn evenly from those seen in train. The draw depends on the seed and the document alone.

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

    def _predict(self, X: Csr, k: int) -> TopK:
        out = TopK.empty(X.shape[0], k)
        n = min(k, len(self.seen_))
        for row in range(X.shape[0]):
            at = slice(X.indptr[row], X.indptr[row + 1])
            # The document's content seeds the draw, so that a batch and single rows agree.
            content = zlib.crc32(X.data[at].tobytes(), zlib.crc32(X.indices[at].tobytes()))
            out.labels[row, :n] = np.random.default_rng([self.random_state, content]).permutation(self.seen_)[:n]
        out.scores[:, :n] = 1.0 / np.arange(1, n + 1)
        return out
