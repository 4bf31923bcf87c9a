"""Choose C, and the view of texts, by validation on a sample.

1. Draw up to ``MAX_DOCUMENTS`` training documents, and of the labels that they have up to ``MAX_LABELS``, as they come:
   frequent labels are drawn first. Leaving out labels keeps all documents of the others; leaving out more documents
   would favor single words over pairs of words, which need more documents.
2. Hold out a quarter of the documents, train on the others with each candidate, and rank the labels of the held-out
   documents.
3. Take the best nDCG@5, which varies less from sample to sample than P@1. Of candidates that are at most ``EQUAL``
   worse than the best take the last, with more features and a larger C: it gains most from the documents left out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from labelspace.features.views import take_rows
from labelspace.training.epochs import hold_out_rows, true_labels
from labelspace.types import Csr, Ints, Longs, Progress, TopK

MIN_DOCUMENTS = 200  # with fewer, differences are within the noise
MAX_DOCUMENTS, MAX_LABELS, MAX_CELLS = 10_000, 100, 800_000  # a cell is a document and a label
MIN_LABELS, MAX_WORK = 10, 50_000_000  # documents x features of a document x labels: long texts have fewer labels
HELD_OUT = 0.25
EQUAL = 0.003  # about the standard error of a difference of nDCG
DEPTH = 5  # labels that are ranked, as in nDCG@5

Rank = Callable[[Csr, Csr, Csr, float, int], TopK]
"""Train on X and Y with C, and rank the k best labels of other documents: (X, Y, others, C, k)."""


class Choice(NamedTuple):
    """A view, and an inverse regularization strength."""

    view: str
    C: float


def choose(
    tables: Mapping[str, Csr],
    Y: Csr,
    Cs: Sequence[float],
    rank: Rank,
    random_state: int,
    progress: Progress,
    fewest_labels: int = 1,
) -> Choice | None:
    """Return the best view and C; None with too few documents, or labels in the sample, to tell.

    ``tables`` has the documents by view; candidates that may gain from more documents are last.
    """
    if Y.shape[0] < MIN_DOCUMENTS:
        return None
    features = max(table.nnz for table in tables.values()) / Y.shape[0]  # of a document
    rows, labels = draw_sample(Y, features, random_state)
    if len(labels) < fewest_labels:
        return None
    Y = Y[rows][:, labels]
    split = hold_out_rows(Y, HELD_OUT, len(rows), random_state)
    if split is None:
        return None
    train, held_out = split
    truth, k = Y[held_out], min(DEPTH, len(labels))
    scores: dict[Choice, float] = {}
    n_candidates = len(tables) * len(Cs)
    for view, table in tables.items():
        X = take_rows(table, rows)
        for C in Cs:
            top = rank(take_rows(X, train), Y[train], take_rows(X, held_out), C, k)
            scores[Choice(view, C)] = ndcg(top, truth)
            progress("choice of C and features", len(scores), n_candidates)
    best = max(scores.values())
    return [choice for choice, score in scores.items() if score >= best - EQUAL][-1]


def draw_sample(Y: Csr, features: float, random_state: int) -> tuple[Longs, Ints]:
    """Draw documents, with so many features each, and return them with the first labels that they have."""
    rows = np.random.default_rng(random_state).permutation(Y.shape[0])[:MAX_DOCUMENTS]
    met = Y[rows].indices
    _, first = np.unique(met, return_index=True)
    affordable = int(MAX_WORK / max(len(rows) * features, 1))
    labels = np.sort(met[np.sort(first)[: min(max(affordable, MIN_LABELS), MAX_LABELS)]])
    return rows[: MAX_CELLS // max(len(labels), 1)], labels


def ndcg(top: TopK, Y: Csr) -> float:
    """Return the mean nDCG at the length of the lists, over the documents with labels; 0 without any.

    >>> import scipy.sparse as sp
    >>> Y = sp.csr_matrix([[1, 0, 1], [0, 1, 0], [0, 0, 0]])
    >>> round(ndcg(TopK.from_scores([[3, 2, 1], [3, 2, 1], [3, 2, 1]], k=2), Y), 4)
    0.622
    """
    labeled = np.flatnonzero(np.diff(Y.indptr))
    if not len(labeled):
        return 0.0
    discounts = 1 / np.log2(np.arange(2, top.k + 2))
    ideal = np.cumsum(discounts)[np.minimum(np.diff(Y.indptr)[labeled], top.k) - 1]
    return float((true_labels(top, Y)[labeled] @ discounts / ideal).mean())
