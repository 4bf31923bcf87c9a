"""Hold a part of the label vectors of ``glas`` and ``leml``, or of the classifiers of ``one_vs_rest`` and ``pdsparse``.

A shard answers for its own labels.
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np

from labelspace.cluster.serving.shards import MAX_ID, Extent, must_fit
from labelspace.errors import ModelError
from labelspace.estimator import Stateful, learned
from labelspace.estimator.state_constraints import are_sorted_spans, ids, must, part
from labelspace.features.sparse_matrix import scaled_values
from labelspace.index import Exact, Quantized
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.linear_scores import linear_topk
from labelspace.labels.masks import LastMask
from labelspace.training.linear_weights import LinearWeights
from labelspace.types import Bools, Csr, Doubles, Floats, Ints, TopK

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

    def extent(self) -> Extent:
        """Return the largest numbers in this shard."""
        return Extent(self.index_.dimension, int(self.index_.ids.max(initial=-1)))

    @cached_property
    def _of_mask(self) -> LastMask[VectorIndex]:
        return LastMask()

    def search(self, queries: Floats, k: int, allowed: Bools | None = None) -> TopK:
        """Return the k ids of largest score in this shard, among those that ``allowed`` (n_labels,) marks."""
        index = self.index_
        if allowed is not None:
            index = self._of_mask.get(allowed, lambda: self.index_.among(allowed))
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

    labels_: Ints = learned(ids("n_labels", below=MAX_ID))  # in order
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

    def extent(self) -> Extent:
        """Return the largest numbers in this shard."""
        return Extent(self.n_features, int(self.labels_.max(initial=-1)))

    def search(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        """Return the k labels of largest margin in this shard, among those that ``allowed`` (n_labels,) marks."""
        must_fit(X.shape[1] == self.n_features, self.n_features)
        own = self.classifiers_
        top = TopK.empty(X.shape[0], k)
        kept = np.ones(len(self.labels_), bool) if allowed is None else allowed[self.labels_]
        documents = CsrArrays(scaled_values(X, own.scales), X.indices, X.indptr)
        weights = CsrArrays(own.values, own.labels, own.starts)
        linear_topk(documents, 0, X.shape[0], weights, own.bias, kept, top.labels, top.scores)
        return TopK(np.where(top.labels >= 0, self.labels_[top.labels], -1), top.scores)

    def weights(self, features: Ints, wanted: Ints) -> tuple[Ints, Doubles]:
        """Return which of these labels are in this shard, and their weights (n_labels, n_features)."""
        must_fit(features.max(initial=-1) < self.n_features, self.n_features)
        here = wanted[np.isin(wanted, self.labels_)]
        at = np.searchsorted(self.labels_, here).astype(np.int32)
        return here, self.classifiers_.weights_of(features, at)
