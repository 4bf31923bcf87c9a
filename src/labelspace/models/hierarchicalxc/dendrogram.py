"""A binary tree over labels by complete-link clustering, where labels that share documents are similar.

Complete link joins, again and again, the two clusters whose least similar labels are most similar. Labels that never
stand together have similarity 0, and so do all clusters that hold such two: what is positive is as sparse as the matrix
given, and the tree is exact with its memory, whatever the number of labels. In practice most clusters end tied at 0;
``ties`` says in which order they are joined then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from labelspace.errors import DataError, ParameterError
from labelspace.kernels.average_link import link_average
from labelspace.kernels.complete_link import (
    breadth_first,
    depths_below,
    join_smallest_first,
    labels_below,
    link_complete,
    refold,
)
from labelspace.labels.cooccurrence import shared_documents, similarity
from labelspace.labels.tree import Nodes, balance, is_chain
from labelspace.types import Csr, Doubles, Floats, Ints, Longs

MEASURES = ("counts", "iou")
TIES = ("average", "order")
MAX_EDGES = 20_000_000  # for average link, about 80 bytes each


@dataclass(frozen=True)
class Dendrogram:
    """A binary tree over n labels as a list of merges. Label i is node i; merge j makes node n + j of two earlier ones.

    ``similarity`` is that of the two least similar labels of a node: 0 where any two of them share no document. It
    never rises from a merge to one that holds it.

    >>> S = sp.csr_matrix(np.array([[0, 3, 1, 0], [3, 0, 2, 0], [1, 2, 0, 0], [0, 0, 0, 0]], np.float32))
    >>> tree = complete_link(S)
    >>> tree.children.tolist(), tree.similarity.tolist()
    ([[0, 1], [2, 4], [3, 5]], [3.0, 1.0, 0.0])
    >>> tree.height(), tree.depths().tolist(), tree.balance()
    (3, [3, 3, 2, 1], 0.6666666666666666)
    """

    children: Ints  # (n - 1, 2)
    similarity: Floats  # (n - 1,)

    @property
    def n_labels(self) -> int:
        """How many labels the tree has."""
        return len(self.children) + 1

    def sizes(self) -> Longs:
        """How many labels each node holds. Shape (2 n - 1,)."""
        sizes: Longs = labels_below(self.children, np.ones(self.n_labels, np.int64))
        return sizes

    def depths(self) -> Ints:
        """How many merges each label is from the root. Shape (n,)."""
        depths: Ints = depths_below(self.children)[: self.n_labels]
        return depths

    def height(self) -> int:
        """The most merges that a label is from the root."""
        return int(self.depths().max())

    def balance(self) -> float:
        """The least height that so many labels can have, over the height: 1 is as low as can be, near 0 is a chain."""
        return balance(self.n_labels, self.height())

    def is_chain(self) -> bool:
        """Whether the tree is degenerate, much higher than its labels need; ``balanced`` mends it."""
        return is_chain(self.n_labels, self.height())


def label_similarity(Y: Csr, measure: str) -> Csr:
    """How alike labels are: the documents they share, ``counts``, or these over the documents of either, ``iou``.

    >>> Y = sp.csr_matrix(np.array([[1, 1], [1, 0], [1, 1]], np.float32))
    >>> float(label_similarity(Y, "counts")[0, 1]), round(float(label_similarity(Y, "iou")[0, 1]), 3)
    (2.0, 0.667)
    """
    if measure not in MEASURES:
        raise ParameterError(f"measure must be one of {', '.join(MEASURES)}, but is {measure!r}; set it so")
    return shared_documents(Y) if measure == "counts" else similarity(Y, "jaccard")


def complete_link(S: Csr, ties: str = "average") -> Dendrogram:
    """The complete-link tree of labels with symmetric sparse similarities S (n, n); its diagonal is ignored.

    Of equally similar clusters those with the smallest labels are joined first. Clusters that hold labels without any
    similarity are all tied at 0: with ``ties="order"`` they too are joined in the order of their smallest labels, which
    gives a chain; with ``"average"`` those first whose labels are most similar on average, until none is left that has
    any, and then the two with the fewest labels each time. Equal averages are taken in an order that is always the
    same. Above MAX_EDGES pairs of such clusters only the most similar on average are looked at.

    >>> S = sp.csr_matrix(np.array([[0, 3, 0, 0], [3, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], np.float32))
    >>> complete_link(S).children.tolist()
    [[0, 1], [2, 4], [3, 5]]
    """
    if ties not in TIES:
        raise ParameterError(f"ties must be one of {', '.join(TIES)}, but is {ties!r}; set it so")
    S = _apart(S)
    n = S.shape[0]
    pairs, values = _pairs(S)
    order = np.argsort(-values, kind="stable")
    positive, joined, nodes = link_complete(S.data, S.indices, S.indptr.astype(np.int64), values[order], pairs[order])
    del S, order  # average link may need the room
    tops = nodes[nodes >= 0]  # the clusters that are tied at 0, by their smallest labels
    if ties == "order":
        rest = _chain(len(tops))
    else:
        sizes = labels_below(positive, np.ones(n, np.int64))[tops]
        rest = _by_average(_clusters(positive, tops, n), sizes, pairs, values)
    children = np.concatenate([positive, _renamed(rest, tops, n + len(positive))])
    children.sort(axis=1)
    return Dendrogram(children, np.concatenate([joined, np.zeros(len(rest), np.float32)]))


def balanced(dendrogram: Dendrogram) -> Dendrogram:
    """A low tree with the same order of leaves: heavy paths, from a node to the child with more labels, are refolded.

    The subtrees that hang off such a path become the leaves of a tree that halves their labels best at each node. The
    height is at most about 3 log2(n), for a chain log2(n) + 2. The similarity of a node is that of the smallest node
    which held all its labels before, so any two of them are as similar at least. A tree that would not
    become lower is returned as it is.

    >>> chain = Dendrogram(np.array([[0, 1], [4, 2], [5, 3]], np.int32), np.array([3, 2, 1], np.float32))
    >>> tree = balanced(chain)
    >>> tree.children.tolist(), tree.similarity.tolist(), tree.height()
    ([[2, 3], [0, 1], [5, 4]], [1.0, 3.0, 1.0], 2)
    """
    if dendrogram.n_labels == 1:
        return dendrogram
    folded = Dendrogram(*refold(dendrogram.children, dendrogram.similarity))
    return folded if folded.height() < dendrogram.height() else dendrogram


def to_nodes(dendrogram: Dendrogram) -> Nodes:
    """The tree in the numbering of training and searching, breadth first. A single label is a leaf below a root.

    >>> nodes = to_nodes(Dendrogram(np.array([[0, 2], [1, 3]], np.int32), np.array([2, 1], np.float32)))
    >>> nodes.first_child.tolist(), nodes.last_child.tolist(), nodes.label.tolist()
    ([1, 0, 3, 0, 0], [3, 0, 5, 0, 0], [-1, 1, -1, 0, 2])
    """
    n = dendrogram.n_labels
    if n == 1:
        return Nodes(np.array([1, 0], np.int32), np.array([2, 0], np.int32), np.array([-1, 0], np.int32))
    order = breadth_first(dendrogram.children)
    inner = order >= n
    first = np.where(inner, 2 * np.cumsum(inner) - 1, 0).astype(np.int32)
    last = np.where(inner, first + 2, 0).astype(np.int32)
    joined = np.append(dendrogram.similarity, np.float32(np.nan))[np.where(inner, order - n, -1)]
    return Nodes(first, last, np.where(inner, -1, order).astype(np.int32), joined)


def _apart(S: Csr) -> Csr:
    """A copy of S in float32, sorted, without diagonal and zeros; an error where it is no matrix of similarities."""
    if S.shape[0] != S.shape[1] or S.shape[0] == 0:
        raise DataError(f"similarities must be a square matrix of a label or more, but are {S.shape}; give (n, n)")
    own = sp.csr_matrix(S, dtype=np.float32, copy=True)
    own.sum_duplicates()
    if not (own.data >= 0).all():
        raise DataError(f"similarities must be 0 or more, but one is {own.data.min()}; shift or clip them")
    own.data[np.repeat(np.arange(S.shape[0]), np.diff(own.indptr)) == own.indices] = 0
    own.eliminate_zeros()
    mirror = own.T.tocsr()
    for mine, other in ((own.indptr, mirror.indptr), (own.indices, mirror.indices), (own.data, mirror.data)):
        if not np.array_equal(mine, other):
            raise DataError("similarities must be symmetric, but S and its transpose differ; give S.maximum(S.T)")
    return own


def _pairs(S: Csr) -> tuple[Longs, Floats]:
    """The entries above the diagonal, in their order: a * 2^32 + b, and the similarity."""
    rows = np.repeat(np.arange(S.shape[0], dtype=np.int32), np.diff(S.indptr))
    above = S.indices > rows
    return (rows[above].astype(np.int64) << 32) | S.indices[above], S.data[above]


def _chain(m: int) -> Ints:
    """The merges that join m clusters one after another."""
    seconds = np.arange(1, m, dtype=np.int32)
    firsts = np.concatenate([np.zeros(min(m - 1, 1), np.int32), np.arange(m, 2 * m - 2, dtype=np.int32)])
    return np.stack([firsts, seconds], 1)


def _clusters(merges: Ints, tops: Ints, n: int) -> Ints:
    """The place in ``tops`` of each label's cluster, after some merges of n labels."""
    ahead = np.arange(n + len(merges), dtype=np.int32)
    ahead[merges] = np.arange(n, n + len(merges), dtype=np.int32)[:, None]
    while not np.array_equal(ahead, further := ahead[ahead]):
        ahead = further
    place = np.empty(n + len(merges), np.int32)
    place[tops] = np.arange(len(tops))
    return place[ahead[:n]]


def _by_average(cluster: Ints, sizes: Longs, pairs: Longs, values: Floats) -> Ints:
    """The merges of clusters by average link, and then of what is left by the number of labels."""
    m = len(sizes)
    ends, totals = _cluster_edges(cluster, sizes, pairs, values)
    found, means = link_average(ends, totals, sizes.copy())
    order = np.argsort(-means, kind="stable")
    name = np.arange(m + len(found), dtype=np.int32)
    name[m + order] = np.arange(m, m + len(found), dtype=np.int32)
    linked = name[found[order]]
    top = np.ones(m + len(found), bool)
    top[linked] = False
    tops = np.flatnonzero(top).astype(np.int32)
    lowest = join_smallest_first(labels_below(linked, sizes)[tops])
    return np.concatenate([linked, _renamed(lowest, tops, m + len(found))])


def _cluster_edges(cluster: Ints, sizes: Longs, pairs: Longs, values: Floats) -> tuple[Ints, Doubles]:
    """The pairs of clusters with any similarity (n_edges, 2), and the sums of the similarities of their labels."""
    m = len(sizes)
    a, b = cluster[pairs >> 32], cluster[pairs & 0xFFFFFFFF]
    between = a != b
    a, b, values = a[between], b[between], values[between].astype(np.float64)
    sums = sp.csr_matrix((values, (np.minimum(a, b), np.maximum(a, b))), shape=(m, m)).tocoo()
    ends, totals = np.stack([sums.row, sums.col], 1).astype(np.int32), sums.data
    if len(totals) > MAX_EDGES:
        means = totals / (sizes[ends[:, 0]] * sizes[ends[:, 1]])
        best = np.sort(np.argsort(-means, kind="stable")[:MAX_EDGES])
        ends, totals = ends[best], totals[best]
    return ends, totals


def _renamed(merges: Ints, names: Ints, following: int) -> Ints:
    """Merges of m things with the things' names for their numbers, and the m + j-th node as the following + j-th."""
    table = np.concatenate([names, np.arange(following, following + len(merges), dtype=np.int32)])
    renamed: Ints = table[merges].astype(np.int32)
    return renamed
