"""List the methods that can be split into shards, with how to split them and how to connect the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from labelspace.cluster.serving.label_shards import IndexShard, LinearShard
from labelspace.cluster.serving.sharded_labels import (
    split_classifiers,
    split_vectors,
    with_sharded_classifiers,
    with_sharded_vectors,
    without_classifiers,
    without_vectors,
)
from labelspace.cluster.serving.sharded_tree import ShardedLabelTree, split_tree, top_of_tree
from labelspace.cluster.serving.shards import Shards
from labelspace.cluster.serving.tree_shard import TreeShard
from labelspace.errors import ModelError, ParameterError
from labelspace.models.base import Model

Shard = TreeShard | IndexShard | LinearShard


class Splitting(NamedTuple):
    """The functions that split a method."""

    split: Callable[[Any, int], Iterator[Shard]]
    front_end: Callable[[Any, int], Model]  # the model without the parts of n shards
    connected: Callable[[Any, Shards], Model]  # the front end with its shards, which answers as the whole model


VECTORS = Splitting(split_vectors, without_vectors, with_sharded_vectors)
CLASSIFIERS = Splitting(split_classifiers, without_classifiers, with_sharded_classifiers)
METHODS = {
    "label_tree": Splitting(split_tree, top_of_tree, ShardedLabelTree.of),
    "glas": VECTORS,
    "leml": VECTORS,
    "one_vs_rest": CLASSIFIERS,
    "pdsparse": CLASSIFIERS,
}
SHARDS = {kind.name: kind for kind in (TreeShard, IndexShard, LinearShard)}


def splitting_of(model: Model) -> Splitting:
    """Return how a model is split into shards; raise ParameterError if it cannot be split."""
    if model.name not in METHODS:
        raise ParameterError(
            f"a model that is split into shards must be of {', '.join(METHODS)}, but is of {model.name}; train one of "
            "these, or use --replicas"
        )
    return METHODS[model.name]


def shard_class(name: str) -> type[Shard]:
    """Return the class of a saved shard.

    >>> shard_class("nodes").__name__
    'TreeShard'
    """
    if name not in SHARDS:
        raise ModelError(f"a saved shard must be one of {', '.join(SHARDS)}, but is {name!r}; split the model again")
    return SHARDS[name]
