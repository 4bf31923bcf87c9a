"""The search in label trees, among all labels or among those of a mask (step 6), and why a label has its score.

For at most ``FEW_LABELS`` allowed labels, the trees are copied without all other branches, and searched as a whole: the
answer is exact. For more, nodes without an allowed label get a bias so low that the search prunes them: the beam has
only nodes with allowed labels.

A score is the mean over trees of p = exp(sum of g(z_n)) over the nodes n of a path, z_n = b_n + sum of w_nf x_f. At a
node, feature f has the share w_nf x_f times the slope of g between b_n and z_n: integrated gradients along the line
from the empty document, in closed form. These add up to log p; see ``models.tree_paths`` for the mean.
"""

from functools import partial
from typing import NamedTuple, Self

import numpy as np

from labelspace.kernels.beam_search import LinearTrees, beam_search
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.linear_scores import lookup_weights
from labelspace.kernels.threads import run_blocks
from labelspace.labels.masks import FEW_LABELS, kept_entries
from labelspace.labels.tree import PRUNED_BIAS, PRUNED_LOG, TreeNodes, widen_beam
from labelspace.models.evidence import Evidence, Numbers
from labelspace.models.tree_paths import TreePath, labels_below, log_sigmoid, margin_shares, mean_of_paths, path_to
from labelspace.types import Bools, Csr, Doubles, Floats, Ints, Longs, TopK

ROW_BLOCK = 64  # documents per task of a thread
LEAVES_PER_BEAM = 5  # leaves that the kernel keeps of each of several trees, for each node of the beam


def search_trees(trees: LinearTrees, X: Csr, scales: Floats, k: int) -> TopK:
    """Return the k best labels of each document."""
    scaled, out = CsrArrays(X.data * scales[X.indices], X.indices, X.indptr), TopK.empty(X.shape[0], k)

    def search(start: int, stop: int) -> None:
        beam_search(scaled, start, stop, trees, out.labels, out.scores)

    run_blocks(search, X.shape[0], ROW_BLOCK)
    return out


class AllowedTrees(NamedTuple):
    """Trees with only the allowed labels."""

    trees: LinearTrees
    n_labels: int  # allowed labels

    @classmethod
    def of(cls, trees: LinearTrees, allowed: Bools) -> Self:
        """Return trees with only the allowed labels (n_labels,)."""
        label = trees.label
        kept = TreeNodes(trees.first_child, trees.last_child, label).above(allowed)
        n_labels = len(np.unique(label[kept & (label >= 0)]))
        if n_labels > FEW_LABELS:
            bias = np.where(kept, trees.bias, PRUNED_BIAS)
            return cls(trees._replace(bias=bias, min_log_activation=PRUNED_LOG), n_labels)
        kept[trees.roots] = True
        return cls(_copied(trees, kept), n_labels)

    def search(self, X: Csr, scales: Floats, k: int) -> TopK:
        """Return the k best labels of each document, with a wider beam for documents that reach fewer."""
        wanted, widest = min(k, self.n_labels), len(self.trees.label)

        def find(rows: Longs, beam_size: int) -> TopK:
            trees = self.trees._replace(beam_size=beam_size)
            return search_trees(trees, X if len(rows) == X.shape[0] else X[rows], scales, k)

        return widen_beam(find, X.shape[0], k, wanted, self.trees.beam_size, widest)


def _copied(trees: LinearTrees, kept: Bools) -> LinearTrees:
    """Return the trees of some nodes, which are numbered anew; all of them are searched."""
    entries, starts = kept_entries(trees.nodes, trees.starts, kept)
    number = np.concatenate([[0], np.cumsum(kept)]).astype(np.int32)  # of the next node that is kept
    label = trees.label[kept]
    n_inner, n_leaves = int((label < 0).sum()), int((label >= 0).sum())
    return trees._replace(
        values=trees.values[entries],
        nodes=number[trees.nodes[entries]].astype(trees.nodes.dtype),
        starts=starts,
        bias=trees.bias[kept],
        first_child=number[trees.first_child[kept]],
        last_child=number[trees.last_child[kept]],
        label=label,
        roots=number[trees.roots],
        beam_size=max(n_inner, -(-n_leaves // LEAVES_PER_BEAM), 1),
    )


def path_evidence(trees: LinearTrees, scales: Floats, parents: Ints, X: Csr, label: int, view: str) -> Evidence:
    """Explain the score of a label for one document X (1, n_features) by its paths in the trees."""
    paths = []
    for leaf in np.flatnonzero(trees.label == label).tolist():
        nodes = path_to(parents, leaf)
        weights = np.empty((len(nodes), X.nnz))
        lookup_weights(X.indices, nodes, CsrArrays(trees.values, trees.nodes, trees.starts), scales, weights)
        parts, b = weights * X.data, trees.bias[nodes].astype(np.float64)
        shares = margin_shares(partial(_log_activation, power=trees.power), b, b + parts.sum(axis=1), parts)
        paths.append(TreePath(nodes, *shares))
    below = partial(labels_below, trees.first_child, trees.last_child, trees.label)
    return mean_of_paths(paths, len(trees.roots), X.indices, view, below)


def _log_activation(margin: Numbers, power: float) -> Doubles:
    """Return g of margins: see ``kernels.beam_search.log_activation``."""
    if not power:
        return log_sigmoid(margin)
    return np.asarray(-((np.logaddexp(0.0, 2.0 - 2.0 * margin) / 2.0) ** power))
