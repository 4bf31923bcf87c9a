"""Split label vectors and linear classifiers into shards, with the methods of one process answered by all shards."""

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
    """Split the label vectors into n parts with about as many labels each."""
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
    """Return the model without label vectors: the front end, for any number of shards."""
    front_end = copy(model)
    front_end.index_ = Exact(np.zeros((0, model.index_.dimension)), [])
    return front_end


def with_sharded_vectors(front_end: Vectors, shards: Shards) -> Vectors:
    """Connect the result of ``without_vectors`` with its shards."""
    check_extents(shards, front_end.index_.dimension, front_end.n_labels_)
    front_end.index_ = ShardedIndex(front_end.index_.dimension, np.concatenate(shards.call("ids")), shards)
    return front_end


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
        return merged(self._shards.call("search", queries, k, mask=self._mask), k)

    def among(self, allowed: Bools) -> Self:
        """Return an index of only the allowed ids."""
        return type(self)(self.dimension, self._ids[allowed[self._ids]], self._shards, self._shards.share(allowed))

    def _vectors(self, at: Longs) -> Floats:
        wanted = self._ids[at]
        out = np.empty((len(wanted), self.dimension), np.float32)
        for here, vectors in self._shards.call("vectors", wanted):
            out[np.searchsorted(wanted, here)] = vectors
        return out

    def _add(self, ids: Ints, vectors: Floats) -> None:
        raise ParameterError("labels are added to a whole model, but this one is in shards; add them, and split again")

    def _remove(self, ids: Ints) -> None:
        raise ParameterError("labels are removed from a whole model, but this one is in shards; split it again after")


def split_classifiers(model: Linear, n: int) -> Iterator[LinearShard]:
    """Split the classifiers of labels with training documents into n parts with about as many weights each."""
    labels = np.flatnonzero(model.seen_).astype(np.int32)
    check_shards(n, len(labels))
    weights = id_counts(model.classifiers_.labels, model.n_labels_)[labels]
    cuts = balanced_cuts(weights + 1, n)
    for start, stop in zip(cuts, cuts[1:], strict=False):
        yield LinearShard.of(model.classifiers_, labels[start:stop])


def without_classifiers(model: Linear, n: int) -> Linear:
    """Return the model without weights: the front end, for any number of shards."""
    front_end = copy(model)
    own = model.classifiers_
    front_end.classifiers_ = replace(
        own, values=own.values[:0], labels=own.labels[:0], starts=np.zeros_like(own.starts), bias=own.bias
    )
    return front_end


def with_sharded_classifiers(front_end: Linear, shards: Shards) -> Linear:
    """Connect the result of ``without_classifiers`` with its shards."""
    check_extents(shards, len(front_end.classifiers_.scales), front_end.n_labels_)
    own = {field.name: getattr(front_end.classifiers_, field.name) for field in fields(LinearWeights)}
    front_end.classifiers_ = ShardedClassifiers(**own, shards=shards)
    return front_end


@dataclass(frozen=True)
class ShardedClassifiers(LinearWeights):
    """Linear classifiers whose weights are in shards, which have only labels with training documents."""

    shards: Shards
    mask: Any = None  # of the allowed labels, from ``Shards.share``

    def rank(self, X: Csr, seen: Bools, k: int) -> TopK:
        """Return the k best allowed labels, merged by margin, since different margins may round to the same score."""
        top = merged(self.shards.call("search", X, k, mask=self.mask), k)
        listed = top.labels >= 0
        top.scores[listed] = sigmoid(2 * top.scores[listed])
        return top

    def rank_allowed(self, X: Csr, allowed: Bools, k: int, cache: LastMask[Self]) -> TopK:
        """Return the k best labels among the allowed ones."""
        some = cache.get(allowed, lambda: replace(self, mask=self.shards.share(allowed)))
        return some.rank(X, allowed, k)

    def weights_of(self, features: Ints, labels: Ints) -> Doubles:
        """Return the weights of some labels for some features. Shape (n_labels, n_features)."""
        out = np.zeros((len(labels), len(features)))
        for here, weights in self.shards.call("weights", features, np.unique(labels)):
            for label, own in zip(here.tolist(), weights, strict=True):
                out[labels == label] = own
        return out
