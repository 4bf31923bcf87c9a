"""Hard negatives: labels in lists by their nearest centers, which are kept from one epoch to the next.

1. At first, spherical k-means, on a sample of the labels, finds ``LISTS`` sqrt(n) centers, and each label goes to the
   list of the center of largest inner product.
2. Later, when the labels have moved, each center moves to the mean of its list, and a label goes to another list where
   one of the ``NEIGHBORS`` centers nearest to its own is nearer to it. No label is compared with all centers again.
3. Each document reads the ``SEARCHED_LISTS`` lists of largest inner product. Many documents are searched at a time,
   list by list: one product of matrices for all documents that read a list.
"""

import numpy as np

from labelspace.index.inverted_lists import grouped, largest, nearest_centers, spherical_kmeans
from labelspace.kernels.normalize import row_norms
from labelspace.kernels.threads import run_blocks
from labelspace.models.glas.network import Net, append_bias
from labelspace.store import Arrays
from labelspace.types import Csr, Floats, Ints, Progress, TopK

QUERY_BLOCK = 16_384  # documents searched at a time: one product of matrices per list; more take more memory
LIST_BLOCK = 8  # lists per task
LISTS = 2  # times the square root of the number of labels: quick to build, recall is good enough
SEARCHED_LISTS = 8  # per document: more find more of the nearest labels, in more time
TRAINED_ON = 32  # labels per list that k-means sees: a sample is enough, since lists move with the labels
NEIGHBORS = 16  # centers that a label may move to in an epoch, in which labels do not move far


class LabelLists:
    """Some labels, at least one, by their nearest centers; ``dimension`` is that of their embeddings."""

    def __init__(self, labels: Ints, dimension: int) -> None:
        n_lists = min(len(labels), round(LISTS * len(labels) ** 0.5))
        self.labels = labels
        self.centers = np.zeros((n_lists, dimension), np.float32)
        self.list_of = np.zeros(len(labels), np.int32)

    def arrays(self) -> Arrays:
        """Return the arrays for a checkpoint: lists depend on the lists of the epoch before."""
        return {"list_centers": self.centers, "list_of": self.list_of}

    def update(self, embeddings: Floats, seed: int) -> None:
        """Put the labels into lists by their current embeddings (n_labels, dimension)."""
        if self.centers.any():
            self._move(embeddings)
        else:
            self._build(embeddings, seed)

    def _build(self, embeddings: Floats, seed: int) -> None:
        """Find centers, and put each label into the list of the nearest (step 1)."""
        n_lists = len(self.centers)
        sample = np.random.default_rng(seed).permutation(self.labels)[: TRAINED_ON * n_lists]
        self.centers[...] = spherical_kmeans(embeddings[sample], n_lists)
        self.list_of[...] = nearest_centers(embeddings, self.labels, self.centers, 1)[:, 0]

    def _move(self, embeddings: Floats) -> None:
        """Move the centers, and each label to the nearest center near its own (step 2)."""
        n_lists = len(self.centers)
        members, starts = grouped(self.list_of, n_lists)

        def move_centers(first: int, last: int) -> None:
            for at in range(first, last):
                rows = embeddings[self.labels[members[starts[at] : starts[at + 1]]]]
                if len(rows):
                    mean = rows.mean(axis=0, keepdims=True)
                    self.centers[at] = mean[0] / row_norms(mean)

        run_blocks(move_centers, n_lists, LIST_BLOCK)
        everything = np.arange(n_lists, dtype=np.int32)
        neighbors = nearest_centers(self.centers, everything, self.centers, min(NEIGHBORS + 1, n_lists))

        def move_labels(first: int, last: int) -> None:
            for at in range(first, last):
                some = members[starts[at] : starts[at + 1]]
                products = embeddings[self.labels[some]] @ self.centers[neighbors[at]].T
                self.list_of[some] = neighbors[at][products.argmax(axis=1)]

        run_blocks(move_labels, n_lists, LIST_BLOCK)

    def search(self, embeddings: Floats, queries: Floats, k: int) -> Ints:
        """Return the k best labels in the lists that each query reads; -1 is none. Shape (len(queries), k)."""
        n_lists = len(self.centers)
        members, list_starts = grouped(self.list_of, n_lists)
        n_read = min(SEARCHED_LISTS, n_lists)
        read = nearest_centers(queries, np.arange(len(queries), dtype=np.int32), self.centers, n_read)
        readers, starts = grouped(read.ravel(), n_lists)  # positions in ``read``
        found = TopK.empty(read.size, k)

        def search_lists(first: int, last: int) -> None:
            for at in range(first, last):
                ids = self.labels[members[list_starts[at] : list_starts[at + 1]]]
                positions = readers[starts[at] : starts[at + 1]]
                if len(ids) and len(positions):
                    scores = queries[positions // n_read] @ embeddings[ids].T
                    best = largest(scores, k)
                    found.labels[positions, : best.shape[1]] = ids[best]
                    found.scores[positions, : best.shape[1]] = np.take_along_axis(scores, best, 1)

        run_blocks(search_lists, n_lists, LIST_BLOCK)
        best = largest(found.scores.reshape(len(queries), -1), k)
        return np.take_along_axis(found.labels.reshape(len(queries), -1), best, 1)


def mine_hard_negatives(
    net: Net, lists: LabelLists, X: Csr, n_hard_negatives: int, seed: int, progress: Progress
) -> Ints:
    """Return the labels nearest to each document, true ones among them; -1 is none. Shape (n, n_hard_negatives)."""
    bias_scale = net.write_bias_column()
    lists.update(net.label_embeddings, seed)
    n, nearest = X.shape[0], np.empty((X.shape[0], n_hard_negatives), np.int32)
    for start in range(0, n, QUERY_BLOCK):
        queries = append_bias(net.encoder.embed(X[start : start + QUERY_BLOCK]) * net.scale, bias_scale)
        nearest[start : start + QUERY_BLOCK] = lists.search(net.label_embeddings, queries, n_hard_negatives)
        progress("mining hard negatives", min(start + QUERY_BLOCK, n), n)
    return nearest
