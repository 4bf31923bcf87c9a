"""Label trees: Parabel (Prabhu et al., WWW 2018), Bonsai (Khandagale et al., 2020) and PLT as settings of one trainer.

1. Describe each label by the sum of its documents' features.
2. Halve the labels by balanced 2-means until a part holds at most ``max_leaf``; keep every depth that makes
   ``branching`` children a node. The labels hang below the last.
3. A document reaches a node if it carries a label below it. For every node, fit one linear classifier for each child
   on the documents that reach the node: those that reach the child against the others.
4. Set weights below ``threshold`` in size to zero.
5. To tag a document, walk down from the root and keep the ``beam`` best nodes of each level; a step multiplies the
   score by exp(-gap ** power), where the gap is max(0, 1 - margin), smoothed. Several trees are averaged.

Where we differ, and why: all nodes are columns of one matrix, a node's children side by side, so that the search reads
one stretch of memory a feature and needs no index of its own. The papers' max(0, 1 - margin) makes all margins above 1
equal; the smooth log(1 + exp(2 - 2 margin)) / 2 ranks them too.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelspace.estimator import above, at_least, one_of, whole
from labelspace.features.scaling import unit_rows
from labelspace.kernels.scaling import unit_values
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.tree import beam_search, train_children
from labelspace.labels.clustering import balanced_tree, instance_features
from labelspace.models.base import Aids, Model
from labelspace.training.weights import NOTHING, by_features
from labelspace.types import Csr, Floats, Ints, Longs, TopK

ROW_BLOCK = 64  # documents a task
BIAS = 1.0


class LabelTree(Model):
    """Linear classifiers along a tree of labels, searched with a beam.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = LabelTree(max_leaf=10).fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "label_tree"
    title = "Parabel, Bonsai, PLT: linear classifiers along a tree of labels"
    choose_when = "labels are thousands to millions"
    rules = {
        "branching": whole(2),
        "max_leaf": whole(2),
        "trees": whole(1),
        "C": above(0),
        "threshold": at_least(0),
        "tolerance": above(0),
        "max_passes": whole(1),
        "beam": whole(1),
        "power": above(0),
        "normalize": one_of(True, False),
        "seed": whole(0),
    }
    state = ("weights_", "bias_", "first_child_", "last_child_", "label_", "roots_")

    weights_: Csr  # (n_features, n_nodes), by features
    bias_: Floats  # (n_nodes,)
    first_child_: Ints  # (n_nodes,) the children of node i are the nodes first_child_[i] to last_child_[i] - 1
    last_child_: Ints
    label_: Ints  # (n_nodes,) the label of a leaf, -1 for an inner node
    roots_: Ints  # (trees,)

    def __init__(
        self,
        branching: int = 16,
        max_leaf: int = 100,
        trees: int = 1,
        C: float = 1.0,
        threshold: float = 0.1,
        tolerance: float = 0.1,
        max_passes: int = 20,
        beam: int = 10,
        power: float = 3.0,
        normalize: bool = True,
        seed: int = 0,
    ) -> None:
        self.branching = branching
        self.max_leaf = max_leaf
        self.trees = trees
        self.C = C
        self.threshold = threshold
        self.tolerance = tolerance
        self.max_passes = max_passes
        self.beam = beam
        self.power = power
        self.normalize = normalize
        self.seed = seed

    def _fit(self, X: Csr, Y: Csr, aids: Aids) -> None:
        X = unit_rows(X) if self.normalize else X
        seen = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1])).astype(np.int32)
        documents = Y[:, seen].tocsc()
        Z = instance_features(X, documents)  # step 1
        forest = [self._grow(Z, tree) for tree in range(self.trees)]  # step 2
        offsets = np.cumsum([0, *(tree.size for tree in forest)]).astype(np.int32)
        self.roots_ = offsets[:-1]
        self.first_child_ = np.concatenate([tree.first_child + at for tree, at in zip(forest, offsets, strict=False)])
        self.last_child_ = np.concatenate([tree.last_child + at for tree, at in zip(forest, offsets, strict=False)])
        self.label_ = np.concatenate([tree.named(seen) for tree in forest])
        self.bias_ = np.zeros(offsets[-1], np.float32)
        self.weights_ = self._train(X, documents, forest, offsets, aids)  # steps 3 and 4

    def _grow(self, Z: Csr, number: int) -> Tree:
        order, depths = balanced_tree(Z, self.max_leaf, self.seed * 1009 + number)
        skip = max(1, round(np.log2(self.branching)))
        return Tree(order, depths[len(depths) - 1 :: -skip][::-1] if len(depths) > 1 else depths)

    def _train(self, X: Csr, documents: sp.csc_matrix, forest: list[Tree], offsets: Ints, aids: Aids) -> Csr:
        """The classifiers of all nodes of all trees, as the columns of one matrix."""
        kept = [NOTHING] * int(offsets[-1])
        tasks = [(t, node) for t, tree in enumerate(forest) for node in tree.by_size()]
        columns = [documents[:, tree.order] for tree in forest]

        def train(start: int, stop: int) -> None:
            place = np.full(X.shape[1], -1, np.int32)
            for t, node in tasks[start:stop]:
                tree = forest[t]
                rows, positives, ends = tree.reached(columns[t], node)
                features, weights, stops, biases = train_children(
                    X.data, X.indices, X.indptr, rows, positives, ends, BIAS, float(self.C), float(self.tolerance),
                    self.max_passes, float(self.threshold), self.seed + int(offsets[t]) + node, place,
                )  # fmt: skip
                first = int(offsets[t] + tree.first_child[node])
                self.bias_[first : first + len(biases)] = biases
                for child in range(len(biases)):
                    span = slice(stops[child], stops[child + 1])
                    kept[first + child] = (features[span], weights[span])

        run_blocks(train, len(tasks), 1, lambda done, total: aids.progress("nodes", done, total))
        return by_features(kept, X.shape[1])

    def _predict(self, X: Csr, k: int) -> TopK:
        values = unit_values(X.data, X.indptr) if self.normalize else X.data
        out = TopK.empty(X.shape[0], k)
        W = self.weights_

        def search(start: int, stop: int) -> None:
            beam_search(
                values, X.indices, X.indptr, start, stop, W.data, W.indices, W.indptr, self.bias_, self.first_child_,
                self.last_child_, self.label_, self.roots_, self.beam, float(self.power), out.labels, out.scores,
            )  # fmt: skip  # step 5

        run_blocks(search, X.shape[0], ROW_BLOCK)
        return out


