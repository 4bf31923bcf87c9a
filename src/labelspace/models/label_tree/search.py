"""The search in label trees, among all labels or among those of a mask (step 6).

Of at most ``FEW_LABELS`` allowed labels, the trees without all other branches are copied, with the weights of their
nodes, and searched wholly: the answer is exact. Of more, nodes without an allowed label get a bias so low that the
search prunes them: the beam has allowed nodes alone.
"""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from labelspace.kernels.beam_search import beam_search
from labelspace.kernels.quantize import Int8s
from labelspace.kernels.threads import run_blocks
from labelspace.labels.masks import FEW_LABELS, kept_entries
from labelspace.labels.tree import PRUNED_BIAS, PRUNED_LOG, TreeNodes, widen_beam
from labelspace.types import Bools, Csr, Floats, Ints, Longs, TopK

ROW_BLOCK = 64  # documents per task
LEAVES_PER_BEAM = 5  # that the kernel keeps of each of several trees, times the beam size


class SearchedTrees(NamedTuple):
    """Trees as ``beam_search`` takes them."""

    values: Int8s
    nodes: npt.NDArray[Any]
    starts: Ints
    bias: Floats
    first_child: Ints
    last_child: Ints
    label: Ints
    roots: Ints
    beam_size: int
    power: float
    min_log_activation: float = -np.inf

    def search(self, X: Csr, scales: Floats, k: int) -> TopK:
        """The k best labels of each document."""
        scaled, out = X.data * scales[X.indices], TopK.empty(X.shape[0], k)

        def search(start: int, stop: int) -> None:
            beam_search(scaled, X.indices, X.indptr, start, stop, *self, out.labels, out.scores)

        run_blocks(search, X.shape[0], ROW_BLOCK)
        return out

    def among(self, allowed: Bools) -> "AllowedTrees":
        """The trees with allowed labels alone."""
        kept = TreeNodes(self.first_child, self.last_child, self.label).above(allowed)
        n_labels = len(np.unique(self.label[kept & (self.label >= 0)]))
        if n_labels > FEW_LABELS:
            bias = np.where(kept, self.bias, PRUNED_BIAS)
            return AllowedTrees(self._replace(bias=bias, min_log_activation=PRUNED_LOG), n_labels)
        kept[self.roots] = True
        return AllowedTrees(self._copied(kept), n_labels)

    def _copied(self, kept: Bools) -> Self:
        """The trees of some nodes, which are numbered anew; all are searched."""
        entries, starts = kept_entries(self.nodes, self.starts, kept)
        number = np.concatenate([[0], np.cumsum(kept)]).astype(np.int32)  # of the next node that is kept
        label = self.label[kept]
        n_inner, n_leaves = int((label < 0).sum()), int((label >= 0).sum())
        return self._replace(
            values=self.values[entries],
            nodes=number[self.nodes[entries]].astype(self.nodes.dtype),
            starts=starts,
            bias=self.bias[kept],
            first_child=number[self.first_child[kept]],
            last_child=number[self.last_child[kept]],
            label=label,
            roots=number[self.roots],
            beam_size=max(n_inner, -(-n_leaves // LEAVES_PER_BEAM), 1),
        )


class AllowedTrees(NamedTuple):
    """Trees with allowed labels alone."""

    trees: SearchedTrees
    n_labels: int  # allowed ones

    def search(self, X: Csr, scales: Floats, k: int) -> TopK:
        """The k best labels of each document; a beam of nodes with one label each may need to be wider for them."""
        wanted, widest = min(k, self.n_labels), len(self.trees.label)

        def find(rows: Longs, beam_size: int) -> TopK:
            trees = self.trees._replace(beam_size=beam_size)
            return trees.search(X if len(rows) == X.shape[0] else X[rows], scales, k)

        return widen_beam(find, X.shape[0], k, wanted, self.trees.beam_size, widest)
