"""Split label vectors (``glas``, ``leml``) and linear classifiers (``one_vs_rest``, ``pdsparse``) into shards.

A shard answers for its own labels; the front end has the methods of one process, answered by all shards.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from labelspace.cluster.serving import sharding
from labelspace.cluster.serving.sharding import Shards, Splitting
from labelspace.errors import ModelError, ParameterError
from labelspace.estimator import Stateful, learned
from labelspace.estimator.state_constraints import are_sorted_spans, ids, must, part
from labelspace.features.sparse_matrix import scaled_values
from labelspace.index import Exact, Index, Quantized
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.linear_scores import linear_topk
from labelspace.labels.masks import LastMask
from labelspace.models.glas.model import Glas
from labelspace.models.leml.model import Leml
from labelspace.models.one_vs_rest import OneVsRest
from labelspace.models.pdsparse.model import PDSparse
from labelspace.training.linear_weights import LinearWeights
from labelspace.training.losses import sigmoid
from labelspace.types import Bools, Csr, Doubles, Floats, Ints, Longs, TopK

VectorIndex = Exact | Quantized
"""An index that can be copied in part."""


def vector_index_class(name: str) -> type[VectorIndex]:
    """Return the class of an index by its name."""
    for kind in (Exact, Quantized):
        if kind.name == name:
            return kind
    raise ModelError(f"the index of a shard must be exact or quantized, but is {name!r}; split the model again")


class IndexShard(Stateful):
    """Some label vectors of an index."""

    name = "vectors"

    index_: VectorIndex = learned(part(vector_index_class))

    @classmethod
    def of(cls, index: VectorIndex) -> Self:
        """Return a shard of a part of an index, which is an index itself."""
        shard = cls()
        shard.index_ = index
        return shard

    def extent(self) -> sharding.Extent:
        """Return the largest numbers in this shard."""
        return sharding.Extent(self.index_.dimension, int(self.index_.ids.max(initial=-1)))

    @cached_property
    def _of_mask(self) -> LastMask[VectorIndex]:
        return LastMask()

    def search(self, queries: Floats, k: int, allowed: Bools | None = None) -> TopK:
        """Return the k ids of largest score in this shard, among those that ``allowed`` (n_labels,) marks."""
        index = self.index_
        if allowed is not None:
            index = self._of_mask.get(allowed, lambda: self.index_.part(allowed))
        return index.search(queries, k) if len(index) else TopK.empty(len(queries), k)

    def ids(self) -> Ints:
        """Return the ids in this shard, in order."""
        return np.sort(self.index_.ids)

    def vectors(self, wanted: Ints) -> tuple[Ints, Floats]:
        """Return which of these ids are in this shard, and their vectors."""
        here = wanted[np.isin(wanted, self.index_.ids)]
        return here, self.index_.vectors(here)


class LinearShard(Stateful):
    """The linear classifiers of some labels."""

    name = "classifiers"

    labels_: Ints = learned(ids("n_labels", below=sharding.MAX_ID))  # in order
    classifiers_: LinearWeights = learned(part(LinearWeights, n_labels="n_labels"))

    @classmethod
    def of(cls, classifiers: LinearWeights, labels: Ints) -> Self:
        """Return a shard of the classifiers of some labels, in order."""
        shard = cls()
        shard.labels_ = labels
        shard.classifiers_ = classifiers.of_labels(labels.astype(np.int64))
        return shard

    def check_state(self) -> None:
        """Check that labels are in order, since they are found by bisection."""
        must(are_sorted_spans(self.labels_, np.array([0, len(self.labels_)])), "labels in order")

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.classifiers_.scales)

    def extent(self) -> sharding.Extent:
        """Return the largest numbers in this shard."""
        return sharding.Extent(self.n_features, int(self.labels_.max(initial=-1)))

    def search(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        """Return the k labels of largest margin in this shard, among those that ``allowed`` (n_labels,) marks."""
        sharding.must_fit(X.shape[1] == self.n_features, self.n_features)
        own = self.classifiers_
        top = TopK.empty(X.shape[0], k)
        kept = np.ones(len(self.labels_), bool) if allowed is None else allowed[self.labels_]
        documents = CsrArrays(scaled_values(X, own.scales), X.indices, X.indptr)
        weights = CsrArrays(own.values, own.labels, own.starts)
        linear_topk(documents, 0, X.shape[0], weights, own.bias, kept, top.labels, top.scores)
        return TopK(np.where(top.labels >= 0, self.labels_[top.labels], -1), top.scores)

    def weights(self, features: Ints, wanted: Ints) -> tuple[Ints, Doubles]:
        """Return which of these labels are in this shard, and their weights (n_labels, n_features)."""
        sharding.must_fit(features.max(initial=-1) < self.n_features, self.n_features)
        here = wanted[np.isin(wanted, self.labels_)]
        at = np.searchsorted(self.labels_, here).astype(np.int32)
        return here, self.classifiers_.weights_of(features, at)


Vectors = Glas | Leml
Linear = OneVsRest | PDSparse


def split_vectors(model: Vectors, n: int) -> Iterator[IndexShard]:
    """Split the label vectors into n parts with about as many labels each."""
    index = model.index_
    if not isinstance(index, Exact | Quantized):
        remedy = "train with --set index=auto, or use --replicas"
        raise ParameterError(f"an index that is split must be exact or quantized, but is {index.kind}; {remedy}")
    if isinstance(model, Leml) and model.sparse:
        raise ParameterError("leml is split without its sparse part, but has one; train with --set sparse=false")
    sharding.check_shards(n, len(index))
    for span in sharding.balanced_spans(np.ones(len(index)), n):
        allowed = np.zeros(model.n_labels_, bool)
        allowed[index.ids[span]] = True
        yield IndexShard.of(index.part(allowed))


def without_vectors(model: Vectors, n: int) -> Vectors:
    """Return the model without label vectors: the front end, for any number of shards."""
    front_end = copy(model)
    front_end.index_ = Exact(np.zeros((0, model.index_.dimension)), [])
    return front_end


def with_sharded_vectors(front_end: Vectors, shards: Shards) -> Vectors:
    """Connect the result of ``without_vectors`` with its shards."""
    sharding.check_extents(shards, front_end.index_.dimension, front_end.n_labels_)
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
        return sharding.merged(self._shards.call("search", queries, k, mask=self._mask), k)

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
    sharding.check_shards(n, len(labels))
    weights = sharding.id_counts(model.classifiers_.labels, model.n_labels_)[labels]
    for span in sharding.balanced_spans(weights + 1, n):
        yield LinearShard.of(model.classifiers_, labels[span])


def without_classifiers(model: Linear, n: int) -> Linear:
    """Return the model without weights: the front end, for any number of shards."""
    front_end = copy(model)
    own = model.classifiers_
    starts = np.zeros_like(own.starts)
    front_end.classifiers_ = replace(own, values=own.values[:0], labels=own.labels[:0], starts=starts)
    return front_end


def with_sharded_classifiers(front_end: Linear, shards: Shards) -> Linear:
    """Connect the result of ``without_classifiers`` with its shards."""
    sharding.check_extents(shards, len(front_end.classifiers_.scales), front_end.n_labels_)
    own = {field.name: getattr(front_end.classifiers_, field.name) for field in fields(LinearWeights)}
    front_end.classifiers_ = ShardedClassifiers(**own, shards=shards)
    return front_end


@dataclass(frozen=True)
class ShardedClassifiers(LinearWeights):
    """Linear classifiers whose weights are in shards, which have only labels with training documents."""

    shards: Shards
    mask: Any = None  # of the allowed labels, from ``Shards.share``

    def in_order(self) -> Self:
        """Refuse: only ``partial_fit`` calls this, and weights in shards would stay as they are."""
        raise ParameterError("a whole model goes on learning, but this one is in shards; split it again after")

    def rank(self, X: Csr, seen: Bools, k: int) -> TopK:
        """Return the k best allowed labels, merged by margin, since different margins may round to the same score."""
        top = sharding.merged(self.shards.call("search", X, k, mask=self.mask), k)
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


VECTORS = Splitting(split_vectors, without_vectors, with_sharded_vectors)
CLASSIFIERS = Splitting(split_classifiers, without_classifiers, with_sharded_classifiers)