class Tree:
    """A tree over labels in the order of its leaves; node 0 is the root, the leaves are the last nodes."""

    def __init__(self, order: Ints, levels: list[Longs]) -> None:
        self.order = order
        n = len(order)
        bounds = [np.array([0, n]), *(level for level in levels if len(level) > 2), np.arange(n + 1)]
        offsets = np.cumsum([0, *(len(level) - 1 for level in bounds)])
        self.size = int(offsets[-1])
        self.first_label = np.concatenate([level[:-1] for level in bounds])
        self.last_label = np.concatenate([level[1:] for level in bounds])
        below = [offsets[i + 1] + np.searchsorted(bounds[i + 1], bounds[i]) for i in range(len(bounds) - 1)]
        none = np.zeros(n, np.int64)
        self.first_child = np.concatenate([*(children[:-1] for children in below), none]).astype(np.int32)
        self.last_child = np.concatenate([*(children[1:] for children in below), none]).astype(np.int32)

    def named(self, seen: Ints) -> Ints:
        """The label of each node, -1 for an inner one."""
        return np.concatenate([np.full(self.size - len(self.order), -1, np.int32), seen[self.order]])

    def by_size(self) -> list[int]:
        """Inner nodes, those with the most labels first: a long task begun last would keep one thread waiting."""
        inner = self.size - len(self.order)
        order = np.argsort(self.first_label[:inner] - self.last_label[:inner], kind="stable")
        return [int(node) for node in order]

    def reached(self, documents: sp.csc_matrix, node: int) -> tuple[Ints, Ints, Longs]:
        """The documents that reach a node, and which of them reach each of its children."""

        def below(at: int) -> Ints:
            start, stop = documents.indptr[self.first_label[at]], documents.indptr[self.last_label[at]]
            found = documents.indices[start:stop]
            return found if self.last_label[at] - self.first_label[at] == 1 else np.unique(found)

        rows = np.arange(documents.shape[0], dtype=np.int32) if node == 0 else below(node)
        parts = [np.searchsorted(rows, below(child)) for child in range(self.first_child[node], self.last_child[node])]
        ends = np.cumsum([0, *map(len, parts)]).astype(np.int64)
        return rows, np.concatenate(parts).astype(np.int32), ends
