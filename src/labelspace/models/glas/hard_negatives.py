"""Hard negative mining: the labels that score best for each document now, by an approximate search."""

import numpy as np

from labelspace.models.glas.label_lists import LabelLists
from labelspace.models.glas.network import Net, append_bias
from labelspace.types import Csr, Ints, Progress

QUERY_BLOCK = 16_384  # documents searched at a time


def mine_hard_negatives(
    net: Net, lists: LabelLists, X: Csr, n_hard_negatives: int, seed: int, progress: Progress
) -> Ints:
    """The labels nearest to each document, true ones among them; -1 is none. Shape (n, n_hard_negatives)."""
    bias_scale = net.write_bias_column()
    lists.update(net.label_embeddings, seed)
    n, nearest = X.shape[0], np.empty((X.shape[0], n_hard_negatives), np.int32)
    for start in range(0, n, QUERY_BLOCK):
        queries = append_bias(net.encoder.embed(X[start : start + QUERY_BLOCK]) * net.scale, bias_scale)
        nearest[start : start + QUERY_BLOCK] = lists.search(net.label_embeddings, queries, n_hard_negatives)
        progress("mining hard negatives", min(start + QUERY_BLOCK, n), n)
    return nearest
