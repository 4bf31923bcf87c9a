"""Label vectors and linear classifiers in shards: the same methods as in one process, answered by all shards."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from labelspace.cluster.serving.label_shards import IndexShard, LinearShard
from labelspace.cluster.serving.shards import Shards, balanced_cuts, check_extents, check_shards, id_counts, merged
from labelspace.errors import ParameterError
from labelspace.index import Exact, Index, Quantized
from labelspace.labels.masks import LastMask
from labelspace.models.glas.model import Glas
from labelspace.models.leml.model import Leml
from labelspace.models.one_vs_rest import OneVsRest
from labelspace.models.pdsparse.model import PDSparse
from labelspace.training.linear_weights import LinearWeights
from labelspace.training.losses import sigmoid
from labelspace.types import Bools, Csr, Doubles, Floats, Ints, Longs, TopK

Vectors = Glas | Leml
Linear = OneVsRest | PDSparse


def split_vectors(model: Vectors, n: int) -> Iterator[IndexShard]:
    """The label vectors in n parts of about as many labels."""
    index = model.index_
    if not isinstance(index, Exact | Quantized):
        raise ParameterError(
            f"an index that is split must be exact or quantized, but is {index.kind}; train with --set index=auto, or "
            "use --replicas"
        )
    if isinstance(model, Leml) and model.sparse:
        raise ParameterError("leml is split without its sparse part, but has one; train with --set sparse=false")
    check_shards(n, len(index))
    cuts = balanced_cuts(np.ones(len(index)), n)
    for start, stop in zip(cuts, cuts[1:], strict=False):
        allowed = np.zeros(model.n_labels_, bool)
        allowed[index.ids[start:stop]] = True
        yield IndexShard.of(index.among(allowed))


def without_vectors(model: Vectors, n: int) -> Vectors:
    """The same without label vectors: what the door holds, whatever the number of shards."""
    door = copy(model)
    door.index_ = Exact(np.zeros((0, model.index_.dimension)), [])
    return door


def with_sharded_vectors(door: Vectors, shards: Shards) -> Vectors:
    """What ``without_vectors`` gave, with its shards."""
    check_extents(shards, door.index_.dimension, door.n_labels_)
    door.index_ = ShardedIndex(door.index_.dimension, np.concatenate(shards.ask("ids")), shards)
    return door


class ShardedIndex(Index):
    """An index whose vectors are in shards."""

    name = "sharded"

    def __init__(self, dimension: int, ids: Ints, shards: Shards, mask: Any = None) -> None:  # noqa: ANN401 - as given
        super().__init__("sharded", "in shards", dimension)
        self._ids, self._shards, self._mask = ids, shards, mask

    @property
    def ids(self) -> Ints:
        """The ids in all shards, in order."""
        return self._ids

    def _search(self, queries: Floats, k: int) -> TopK:
        return merged(self._shards.ask("search", queries, k, mask=self._mask), k)

    def among(self, allowed: Bools) -> Self:
        """The same without the ids that are not allowed."""
        return type(self)(self.dimension, self._ids[allowed[self._ids]], self._shards, self._shards.share(allowed))

    def _vectors(self, at: Longs) -> Floats:
        wanted = self._ids[at]
        out = np.empty((len(wanted), self.dimension), np.float32)
        for here, vectors in self._shards.ask("vectors", wanted):
            out[np.searchsorted(wanted, here)] = vectors
        return out

    def _add(self, ids: Ints, vectors: Floats) -> None:
        raise ParameterError("labels are added to a whole model, but this one is in shards; add them, and split again")

    def _remove(self, ids: Ints) -> None:
        raise ParameterError("labels are removed from a whole model, but this one is in shards; split it again after")


def split_classifiers(model: Linear, n: int) -> Iterator[LinearShard]:
    """The classifiers of labels with training documents in n parts with about as many weights each."""
    labels = np.flatnonzero(model.seen_).astype(np.int32)
    check_shards(n, len(labels))
    weights = id_counts(model.classifiers_.labels, model.n_labels_)[labels]
    cuts = balanced_cuts(weights + 1, n)
    for start, stop in zip(cuts, cuts[1:], strict=False):
        yield LinearShard.of(model.classifiers_, labels[start:stop])


def without_classifiers(model: Linear, n: int) -> Linear:
    """The same without weights: what the door holds, whatever the number of shards."""
    door, own = copy(model), model.classifiers_
    door.classifiers_ = replace(
        own, values=own.values[:0], labels=own.labels[:0], starts=np.zeros_like(own.starts), bias=own.bias
    )
    return door


def with_sharded_classifiers(door: Linear, shards: Shards) -> Linear:
    """What ``without_classifiers`` gave, with its shards."""
    check_extents(shards, len(door.classifiers_.scales), door.n_labels_)
    own = {field.name: getattr(door.classifiers_, field.name) for field in fields(LinearWeights)}
    door.classifiers_ = ShardedClassifiers(**own, shards=shards)
    return door


@dataclass(frozen=True)
class ShardedClassifiers(LinearWeights):
    """Linear classifiers whose weights are in shards, which have the labels with training documents alone."""

    shards: Shards
    mask: Any = None  # of the labels that are allowed, as ``Shards.share`` gave it

    def rank(self, X: Csr, seen: Bools, k: int) -> TopK:
        """The k best labels, of those that are allowed: merged by margin, since scores may round to the same."""
        top = merged(self.shards.ask("search", X, k, mask=self.mask), k)
        listed = top.labels >= 0
        top.scores[listed] = sigmoid(2 * top.scores[listed])
        return top

    def rank_allowed(self, X: Csr, allowed: Bools, k: int, cache: LastMask[Self]) -> TopK:
        """``rank`` among the allowed labels."""
        some = cache.get(allowed, lambda: replace(self, mask=self.shards.share(allowed)))
        return some.rank(X, allowed, k)

    def weights_of(self, features: Ints, labels: Ints) -> Doubles:
        """The weights of some labels for some features. Shape (n_labels, n_features)."""
        out = np.zeros((len(labels), len(features)))
        for here, weights in self.shards.ask("weights", features, np.unique(labels)):
            for label, own in zip(here.tolist(), weights, strict=True):
                out[labels == label] = own
        return out
