"""Targets of the node classifiers: for each document, the nodes it is a training example of, and whether a positive."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from labelspace.kernels.beam_search import Tree
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.labels.tree import TreeNodes
from labelspace.models.hierarchicalxc.kernels import classifier_targets
from labelspace.training.sparse_layers import Batch
from labelspace.types import Csr, Floats, Ints

COUNTED_AT_ONCE = 4096  # documents whose targets are counted at once


@dataclass
class NodeTargets:
    """What the classifiers of a tree learn from the rows of Y."""

    tree: TreeNodes
    Y: Csr
    max_distance: int  # steps down from a node on the path to the farthest node that is trained
    leaf_of: Ints  # (n_labels,) -1 for a label that is not in the tree
    mark: Ints  # (n_nodes,) scratch

    @classmethod
    def build(cls, tree: TreeNodes, Y: Csr, off_path: int) -> Self:
        """The targets of a tree over columns of Y; documents are followed ``off_path`` steps off their paths."""
        leaf_of = np.full(Y.shape[1], -1, np.int32)
        leaves = np.flatnonzero(tree.label >= 0).astype(np.int32)
        leaf_of[tree.label[leaves]] = leaves
        return cls(tree, Y, off_path + 1, leaf_of, np.full(len(tree), -1, np.int32))

    def of_rows(self, rows: Ints) -> Batch:
        """A csr matrix (rows, n_nodes): for each row the nodes to train, with 1 for those on its paths, else 0."""
        tree = Tree(self.tree.first_child, self.tree.last_child, self.tree.label)
        targets: Batch = classifier_targets(
            csr_arrays(self.Y), rows, self.leaf_of, self.tree.parent, tree, self.max_distance, self.mark
        )
        return targets

    def log_odds(self) -> Floats:
        """The log-odds that a node is on the path of a document it is trained on. Shape (n_nodes,)."""
        positives, examples = np.zeros(len(self.tree)), np.zeros(len(self.tree))
        for start in range(0, self.Y.shape[0], COUNTED_AT_ONCE):
            rows = np.arange(start, min(start + COUNTED_AT_ONCE, self.Y.shape[0]), dtype=np.int32)
            targets, nodes, _ = self.of_rows(rows)
            examples += np.bincount(nodes, minlength=len(examples))
            positives += np.bincount(nodes, targets, minlength=len(examples))
        return np.asarray(np.log((positives + 0.5) / (examples - positives + 0.5)), np.float32)
