"""The search in label trees, among all labels or among those of a mask (step 6).

Of at most ``FEW_LABELS`` allowed labels, the trees without all other branches are copied, with the weights of their
nodes, and searched wholly: the answer is exact. Of more, nodes without an allowed label get a bias so low that the
search prunes them: the beam has allowed nodes alone.
"""

from typing import NamedTuple, Self

import numpy as np

from labelspace.kernels.beam_search import NodeWeights, Search, Tree, beam_search
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.threads import run_blocks
from labelspace.labels.masks import FEW_LABELS, kept_entries
from labelspace.labels.tree import PRUNED_BIAS, PRUNED_LOG, TreeNodes, widen_beam
from labelspace.types import Bools, Csr, Floats, Ints, Longs, TopK

ROW_BLOCK = 64  # documents per task
LEAVES_PER_BEAM = 5  # that the kernel keeps of each of several trees, times the beam size


class SearchedTrees(NamedTuple):
    """Trees with their classifiers, and how they are searched: what ``beam_search`` takes."""

    weights: NodeWeights
    tree: Tree
    roots: Ints
    settings: Search

    def search(self, X: Csr, scales: Floats, k: int) -> TopK:
        """The k best labels of each document."""
        scaled, out = CsrArrays(X.data * scales[X.indices], X.indices, X.indptr), TopK.empty(X.shape[0], k)

        def search(start: int, stop: int) -> None:
            beam_search(scaled, start, stop, *self, out.labels, out.scores)

        run_blocks(search, X.shape[0], ROW_BLOCK)
        return out

    def among(self, allowed: Bools) -> "AllowedTrees":
        """The trees with allowed labels alone."""
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
        """The trees of some nodes, which are numbered anew; all are searched."""
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
    """Trees with allowed labels alone."""

    trees: SearchedTrees
    n_labels: int  # allowed ones

    def search(self, X: Csr, scales: Floats, k: int) -> TopK:
        """The k best labels of each document; a beam of nodes with one label each may need to be wider for them."""
        wanted, widest = min(k, self.n_labels), len(self.trees.tree.label)

        def find(rows: Longs, beam_size: int) -> TopK:
            trees = self.trees._replace(settings=self.trees.settings._replace(beam_size=beam_size))
            return trees.search(X if len(rows) == X.shape[0] else X[rows], scales, k)

        return widen_beam(find, X.shape[0], k, wanted, self.trees.settings.beam_size, widest)
