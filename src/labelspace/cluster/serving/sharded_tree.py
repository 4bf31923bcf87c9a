"""Split ``label_tree`` into shards: the front end searches the top levels, shards search one level at a time below.

The beam is pruned among all nodes of a level. So each shard returns its best nodes of a level, as many as the beam has,
and the front end keeps the best of all for the next level: the beam is that of the whole model, and so are the labels
and scores. Leaves do not compete with inner nodes: the best leaves of each tree are merged at the end, by their log
scores, as the whole model would have ranked them.

The front end holds as many top levels as have at most the weights of an average shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.cluster.serving import sharding
from labelspace.cluster.serving.kernels import Scored, expand_nodes, merge_leaves
from labelspace.cluster.serving.sharding import Shards, Splitting
from labelspace.errors import ParameterError
from labelspace.estimator import Stateful, learned
from labelspace.estimator.parameter_constraints import real
from labelspace.estimator.state_constraints import IDS, are_sorted_spans, array, ids, must, offsets, plain
from labelspace.features.sparse_matrix import scaled_values
from labelspace.features.views import Views
from labelspace.kernels.beam_search import LinearTrees, NodeWeights, Search, Tree, advance_beams
from labelspace.kernels.csr_arrays import CsrArrays, csr_arrays
from labelspace.kernels.linear_scores import lookup_weights
from labelspace.kernels.quantize import Int8s
from labelspace.labels.masks import FEW_LABELS, LastMask, kept_entries
from labelspace.labels.tree import PRUNED_BIAS, PRUNED_LOG, TreeNodes, widen_beam
from labelspace.models.evidence import Evidence
from labelspace.models.label_tree import LabelTree
from labelspace.models.label_tree.search import LEAVES_PER_BEAM
from labelspace.models.partial_fit import NewDocuments
from labelspace.models.tree_paths import path_to
from labelspace.training.linear_weights import compact_ids
from labelspace.types import Bools, Csr, Floats, Ints, Longs, TopK

NO_NODE = sharding.MAX_ID - 1  # a number that no node has


class TreeShard(Stateful):
    """Some nodes of label trees: their classifiers, by feature, and their parents."""

    name = "nodes"

    power: float = learned(plain(real()))  # as ``LabelTree.power_of_gap``
    parents_: Ints = learned(ids("n_parents", below=NO_NODE))  # in order
    child_starts_: Longs = learned(offsets("n_parents", into="n_nodes"))
    nodes_: Ints = learned(ids("n_nodes", below=NO_NODE))  # their numbers in the whole model, in order
    labels_: Ints = learned(ids("n_nodes", below=sharding.MAX_ID, at_least=-1))  # of leaves, -1 for inner nodes
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

    def extent(self) -> sharding.Extent:
        """Return the largest numbers in this shard."""
        return sharding.Extent(self.n_features, int(self.labels_.max(initial=-1)), int(self.nodes_.max(initial=-1)))

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
        sharding.must_fit(X.shape[1] == self.n_features, self.n_features)
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
        sharding.must_fit(features.max(initial=-1) < self.n_features, self.n_features)
        here = nodes[np.isin(nodes, self.nodes_)]
        at = np.searchsorted(self.nodes_, here).astype(np.int32)
        out = np.empty((len(at), len(features)))
        ones = np.ones(self.n_features, np.float32)
        lookup_weights(features, at, CsrArrays(self.values_, self.own_, self.starts_), ones, out)
        return here, out.astype(np.int8)


def node_levels(model: LabelTree) -> Ints:
    """Return the number of steps from the root of its tree to each node. Shape (n_nodes,)."""
    return np.concatenate([tree.level for tree in model.label_trees()])


def in_front_end(model: LabelTree, n: int) -> Bools:
    """Mark the nodes that the front end of n shards holds: the inner nodes of the top levels. Shape (n_nodes,)."""
    inner = model.label_ < 0
    levels = node_levels(model)
    weights = sharding.id_counts(model.nodes_, len(levels))
    of_levels = np.cumsum(np.bincount(levels[inner], weights[inner]))
    depth = np.searchsorted(of_levels, len(model.values_) / n, side="right") - 1  # level 0 has no weights
    return inner & (levels <= depth)


def split_tree(model: LabelTree, n: int) -> Iterator[TreeShard]:
    """Split the nodes below the front end into n parts: adjacent nodes of each level, with about as many weights."""
    sharding.check_shards(n, int((model.label_ >= 0).sum()))
    levels = node_levels(model)
    parts = [list[Ints]() for _ in range(n)]
    below = ~in_front_end(model, n)
    weights = sharding.id_counts(model.nodes_, len(levels))
    for level in np.unique(levels[below]).tolist():
        nodes = np.flatnonzero(below & (levels == level)).astype(np.int32)
        for part, span in zip(parts, sharding.balanced_spans(weights[nodes] + 1, n), strict=True):
            part.append(nodes[span])
    for part in parts:
        yield TreeShard.of(model, np.sort(np.concatenate(part)))


def top_of_tree(model: LabelTree, n: int) -> LabelTree:
    """Return the model without the weights of nodes that n shards hold: the front end."""
    front_end = copy(model)
    kept, front_end.starts_ = kept_entries(model.nodes_, model.starts_, in_front_end(model, n))
    front_end.values_ = model.values_[kept]
    front_end.nodes_ = model.nodes_[kept]
    return front_end


class ShardedLabelTree(LabelTree):
    """Label trees whose lower levels are in shards."""

    shards: Shards
    depth: int  # the last level in the front end

    @classmethod
    def of(cls, front_end: LabelTree, shards: Shards) -> Self:
        """Connect the result of ``top_of_tree`` with its shards."""
        sharding.check_extents(shards, front_end.n_features_, front_end.n_labels_, len(front_end.label_))
        model = cls().set_params(**front_end.get_params())
        model.__dict__.update(front_end.__dict__)
        elsewhere = np.concatenate(shards.call("inner_nodes"))
        levels = node_levels(front_end)
        model.shards = shards
        model.depth = int(levels[elsewhere].min() - 1 if len(elsewhere) else levels[front_end.label_ < 0].max())
        return model

    def partial_fit(self, new: NewDocuments) -> Sequence[str]:
        """Refuse: weights in shards would stay as they are."""
        raise ParameterError("a whole model goes on learning, but this one is in shards; split it again after")

    def _predict(self, views: Views, k: int, allowed: Bools | None = None) -> TopK:
        trees = ShardedTrees(self._trees, self.depth, self.shards)
        if allowed is not None:
            trees = self.mask_cache.get(allowed, lambda: trees.among(allowed))
        return trees.search(self._documents(views), self.scales_, k)

    def explain(self, views: Views, labels: Ints) -> list[Evidence]:
        """Explain the scores of labels by the weights of the nodes on their paths, which shards have."""
        leaves = np.flatnonzero(np.isin(self.label_, labels)).tolist()
        paths = np.unique(np.concatenate([self.roots_, *(path_to(self.parents_, leaf) for leaf in leaves)]))
        with_paths = copy(self)
        features = np.unique(views[next(iter(self.widths_))].indices)
        found = self.shards.call("weights", features, paths.astype(np.int32))
        spans = [np.arange(self.starts_[each], self.starts_[each + 1]) for each in features]
        at = np.concatenate([*spans, np.zeros(0, np.int64)])  # of the front end's weights
        elsewhere = np.concatenate([weights for _, weights in found])  # (n_nodes, n_features)
        rows, columns = np.nonzero(elsewhere)
        nodes = np.concatenate([self.nodes_[at], np.concatenate([nodes for nodes, _ in found])[rows]])
        values = np.concatenate([self.values_[at], elsewhere[rows, columns]])
        n_here = self.starts_[features + 1] - self.starts_[features]
        by_feature = np.concatenate([np.repeat(features, n_here), features[columns]])
        order = np.lexsort((nodes, by_feature))
        with_paths.nodes_, with_paths.values_ = nodes[order].astype(self.nodes_.dtype), values[order]
        with_paths.starts_ = np.searchsorted(by_feature[order], np.arange(len(self.starts_))).astype(self.starts_.dtype)
        return LabelTree.explain(with_paths, views, labels)


@dataclass(frozen=True)
class ShardedTrees:
    """The top of trees, as ``advance_beams`` takes it, and the shards that have the lower levels."""

    trees: LinearTrees
    depth: int  # the last level in the front end
    shards: Shards
    mask: Any = None  # of the allowed nodes, from ``Shards.share``
    n_allowed: int | None = None  # labels

    def search(self, X: Csr, scales: Floats, k: int) -> TopK:
        """Return the k best labels of each document; the beam is widened if it finds too few of the allowed labels."""
        if self.n_allowed is None:
            return self._search(X, scales, k)
        trees = self.trees

        def find(rows: Longs, beam_size: int) -> TopK:
            wider = replace(self, trees=trees._replace(beam_size=beam_size))
            return wider._search(X if len(rows) == X.shape[0] else X[rows], scales, k)

        return widen_beam(find, X.shape[0], k, min(k, self.n_allowed), trees.beam_size, len(trees.label))

    def _search(self, X: Csr, scales: Floats, k: int) -> TopK:
        trees = self.trees
        out = TopK.empty(X.shape[0], k)
        scaled = sp.csr_matrix((scaled_values(X, scales), X.indices, X.indptr), shape=X.shape)
        beam_size = trees.beam_size
        size = k if len(trees.roots) == 1 else max(LEAVES_PER_BEAM * beam_size, 2 * k)  # as ``beam_search``
        beams = self._top_levels(scaled)
        leaves = list[Scored]()
        while beams.ids.size:
            found = self.shards.call("expand", scaled, beams, beam_size, size, mask=self.mask)
            leaves += [labels for _, labels in found]
            below = Scored.joined([nodes for nodes, _ in found])
            beams = Scored(*sharding.best(*below, beam_size)).trimmed()
        merge_leaves(*Scored.joined(leaves), size, out.labels, out.scores)
        return out

    def _top_levels(self, X: Csr) -> Scored:
        """Search the top levels; return all nodes that the beams of each tree have held, whose leaves are in shards."""
        trees = self.trees
        rows = csr_arrays(X)
        now = Scored.empty(len(trees.roots), X.shape[0], trees.beam_size)
        now.ids[:, :, 0] = trees.roots[:, None]
        now.scores[:, :, 0] = 0.0
        held = [now.trimmed()]
        for _ in range(self.depth):
            for beams, beam_scores in zip(*now, strict=True):  # of a tree
                advance_beams(rows, 0, X.shape[0], trees, beams, beam_scores)
            now.ids[np.isneginf(now.scores)] = -1  # nodes without an allowed label
            held.append(now.trimmed())
        ids, scores = Scored.joined(held)
        return Scored(np.ascontiguousarray(ids.transpose(1, 0, 2)), np.ascontiguousarray(scores.transpose(1, 0, 2)))

    def among(self, allowed: Bools) -> ShardedTrees:
        """Return trees of only the allowed labels; the choice of an exact search or a beam is that of one model."""
        trees = self.trees
        label, beam_size = trees.label, trees.beam_size
        kept = TreeNodes(trees.first_child, trees.last_child, label).above(allowed)
        leaves = label[kept & (label >= 0)]
        n_labels = len(np.unique(leaves))
        if n_labels <= FEW_LABELS:
            n_inner = int((kept & (label < 0)).sum())
            beam_size = max(n_inner, -(-len(leaves) // LEAVES_PER_BEAM), 1)
        pruned = trees._replace(bias=np.where(kept, trees.bias, PRUNED_BIAS), beam_size=beam_size)
        return replace(self, trees=pruned, mask=self.shards.share(kept), n_allowed=n_labels)


TREES = Splitting(split_tree, top_of_tree, ShardedLabelTree.of)
