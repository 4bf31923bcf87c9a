"""Random label matrices and rankings for the property tests."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from hypothesis import settings
from hypothesis import strategies as st

from labelspace.types import TopK

# Other work on the machine must not fail a test, nor a test leave files behind.
unhurried = settings(deadline=None, database=None)


@dataclass(frozen=True)
class Case:
    Y: sp.csr_matrix
    topk: TopK
    k: int
    counts: np.ndarray
    n_documents: int

    def reordered(self, order):
        return Case(
            self.Y[order], TopK(self.topk.labels[order], self.topk.scores[order]), self.k, self.counts, self.n_documents
        )


def ranking(rng, n, n_labels, k, share_of_gaps):
    """Distinct labels in random order with gaps of -1 anywhere among them."""
    labels = np.full((n, k), -1)
    for row in labels:
        drawn = rng.permutation(n_labels)[:k]
        row[: drawn.size] = np.where(rng.random(drawn.size) < share_of_gaps, -1, drawn)
        rng.shuffle(row)
    return TopK(labels, np.where(labels >= 0, -np.arange(k, dtype=float), -np.inf))


@st.composite
def cases(draw, every_document_labeled=False):
    n, n_labels = draw(st.integers(1, 8)), draw(st.integers(1, 9))
    n_ranks = draw(st.integers(1, 7))
    k = draw(st.integers(1, n_ranks))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dense = (rng.random((n, n_labels)) < draw(st.sampled_from([0.1, 0.4, 0.9]))).astype(np.float32)
    rows = np.arange(n) if every_document_labeled else [0]
    dense[rows, rng.integers(0, n_labels, size=len(rows))] = 1
    topk = ranking(rng, n, n_labels, n_ranks, draw(st.sampled_from([0.0, 0.3])))
    n_documents = draw(st.integers(1, 2000))
    counts = rng.integers(0, n_documents + 1, size=n_labels)
    return Case(sp.csr_matrix(dense), topk, k, counts, n_documents)


def perfect(Y, k, by=None):
    """The ranking of the true labels, heaviest first where weights are given."""
    scores = Y.toarray() * (np.ones(Y.shape[1]) if by is None else by)
    return TopK.from_scores(np.where(scores > 0, scores, -np.inf), k)
