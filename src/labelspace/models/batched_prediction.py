"""Answers made in parts: documents in batches of bounded memory, and labels of a mask by over-fetching."""

from collections.abc import Callable
from typing import Any

import numpy as np

from labelspace.features.views import Views, n_rows, take_rows
from labelspace.index import Index
from labelspace.labels.masks import LastMask
from labelspace.types import Bools, TopK

# Labels of all documents that a method ranks at once. Methods need memory for each of these labels, so a larger number
# costs memory (8 bytes a label in the answer, and several times as much in most methods); a smaller one costs calls.
PREDICTED_LABELS = 2**20


def in_batches(predict: Callable[[Views], TopK], views: Views, k: int, batch: int) -> TopK:
    """Return the k labels of every document, from calls of ``predict`` with at most ``batch`` documents each."""
    if views.n <= batch:
        return predict(views)
    out = TopK.empty(views.n, k)
    for start in range(0, views.n, batch):
        part = slice(start, start + batch)
        top = predict(views.rows(part)).padded(k)
        out.labels[part], out.scores[part] = top.labels, top.scores
    return out


def overfetch(predict: Callable[[Any, int], TopK], X: Any, k: int, allowed: Bools) -> TopK:  # noqa: ANN401 - as read
    """Return the k best allowed labels of each document, for a method that cannot restrict its search to a mask.

    ``predict(X, depth)`` ranks all labels. The first ``depth`` is twice the number of labels among which k allowed ones
    are expected on average. Documents with fewer than k allowed labels are ranked again, four times as deep each time.
    """
    n = X.n if isinstance(X, Views) else n_rows(X)
    n_labels = len(allowed)
    out = TopK.empty(n, k)
    lacking = np.arange(n)
    depth = -(-k * n_labels // (2 * int(allowed.sum())))
    while len(lacking):
        depth = min(max(4 * depth, k), n_labels)
        batch = max(1, PREDICTED_LABELS // depth)
        left = [lacking[:0]]
        for rows in np.split(lacking, range(batch, len(lacking), batch)):
            top = predict(X if len(rows) == n else take_rows(X, rows), depth)
            found = top.among(allowed, k)
            out.labels[rows], out.scores[rows] = found.labels, found.scores
            left.append(rows[(found.labels[:, -1] < 0) & (top.labels[:, -1] >= 0)])
        lacking = np.concatenate(left) if depth < n_labels else lacking[:0]
    return out


def index_among(index: Index, allowed: Bools, cache: LastMask[Index | None]) -> Index | None:
    """Return a copy of an index with the allowed labels only, kept in ``cache``; None to search deeper instead.

    It is None where most labels are allowed, so that a copy would save little, and for an index that cannot be copied.
    """
    if 2 * np.count_nonzero(allowed) > len(allowed):
        return None
    return cache.get(allowed, lambda: index.among(allowed))
