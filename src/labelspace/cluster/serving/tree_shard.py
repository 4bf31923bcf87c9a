"""Hold a part of the nodes of label trees: a shard of ``label_tree``."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelspace.cluster.serving.kernels import Scored, expand_nodes
from labelspace.cluster.serving.shards import MAX_ID, Extent, must_fit
from labelspace.estimator import Stateful, learned
from labelspace.estimator.parameter_constraints import real
from labelspace.estimator.state_constraints import IDS, are_sorted_spans, array, ids, must, offsets, plain
from labelspace.kernels.beam_search import NodeWeights, Search, Tree
from labelspace.kernels.csr_arrays import CsrArrays, csr_arrays
from labelspace.kernels.linear_scores import lookup_weights
from labelspace.kernels.quantize import Int8s
from labelspace.labels.masks import LastMask, kept_entries
from labelspace.labels.tree import PRUNED_BIAS, PRUNED_LOG
from labelspace.models.label_tree import LabelTree
from labelspace.training.linear_weights import compact_ids
from labelspace.types import Bools, Csr, Floats, Ints, Longs

NO_NODE = MAX_ID - 1  # a number that no node has


class TreeShard(Stateful):
    """Some nodes of label trees: their classifiers, by feature, and their parents."""

    name = "nodes"

    power: float = learned(plain(real()))  # as ``LabelTree.power_of_gap``
    parents_: Ints = learned(ids("n_parents", below=NO_NODE))  # in order
    child_starts_: Longs = learned(offsets("n_parents", into="n_nodes"))
    nodes_: Ints = learned(ids("n_nodes", below=NO_NODE))  # their numbers in the whole model, in order
    labels_: Ints = learned(ids("n_nodes", below=MAX_ID, at_least=-1))  # of leaves, -1 for inner nodes
    bias_: Floats = learned(array("float32", "n_nodes"))
    # The weights: feature f has values_[starts_[f] : starts_[f + 1]] for the nodes own_, in units of the model's scale.
    values_: Int8s = learned(array("int8", "n_weights"))
    own_: npt.NDArray[Any] = learned(ids("n_weights", below="n_nodes", dtypes=IDS))
    starts_: Ints = learned(offsets("n_features", into="n_weights"))

    @classmethod
    def of(cls, model: LabelTree, nodes: Ints) -> Self:
        """Return a shard of some nodes of a model, in the order of their numbers, without roots."""
        shard = cls()
        of_shard = np.zeros(len(model.label_), bool)
        of_shard[nodes] = True
        parents, starts = np.unique(model.parents_[nodes], return_index=True)  # children are in the order of parents
        shard.power = model.power_of_gap
        shard.parents_ = parents
        shard.child_starts_ = np.append(starts, len(nodes))
        shard.nodes_ = nodes
        shard.labels_ = model.label_[nodes]
        shard.bias_ = model.bias_[nodes]
        kept, shard.starts_ = kept_entries(model.nodes_, model.starts_, of_shard)
        shard.values_ = model.values_[kept]
        shard.own_ = compact_ids(np.searchsorted(nodes, model.nodes_[kept]).astype(np.int32), len(nodes))
        return shard

    def check_state(self) -> None:
        """Check the order that the search needs: of nodes, parents, and a feature's nodes; children follow parents."""
        for listed in (self.parents_, self.nodes_):
            must(are_sorted_spans(listed, np.array([0, len(listed)])), "nodes in order")
        above = np.repeat(self.parents_, np.diff(self.child_starts_))
        must((above < self.nodes_).all(), "children with larger numbers than their parents")
        must(are_sorted_spans(self.own_, self.starts_), "the nodes of each feature in order")

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.starts_) - 1

    def extent(self) -> Extent:
        """Return the largest numbers in this shard."""
        return Extent(self.n_features, int(self.labels_.max(initial=-1)), int(self.nodes_.max(initial=-1)))

    @cached_property
    def _of_mask(self) -> LastMask[Floats]:
        return LastMask()

    @cached_property
    def _tree(self) -> Tree:
        """The children of each parent, and the labels of the nodes."""
        starts = self.child_starts_.astype(np.int32)
        return Tree(starts[:-1], starts[1:], self.labels_)

    @cached_property
    def _ended_parents(self) -> Ints:
        """The parents, with ``NO_NODE`` at the end."""
        return np.append(self.parents_, np.int32(NO_NODE))

    @cached_property
    def _ended_nodes(self) -> Ints:
        """The numbers of the nodes, with -1 at the end, where index -1 finds it."""
        return np.append(self.nodes_, np.int32(-1))

    def inner_nodes(self) -> Ints:
        """Return the numbers of the inner nodes in this shard."""
        return self.nodes_[self.labels_ < 0]

    def expand(
        self, X: Csr, beams: Scored, beam_size: int, max_leaves: int, allowed: Bools | None = None
    ) -> tuple[Scored, Scored]:
        """Find the best children in this shard of the nodes of beams: inner nodes by number, and leaves by label.

        X has values times the model's scales; only nodes that ``allowed`` (n_nodes of the model,) marks are found.
        """
        must_fit(X.shape[1] == self.n_features, self.n_features)
        n, n_trees, _ = beams.ids.shape
        inner, leaves = Scored.empty(n, n_trees, beam_size), Scored.empty(n, n_trees, max_leaves)
        at = np.searchsorted(self.parents_, beams.ids).astype(np.int32)
        own = np.where(self._ended_parents[at] == beams.ids, at, np.int32(-1))
        bias, lowest = self.bias_, -np.inf
        if allowed is not None:
            bias = self._of_mask.get(allowed, lambda: np.where(allowed[self.nodes_], self.bias_, PRUNED_BIAS))
            lowest = PRUNED_LOG
        weights = NodeWeights(self.values_, self.own_, self.starts_, bias)
        search = Search(beam_size, self.power, lowest)
        expand_nodes(csr_arrays(X), weights, self._tree, search, Scored(own, beams.scores), inner, leaves)
        return Scored(self._ended_nodes[inner.ids], inner.scores).trimmed(), leaves.trimmed()

    def weights(self, features: Ints, nodes: Ints) -> tuple[Ints, Int8s]:
        """Return which of these nodes are in this shard, and their weights (n_nodes, n_features)."""
        must_fit(features.max(initial=-1) < self.n_features, self.n_features)
        here = nodes[np.isin(nodes, self.nodes_)]
        at = np.searchsorted(self.nodes_, here).astype(np.int32)
        out = np.empty((len(at), len(features)))
        ones = np.ones(self.n_features, np.float32)
        lookup_weights(features, at, CsrArrays(self.values_, self.own_, self.starts_), ones, out)
        return here, out.astype(np.int8)
