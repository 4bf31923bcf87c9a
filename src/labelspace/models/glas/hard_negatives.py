"""Hard negative mining: the labels that score best for each document now, by an approximate index."""

import numpy as np

from labelspace.index import Approximate
from labelspace.models.glas.network import Net, append_bias
from labelspace.types import Csr, Floats, Ints, Progress

QUERY_BLOCK = 4096  # documents searched at a time
LISTS = 2  # IVF lists, times the square root of the number of labels: quick to build, recall is good enough
SEARCHED_LISTS = 8  # per query
TRAINED_ON = 32  # labels per list that k-means sees
ADD_BLOCK = 65_536  # labels added to the index at a time


def mine_hard_negatives(net: Net, X: Csr, labels: Ints, n_hard_negatives: int, seed: int, progress: Progress) -> Ints:
    """The labels nearest to each document, true ones among them; -1 is none. Shape (n, n_hard_negatives)."""
    bias_scale = net.write_bias_column()
    index = _build_index(net.label_embeddings, labels, seed)
    n, nearest = X.shape[0], np.empty((X.shape[0], n_hard_negatives), np.int32)
    for start in range(0, n, QUERY_BLOCK):
        queries = append_bias(net.encoder.embed(X[start : start + QUERY_BLOCK]) * net.scale, bias_scale)
        nearest[start : start + QUERY_BLOCK] = index.search(queries, n_hard_negatives).labels
        progress("mining hard negatives", min(start + QUERY_BLOCK, n), n)
    return nearest


def _build_index(embeddings: Floats, labels: Ints, seed: int) -> Approximate:
    n_lists = round(LISTS * len(labels) ** 0.5)
    order = np.random.default_rng(seed).permutation(labels)
    first, rest = order[: TRAINED_ON * n_lists], order[TRAINED_ON * n_lists :]
    index = Approximate(embeddings[first], first, "ivf", "int8", SEARCHED_LISTS, seed, n_lists=n_lists)
    for start in range(0, len(rest), ADD_BLOCK):  # in blocks: no second table of all embeddings
        block = rest[start : start + ADD_BLOCK]
        index.add(block, embeddings[block])
    return index
