"""Neighbours: exact k-nearest-neighbour tagging on sparse features.

1. Divide every training document by its length (cosine), and store the matrix by columns: an inverted index.
2. For a document, add up its inner products with all training documents that share a feature with it.
3. Keep the m most similar, m = ``neighbours``.
4. Each votes for its labels with similarity ** power; a label's score is its share of the votes.

Where we differ from the textbook: the vote is sharpened by ``power``, since a near duplicate says more than thirty
remote relatives do. The search is exact: nothing is hashed or pruned.
"""

from __future__ import annotations

import scipy.sparse as sp

from labelspace.estimator import at_least, whole
from labelspace.features.scaling import unit_rows
from labelspace.kernels.knn import neighbour_vote
from labelspace.kernels.threads import run_blocks
from labelspace.models.base import Model
from labelspace.types import Csr, LabelSpace, Progress, TopK

BLOCK = 256  # documents a block: large enough to forget the cost of starting one, small enough to share two cores


class Neighbours(Model):
    """Tags a document like the training documents most similar to it.

    >>> import numpy as np
    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = Neighbours().fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "neighbours"
    title = "k nearest neighbours (cosine)"
    choose_when = "training must be instant, labels are very many, or near duplicates are common"
    rules = {"neighbours": whole(1), "power": at_least(0)}
    state = ("index_", "Y_", "n_documents_")

    index_: sp.csc_matrix  # (n_documents, n_features) by columns, rows of length 1
    Y_: Csr  # (n_documents, n_labels)
    n_documents_: int

    def __init__(self, neighbours: int = 30, power: float = 4.0) -> None:
        self.neighbours = neighbours
        self.power = power

    def _fit(
        self,
        X: Csr,
        Y: Csr,
        labels: LabelSpace | None,
        validation: tuple[Csr, Csr] | None,
        progress: Progress,
    ) -> None:
        self.index_ = unit_rows(X).tocsc()
        self.Y_ = Y
        self.n_documents_ = X.shape[0]

    def _predict(self, X: Csr, k: int) -> TopK:
        Q = unit_rows(X)
        out = TopK.empty(X.shape[0], k)

        def vote(start: int, stop: int) -> None:
            neighbour_vote(
                Q.data, Q.indices, Q.indptr, start, stop,
                self.index_.data, self.index_.indices, self.index_.indptr, self.n_documents_,
                self.Y_.indices, self.Y_.indptr, self.n_labels_,
                min(self.neighbours, self.n_documents_), self.power, out.labels, out.scores,
            )  # fmt: skip

        run_blocks(vote, X.shape[0], BLOCK)
        return out
