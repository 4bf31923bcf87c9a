"""Hard negative mining: the labels that score best for each document now, by an approximate search.

1. Spherical k-means, on a sample of the labels, finds ``LISTS`` sqrt(n) centers.
2. Each label is in the list of the center of largest inner product.
3. Each document reads the ``SEARCHED_LISTS`` lists of largest inner product. Many documents are searched at a time,
   list by list: one product of matrices for all documents that read a list.
"""

import numpy as np

from labelspace.kernels.row_norms import row_norms
from labelspace.kernels.threads import run_blocks
from labelspace.models.glas.network import Net, append_bias
from labelspace.types import Csr, Floats, Ints, Longs, Progress, TopK

QUERY_BLOCK = 16_384  # documents searched at a time
LABEL_BLOCK = 4096  # labels, or documents, per task that looks for centers
LIST_BLOCK = 8  # lists per task
LISTS = 2  # times the square root of the number of labels: quick to build, recall is good enough
SEARCHED_LISTS = 8  # per document
TRAINED_ON = 32  # labels per list that k-means sees
KMEANS_ITERATIONS = 4


def mine_hard_negatives(net: Net, X: Csr, labels: Ints, n_hard_negatives: int, seed: int, progress: Progress) -> Ints:
    """The labels nearest to each document, true ones among them; -1 is none. Shape (n, n_hard_negatives)."""
    bias_scale = net.write_bias_column()
    lists = LabelLists(net.label_embeddings, labels, seed)
    n, nearest = X.shape[0], np.empty((X.shape[0], n_hard_negatives), np.int32)
    for start in range(0, n, QUERY_BLOCK):
        queries = append_bias(net.encoder.embed(X[start : start + QUERY_BLOCK]) * net.scale, bias_scale)
        nearest[start : start + QUERY_BLOCK] = lists.search(queries, n_hard_negatives)
        progress("mining hard negatives", min(start + QUERY_BLOCK, n), n)
    return nearest


class LabelLists:
    """The labels by their nearest centers; ``embeddings`` are not copied."""

    def __init__(self, embeddings: Floats, labels: Ints, seed: int) -> None:
        self.embeddings = embeddings
        n_lists = max(1, round(LISTS * len(labels) ** 0.5))
        sample = np.random.default_rng(seed).permutation(labels)[: TRAINED_ON * n_lists]
        self.centers = _kmeans(embeddings[sample], n_lists)
        order, self.starts = _grouped(_nearest_centers(embeddings, labels, self.centers, 1)[:, 0], n_lists)
        self.ids = labels[order]

    def search(self, queries: Floats, k: int) -> Ints:
        """The k best labels in the lists that each query reads; -1 is none. Shape (len(queries), k)."""
        n_read = min(SEARCHED_LISTS, len(self.centers))
        read = _nearest_centers(queries, np.arange(len(queries), dtype=np.int32), self.centers, n_read)
        readers, starts = _grouped(read.ravel(), len(self.centers))  # positions in ``read``
        found = TopK.empty(read.size, k)

        def search_lists(first: int, last: int) -> None:
            for at in range(first, last):
                ids, positions = self.ids[self.starts[at] : self.starts[at + 1]], readers[starts[at] : starts[at + 1]]
                if len(ids) and len(positions):
                    scores = queries[positions // n_read] @ self.embeddings[ids].T
                    best = _largest(scores, k)
                    found.labels[positions, : best.shape[1]] = ids[best]
                    found.scores[positions, : best.shape[1]] = np.take_along_axis(scores, best, 1)

        run_blocks(search_lists, len(self.centers), LIST_BLOCK)
        best = _largest(found.scores.reshape(len(queries), -1), k)
        return np.take_along_axis(found.labels.reshape(len(queries), -1), best, 1)


def _kmeans(rows: Floats, n_centers: int) -> Floats:
    """Centers of length 1 (step 1), from the first rows on; a center without rows stays where it is."""
    centers = rows[:n_centers].copy()
    everything = np.arange(len(rows), dtype=np.int32)
    for _ in range(KMEANS_ITERATIONS):
        members, starts = _grouped(_nearest_centers(rows, everything, centers, 1)[:, 0], n_centers)
        filled = np.flatnonzero(np.diff(starts))
        centers[filled] = np.add.reduceat(rows[members], starts[filled])
        centers /= row_norms(centers)[:, None]
    return centers


def _nearest_centers(table: Floats, rows: Ints, centers: Floats, n_nearest: int) -> Ints:
    """The centers of largest inner product with each of these rows. Shape (len(rows), n_nearest)."""
    nearest = np.empty((len(rows), n_nearest), np.int32)

    def find(start: int, stop: int) -> None:
        nearest[start:stop] = _largest(table[rows[start:stop]] @ centers.T, n_nearest)

    run_blocks(find, len(rows), LABEL_BLOCK)
    return nearest


def _largest(scores: Floats, k: int) -> Longs:
    """The columns of the k largest scores of each row, in no order; all columns where they are fewer."""
    n = scores.shape[1]
    columns: Longs
    if k == 1:
        columns = scores.argmax(axis=1)[:, None]
    else:
        columns = np.argpartition(scores, n - k, axis=1)[:, n - k :] if k < n else np.indices(scores.shape)[1]
    return columns


def _grouped(group_of: Ints, n_groups: int) -> tuple[Longs, Longs]:
    """Positions 0, 1, ... by their groups, and where each group starts (and the last ends)."""
    order = np.argsort(group_of, kind="stable")
    return order, np.searchsorted(group_of[order], np.arange(n_groups + 1))
