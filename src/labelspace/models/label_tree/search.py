"""The search in label trees, among all labels or among those of a mask (step 6).

For at most ``FEW_LABELS`` allowed labels, the trees are copied without all other branches, and searched as a whole: the
answer is exact. For more, nodes without an allowed label get a bias so low that the search prunes them: the beam has
only nodes with allowed labels.
"""

from typing import NamedTuple, Self

import numpy as np

from labelspace.kernels.beam_search import NodeWeights, Search, Tree, beam_search
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.threads import run_blocks
from labelspace.labels.masks import FEW_LABELS, kept_entries
from labelspace.labels.tree import PRUNED_BIAS, PRUNED_LOG, TreeNodes, widen_beam
from labelspace.types import Bools, Csr, Floats, Ints, Longs, TopK

ROW_BLOCK = 64  # documents per task of a thread
LEAVES_PER_BEAM = 5  # leaves that the kernel keeps of each of several trees, for each node of the beam


class SearchedTrees(NamedTuple):
    """Trees with their classifiers, and how they are searched: what ``beam_search`` takes."""

    weights: NodeWeights
    tree: Tree
    roots: Ints
    settings: Search

    def search(self, X: Csr, scales: Floats, k: int) -> TopK:
        """Return the k best labels of each document."""
        scaled, out = CsrArrays(X.data * scales[X.indices], X.indices, X.indptr), TopK.empty(X.shape[0], k)

        def search(start: int, stop: int) -> None:
            beam_search(scaled, start, stop, *self, out.labels, out.scores)

        run_blocks(search, X.shape[0], ROW_BLOCK)
        return out

    def among(self, allowed: Bools) -> "AllowedTrees":
        """Return the trees with only the allowed labels."""
        label = self.tree.label
        kept = TreeNodes(*self.tree).above(allowed)
        n_labels = len(np.unique(label[kept & (label >= 0)]))
        if n_labels > FEW_LABELS:
            weights = self.weights._replace(bias=np.where(kept, self.weights.bias, PRUNED_BIAS))
            settings = self.settings._replace(min_log_activation=PRUNED_LOG)
            return AllowedTrees(self._replace(weights=weights, settings=settings), n_labels)
        kept[self.roots] = True
        return AllowedTrees(self._copied(kept), n_labels)

    def _copied(self, kept: Bools) -> Self:
        """Return the trees of some nodes, which are numbered anew; all of them are searched."""
        weights, tree = self.weights, self.tree
        entries, starts = kept_entries(weights.nodes, weights.starts, kept)
        number = np.concatenate([[0], np.cumsum(kept)]).astype(np.int32)  # of the next node that is kept
        label = tree.label[kept]
        n_inner, n_leaves = int((label < 0).sum()), int((label >= 0).sum())
        nodes = number[weights.nodes[entries]].astype(weights.nodes.dtype)
        return self._replace(
            weights=NodeWeights(weights.values[entries], nodes, starts, weights.bias[kept]),
            tree=Tree(number[tree.first_child[kept]], number[tree.last_child[kept]], label),
            roots=number[self.roots],
            settings=self.settings._replace(beam_size=max(n_inner, -(-n_leaves // LEAVES_PER_BEAM), 1)),
        )


class AllowedTrees(NamedTuple):
    """Trees with only the allowed labels."""

    trees: SearchedTrees
    n_labels: int  # allowed labels

    def search(self, X: Csr, scales: Floats, k: int) -> TopK:
        """Return the k best labels of each document, with a wider beam for documents that reach fewer."""
        wanted, widest = min(k, self.n_labels), len(self.trees.tree.label)

        def find(rows: Longs, beam_size: int) -> TopK:
            trees = self.trees._replace(settings=self.trees.settings._replace(beam_size=beam_size))
            return trees.search(X if len(rows) == X.shape[0] else X[rows], scales, k)

        return widen_beam(find, X.shape[0], k, wanted, self.trees.settings.beam_size, widest)
