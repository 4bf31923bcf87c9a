"""A binary tree over labels by complete-link clustering; labels that share documents are similar.

Complete link joins, again and again, the two clusters whose least similar labels are most similar. Labels that never
co-occur have similarity 0, and so have all clusters with two such labels: positive similarities are as sparse as the
given matrix, and the exact tree needs no more memory than the matrix, whatever the number of labels. In practice most
clusters end tied at 0; ``ties`` says in which order they are joined then.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from labelspace.kernels.ancestors import node_levels
from labelspace.labels.statistics import cooccurrence_counts, similarity
from labelspace.labels.tree import TreeNodes, is_degenerate
from labelspace.models.hierarchicalxc import complete_link as kernels
from labelspace.models.hierarchicalxc.average_link import average_linkage
from labelspace.types import Csr, Doubles, Floats, Ints, Longs

MEASURES = ("counts", "iou")
TIES = ("average", "order")
MAX_EDGES = 20_000_000  # of average link, with about 80 bytes each: bounds the memory


@dataclass(frozen=True)
class Dendrogram:
    """A binary tree over n labels as a list of merges. Label i is node i; merge j makes node n + j of two earlier ones.

    ``similarity`` is that of the two least similar labels of a node: 0 if two of its labels share no document. The
    similarity never rises from a node to its parent.

    >>> S = sp.csr_matrix(np.array([[0, 3, 1, 0], [3, 0, 2, 0], [1, 2, 0, 0], [0, 0, 0, 0]], np.float32))
    >>> tree = complete_link(S)
    >>> tree.children.tolist(), tree.similarity.tolist()
    ([[0, 1], [2, 4], [3, 5]], [3.0, 1.0, 0.0])
    >>> tree.height(), tree.depths().tolist()
    (3, [3, 3, 2, 1])
    """

    children: Ints  # (n - 1, 2)
    similarity: Floats  # (n - 1,)

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return len(self.children) + 1

    def depths(self) -> Ints:
        """Return the number of merges from the root to each label. Shape (n,)."""
        n, root = self.n_labels, 2 * self.n_labels - 2
        parents = np.full(root + 1, -1, np.int32)  # of the nodes in reverse order: parents before their children
        parents[root - self.children] = (root - np.arange(n, root + 1))[:, None]
        return np.asarray(node_levels(parents)[::-1][:n])

    def height(self) -> int:
        """Return the largest depth of a label."""
        return int(self.depths().max())


def label_similarity(Y: Csr, measure: str) -> Csr:
    """Return the similarity of labels: the number of shared documents, ``counts``, or intersection over union, ``iou``.

    >>> Y = sp.csr_matrix(np.array([[1, 1], [1, 0], [1, 1]], np.float32))
    >>> float(label_similarity(Y, "counts")[0, 1]), round(float(label_similarity(Y, "iou")[0, 1]), 3)
    (2.0, 0.667)
    """
    return cooccurrence_counts(Y) if measure == "counts" else similarity(Y, "jaccard")


def cluster_labels(Y: Csr, measure: str, ties: str, balance: str) -> TreeNodes:
    """Build the complete-link tree over the columns of Y; rebalance it "always", "never", or with "auto" if a chain."""
    tree = complete_link(label_similarity(Y, measure), ties)
    if balance == "always" or (balance == "auto" and is_degenerate(tree.n_labels, tree.height())):
        tree = rebalanced(tree)
    return to_nodes(tree)


def complete_link(S: Csr, ties: str = "average") -> Dendrogram:
    """Build the complete-link tree of labels with symmetric sparse similarities S (n, n); the diagonal is ignored.

    Among equally similar clusters, those with the smallest label ids are joined first. Clusters with labels that share
    nothing are all tied at 0. With ``ties="order"`` they too are joined in the order of their smallest label ids, which
    gives a chain. With ``"average"`` they are joined by average link while any similarity remains, and then the two
    smallest clusters each time; equal averages are taken in a fixed order. Above MAX_EDGES pairs of such clusters, only
    the pairs that are most similar on average are considered.

    >>> S = sp.csr_matrix(np.array([[0, 3, 0, 0], [3, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], np.float32))
    >>> complete_link(S).children.tolist()
    [[0, 1], [2, 4], [3, 5]]
    """
    n = S.shape[0]
    S = sp.csr_matrix(S, dtype=np.float32, copy=True)
    S.sum_duplicates()
    S.data[np.repeat(np.arange(n), np.diff(S.indptr)) == S.indices] = 0
    S.eliminate_zeros()
    upper = sp.triu(S, 1, format="csr").tocoo()
    pairs, values = (upper.row.astype(np.int64) << 32) | upper.col, upper.data
    order = np.argsort(-values, kind="stable")
    starts = S.indptr.astype(np.int64)
    positive, link_similarity, nodes = kernels.complete_linkage(S.data, S.indices, starts, values[order], pairs[order])
    del S, upper, order  # average link may need the memory
    tops = nodes[nodes >= 0]  # the clusters that are tied at 0, by their smallest label ids
    if ties == "order":
        ranks = np.arange(1, len(tops), dtype=np.int32)  # one after another
        rest = np.stack([np.where(ranks > 1, len(tops) + ranks - 2, 0), ranks], 1)
    else:
        sizes = kernels.subtree_sizes(positive, np.ones(n, np.int64))[tops]
        rest = _average_link_merges(_cluster_of_labels(positive, tops, n), sizes, pairs, values)
    children = np.concatenate([positive, _renumbered(rest, tops, n + len(positive))])
    children.sort(axis=1)
    return Dendrogram(children, np.concatenate([link_similarity, np.zeros(len(rest), np.float32)]))


def rebalanced(dendrogram: Dendrogram) -> Dendrogram:
    """Rebuild every heavy path, from a node to its larger child: a low tree with the same order of leaves.

    The subtrees off such a path become the leaves of a tree that halves their labels best at each node. The height is
    at most about 3 log2(n), for a chain log2(n) + 2. A node has the similarity of the smallest node that had all its
    labels before, so any two of them are at least as similar. A tree that would not become lower is returned unchanged.

    >>> chain = Dendrogram(np.array([[0, 1], [4, 2], [5, 3]], np.int32), np.array([3, 2, 1], np.float32))
    >>> tree = rebalanced(chain)
    >>> tree.children.tolist(), tree.similarity.tolist(), tree.height()
    ([[2, 3], [0, 1], [5, 4]], [1.0, 3.0, 1.0], 2)
    """
    if dendrogram.n_labels == 1:
        return dendrogram
    folded = Dendrogram(*kernels.balance_heavy_paths(dendrogram.children, dendrogram.similarity))
    return folded if folded.height() < dendrogram.height() else dendrogram


def to_nodes(dendrogram: Dendrogram) -> TreeNodes:
    """Return the tree with breadth-first node ids, for training and search. A single label is a leaf below a root.

    >>> nodes = to_nodes(Dendrogram(np.array([[0, 2], [1, 3]], np.int32), np.array([2, 1], np.float32)))
    >>> nodes.first_child.tolist(), nodes.last_child.tolist(), nodes.label.tolist()
    ([1, 0, 3, 0, 0], [3, 0, 5, 0, 0], [-1, 1, -1, 0, 2])
    """
    n = dendrogram.n_labels
    if n == 1:
        first, last, label = np.array([[1, 0], [2, 0], [-1, 0]], np.int32)
        return TreeNodes(first, last, label, np.full(2, np.nan, np.float32))
    order = kernels.breadth_first_order(dendrogram.children)
    inner = order >= n
    first = np.where(inner, 2 * np.cumsum(inner) - 1, 0).astype(np.int32)
    last = np.where(inner, first + 2, 0).astype(np.int32)
    link_similarity = np.append(dendrogram.similarity, np.float32(np.nan))[np.where(inner, order - n, -1)]
    return TreeNodes(first, last, np.where(inner, -1, order).astype(np.int32), link_similarity)


def _cluster_of_labels(merges: Ints, tops: Ints, n: int) -> Ints:
    """Return the cluster of each of n labels after some merges, as an index into ``tops``."""
    root = np.arange(n + len(merges), dtype=np.int32)
    root[merges] = np.arange(n, n + len(merges), dtype=np.int32)[:, None]
    while not np.array_equal(root, higher := root[root]):
        root = higher
    index = np.empty(n + len(merges), np.int32)
    index[tops] = np.arange(len(tops))
    return index[root[:n]]


def _average_link_merges(cluster: Ints, sizes: Longs, pairs: Longs, values: Floats) -> Ints:
    """Merge clusters by average link, and then the remaining ones by their number of labels."""
    m = len(sizes)
    ends, totals = _cluster_edges(cluster, sizes, pairs, values)
    merges, means = average_linkage(ends, totals, sizes.copy())
    order = np.argsort(-means, kind="stable")
    node = np.arange(m + len(merges), dtype=np.int32)
    node[m + order] = np.arange(m, m + len(merges), dtype=np.int32)
    linked = node[merges[order]]
    tops = np.setdiff1d(np.arange(m + len(linked), dtype=np.int32), linked)
    rest = kernels.merge_smallest_first(kernels.subtree_sizes(linked, sizes)[tops])
    return np.concatenate([linked, _renumbered(rest, tops, m + len(linked))])


def _cluster_edges(cluster: Ints, sizes: Longs, pairs: Longs, values: Floats) -> tuple[Ints, Doubles]:
    """Return the pairs of clusters with any similarity (n_edges, 2), and the sums of similarities of their labels."""
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


def _renumbered(merges: Ints, nodes: Ints, first_new: int) -> Ints:
    """Renumber merges of m nodes: ``nodes`` for the ids 0..m - 1, and ``first_new`` + j for the id m + j."""
    table = np.concatenate([nodes, np.arange(first_new, first_new + len(merges), dtype=np.int32)])
    return np.asarray(table[merges].astype(np.int32))
