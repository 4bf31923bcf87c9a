"""Linear classifiers, trained one by one, as one sparse matrix laid out for prediction."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.estimator.state_constraints import IDS, are_sorted_spans, array, ids, offsets
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.linear_scores import linear_topk, lookup_weights, scan_weights
from labelspace.kernels.quantize import Int8s, quantize_columns
from labelspace.kernels.threads import topk_in_blocks
from labelspace.labels.masks import FEW_LABELS, LastMask, kept_entries
from labelspace.training.losses import listed_probabilities
from labelspace.types import Bools, Csr, Doubles, Floats, Ints, Longs, TopK

ROW_BLOCK = 256  # documents per task
NO_WEIGHTS: tuple[Ints, Floats] = (np.zeros(0, np.int32), np.zeros(0, np.float32))  # the features and weights


def feature_major_weights(classifiers: list[tuple[Ints, Floats]], n_features: int, sizes: Longs | None = None) -> Csr:
    """Return the features and weights of classifiers as a matrix (n_features, n_classifiers) stored by feature.

    If an entry of the list contains several classifiers one after another, ``sizes`` has the number of weights of each.

    >>> one = (np.array([2], np.int32), np.array([0.5], np.float32))
    >>> feature_major_weights([one, NO_WEIGHTS], n_features=3).toarray().tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.5, 0.0]]
    """
    sizes = np.array([len(features) for features, _ in classifiers], np.int64) if sizes is None else sizes
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    features = np.concatenate([features for features, _ in classifiers])
    weights = np.concatenate([weights for _, weights in classifiers])
    return sp.csc_matrix((weights, features, indptr), shape=(n_features, len(sizes))).tocsr()


def id_type(n: int) -> type[np.generic]:
    """Return the type of ids below n: 16 bits where they suffice, which saves a quarter of such a matrix."""
    return np.uint16 if n <= 2**16 else np.int32


def compact_ids(given: Ints, n: int) -> npt.NDArray[Any]:
    """Return ids below n in as few bits as suffice."""
    return given.astype(id_type(n), copy=False)


@dataclass(frozen=True)
class LinearWeights:
    """Linear classifiers in 8 bits: feature f has scales[f] * values[starts[f] : starts[f + 1]] for those labels."""

    values: Annotated[Int8s, array("int8", "n_weights")]
    labels: Annotated[npt.NDArray[Any], ids("n_weights", below="n_labels", dtypes=IDS)]
    starts: Annotated[npt.NDArray[Any], offsets("n_features", into="n_weights")]
    scales: Annotated[Floats, array("float32", "n_features")]
    bias: Annotated[Floats, array("float32", "n_labels")]

    @classmethod
    def from_matrix(cls, W: Csr, bias: Floats) -> Self:
        """Round the weights (n_features, n_labels); weights that become 0 are left out.

        >>> LinearWeights.from_matrix(sp.csr_matrix([[0.5, -1.0]], dtype=np.float32), np.zeros(2)).values.tolist()
        [64, -127]
        """
        values, scales = quantize_columns(W.data, W.indptr)
        kept = np.flatnonzero(values)
        starts = np.searchsorted(kept, W.indptr).astype(np.int64)
        return cls(values[kept], compact_ids(W.indices[kept], W.shape[1]), starts, scales, bias.astype(np.float32))

    def insert_features(self, at: Longs) -> Self:
        """Return the classifiers with features without weights inserted before these features.

        >>> LinearWeights.from_matrix(sp.csr_matrix([[0.5, -1.0]]), np.zeros(2)).insert_features([1]).starts.tolist()
        [0, 2, 2]
        """
        return replace(self, starts=np.insert(self.starts, at, self.starts[at]), scales=np.insert(self.scales, at, 0))

    def to_matrix(self) -> Csr:
        """Return the weights as a matrix (n_features, n_labels)."""
        weights = self.values * np.repeat(self.scales, np.diff(self.starts))
        shape = (len(self.scales), len(self.bias))
        return sp.csr_matrix((weights, self.labels.astype(np.int32), self.starts), shape=shape)

    def weights_of(self, features: Ints, labels: Ints) -> Doubles:
        """Return the weights of some labels for some features. Shape (n_labels, n_features)."""
        out = np.empty((len(labels), len(features)))
        find = lookup_weights if self._in_order else scan_weights
        find(features, labels, CsrArrays(self.values, self.labels, self.starts), self.scales, out)
        return out

    @cached_property
    def _in_order(self) -> bool:
        """Return whether the labels of each feature are in order, so that a label can be found by bisection."""
        return are_sorted_spans(self.labels, self.starts)

    def in_order(self) -> Self:
        """Return the weights with the labels of each feature in order."""
        if self._in_order:
            return self
        shape = (len(self.scales), len(self.bias))
        sorted_ = sp.csr_matrix((self.values, self.labels.astype(np.int32), self.starts), shape=shape)
        sorted_.sort_indices()
        return replace(self, values=sorted_.data, labels=compact_ids(sorted_.indices, len(self.bias)))

    def with_bias(self, bias: Floats) -> Self:
        """Return the classifiers with another bias; if it has more entries, there are new classifiers at the end.

        >>> one = LinearWeights.from_matrix(sp.csr_matrix([[0.5], [-1.0]], dtype=np.float32), np.zeros(1))
        >>> one.with_bias(np.array([0.0, -1.0], np.float32)).to_matrix().shape
        (2, 2)
        """
        return replace(self, bias=bias, labels=compact_ids(self.labels, len(bias)))

    def rank(self, X: Csr, seen: Bools, k: int) -> TopK:
        """Return the k best of the seen labels by the margin X W + bias; a score is 1 / (1 + exp(-2 margin))."""
        documents = CsrArrays(X.data * self.scales[X.indices], X.indices, X.indptr)
        weights = CsrArrays(self.values, self.labels, self.starts)
        parts = (documents, weights, self.bias, seen)
        return listed_probabilities(topk_in_blocks(linear_topk, *parts, n=X.shape[0], k=k, block=ROW_BLOCK), slope=2)

    def of_labels(self, labels: Longs) -> Self:
        """Return the classifiers of some labels, sorted, which are numbered from 0.

        >>> both = LinearWeights.from_matrix(sp.csr_matrix([[0.5, -1.0]], dtype=np.float32), np.array([0.0, 2.0]))
        >>> one = both.of_labels(np.array([1]))
        >>> one.values.tolist(), one.labels.tolist(), one.bias.tolist()
        ([-127], [0], [2.0])
        """
        mask = np.zeros(len(self.bias), bool)
        mask[labels] = True
        kept, starts = kept_entries(self.labels, self.starts, mask)
        numbers = np.searchsorted(labels, self.labels[kept]).astype(self.labels.dtype)
        return replace(self, values=self.values[kept], labels=numbers, starts=starts, bias=self.bias[labels])

    def rank_allowed(self, X: Csr, allowed: Bools, k: int, cache: LastMask[Self]) -> TopK:
        """Rank the allowed labels; if they are few, ``cache`` keeps their classifiers."""
        labels = np.flatnonzero(allowed)
        if len(labels) > FEW_LABELS:
            return self.rank(X, allowed, k)
        few = cache.get(allowed, lambda: self.of_labels(labels))
        top = few.rank(X, np.ones(len(labels), bool), k)
        listed = top.labels >= 0
        top.labels[listed] = labels[top.labels[listed]]
        return top


def with_bias_column(X: Csr) -> Csr:
    """Append a column of ones to X, for the bias; indices keep 32 bits.

    >>> with_bias_column(sp.csr_matrix([[0.0, 2.0]])).toarray().tolist()
    [[0.0, 2.0, 1.0]]
    """
    stacked = sp.hstack([X, np.ones((X.shape[0], 1), np.float32)], format="csr", dtype=np.float32)
    indices, indptr = stacked.indices.astype(np.int32), stacked.indptr.astype(X.indptr.dtype)
    return sp.csr_matrix((stacked.data, indices, indptr), shape=stacked.shape)
