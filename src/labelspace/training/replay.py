"""What networks keep to go on learning: a sample of documents to replay, and how large their gradients were.

Steps on new documents alone would unlearn the others, so a part of the documents of each step is replayed, from a
sample of all documents that were learned before. And steps go on from where the training ended: row-wise Adagrad
divides by the root of its sum of squared gradients, which is kept for each feature and label, so that what many
documents taught moves little. The gradients are sums over documents: these do not depend on the size of a batch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.errors import ParameterError
from labelspace.estimator.parameter_constraints import integer
from labelspace.estimator.state_constraints import IDS, are_sorted_spans, array, ids, must, offsets, plain
from labelspace.kernels.quantize import Int8s, quantize_columns
from labelspace.training.linear_weights import compact_ids
from labelspace.training.losses import sigmoid_inplace
from labelspace.types import Bools, Csr, Floats, Ints, Longs, Rng

Halves = npt.NDArray[np.float16]

MAX_DOCUMENTS = 1000  # that are kept
MAX_SHARE = 0.1  # of the size of a model that they may have
LARGEST_ROOT = 60_000.0  # 16 bits hold no larger number
REPLAYED = 0.5  # documents replayed per new one
MIN_REPLAYED = 32  # so that a single new document does not decide on a step alone
MAX_LEARNED = 10**8  # documents that are counted: more would change a sample by nothing
CALIBRATED_ON = 300  # replayed documents by which the bias of a new label is found
BISECTIONS = 18  # which find a bias to about a thousandth


class Replay(NamedTuple):
    """A random sample of the documents that were learned, with all their labels; values are in 8 bits."""

    values: Annotated[Int8s, array("int8", "n_values")]
    scales: Annotated[Floats, array("float32", "n_documents")]
    columns: Annotated[npt.NDArray[Any], ids("n_values", below="n_features", dtypes=IDS)]
    starts: Annotated[npt.NDArray[Any], offsets("n_documents", into="n_values")]
    labels: Annotated[npt.NDArray[Any], ids("n_pairs", below="n_labels", dtypes=IDS)]
    label_starts: Annotated[npt.NDArray[Any], offsets("n_documents", into="n_pairs")]
    n_learned: Annotated[int, plain(integer(0, at_most=MAX_LEARNED))]  # documents that this is a sample of

    def check_state(self) -> None:
        """Check that each feature and label of a document occurs once, in order, and how many documents there are."""
        must(are_sorted_spans(self.columns, self.starts), "sorted features in a document")
        must(are_sorted_spans(self.labels, self.label_starts), "sorted labels of a document")
        must(len(self.scales) <= min(self.n_learned, MAX_DOCUMENTS), "no more documents than were learned")

    @property
    def n(self) -> int:
        """The number of documents that are kept."""
        return len(self.scales)

    @classmethod
    def of(cls, X: Csr, Y: Csr, max_bytes: int, rng: Rng) -> Self:
        """Draw documents of X (n, n_features) with labels Y (n, n_labels), as many as fit into ``max_bytes``."""
        order = rng.permutation(X.shape[0])[:MAX_DOCUMENTS]
        return cls._packed(X[order], Y[order], min(X.shape[0], MAX_LEARNED), max_bytes)

    @classmethod
    def _packed(cls, X: Csr, Y: Csr, n_learned: int, max_bytes: int) -> Self:
        """Pack the first documents, as many as fit; those that follow are left out."""
        id_bytes = 2 if max(X.shape[1], Y.shape[1]) <= 2**16 else 4
        sizes = np.diff(X.indptr) * (1 + id_bytes) + np.diff(Y.indptr) * id_bytes + 12
        n = int(np.searchsorted(np.cumsum(sizes), max_bytes, side="right"))
        X, Y = X[:n].sorted_indices(), Y[:n].sorted_indices()
        starts, label_starts = X.indptr.astype(np.int32), Y.indptr.astype(np.int32)
        values, scales = quantize_columns(X.data, starts)
        columns, labels = compact_ids(X.indices, X.shape[1]), compact_ids(Y.indices, Y.shape[1])
        return cls(values, scales, columns, starts, labels, label_starts, n_learned)

    def documents(self, n_features: int, n_labels: int) -> tuple[Csr, Csr]:
        """Return the documents and their labels as X (n, n_features) and Y (n, n_labels)."""
        values = self.values * np.repeat(self.scales, np.diff(self.starts))
        X = sp.csr_matrix((values, self.columns.astype(np.int32), np.array(self.starts)), (self.n, n_features))
        ones = np.ones(len(self.labels), np.float32)
        Y = sp.csr_matrix((ones, self.labels.astype(np.int32), np.array(self.label_starts)), (self.n, n_labels))
        return X, Y

    def with_documents(self, X: Csr, Y: Csr, max_bytes: int, rng: Rng) -> Self:
        """Return a sample of these and further documents, in which each of them is equally likely."""
        n, known, n_learned = X.shape[0], self.n, self.n_learned + X.shape[0]
        size = min(MAX_DOCUMENTS, n_learned) if known == self.n_learned else known
        n_new = int(rng.hypergeometric(n, self.n_learned, size)) if size else 0
        kept = rng.permutation(known)[: size - n_new]
        taken = rng.permutation(n)[:n_new]
        old_X, old_Y = self.documents(X.shape[1], Y.shape[1])
        mixed = rng.permutation(len(kept) + len(taken))
        X, Y = sp.vstack([old_X[kept], X[taken]], "csr"), sp.vstack([old_Y[kept], Y[taken]], "csr")
        return self._packed(X[mixed], Y[mixed], min(n_learned, MAX_LEARNED), max_bytes)

    def insert_features(self, columns: Longs, n_features: int) -> Self:
        """Return the documents after features were inserted before these columns; there are then ``n_features``."""
        moved = self.columns + np.searchsorted(np.sort(columns), self.columns, side="right")
        return self._replace(columns=compact_ids(moved.astype(np.int32), n_features))


class Squares(NamedTuple):
    """Sums of squared gradients, each the mean over the weights of a feature, of a label, and of a label's bias."""

    features: Floats
    labels: Floats
    bias: Floats


class GradientRoots(NamedTuple):
    """The roots of sums of squared gradients, which are themselves sums over the documents of a batch."""

    features: Annotated[Halves, array("float16", "n_features", at_least=0)]
    labels: Annotated[Halves, array("float16", "n_labels", at_least=0)]
    bias: Annotated[Halves, array("float16", "n_labels", at_least=0)]
    is_new: Annotated[Bools, array("bool", "n_labels")]  # labels without documents in the training

    @classmethod
    def of(cls, squares: Squares, batch_size: int, is_new: Bools) -> Self:
        """Return the roots for squares of gradients that are means over the documents of a batch."""
        features, labels, bias = (_roots(values, batch_size) for values in squares)
        labels[is_new], bias[is_new] = _usual(labels[~is_new]), _usual(bias[~is_new])
        return cls(features, labels, bias, is_new)

    def squares(self, batch_size: int) -> Squares:
        """Return the sums of squares of gradients that are means over the documents of a batch, in new arrays."""
        return Squares(*((roots.astype(np.float32) / np.float32(batch_size)) ** 2 for roots in self[:3]))

    def with_squares(self, features: Ints, squares: Squares, batch_size: int) -> Self:
        """Return the roots with those of some features, and of all labels, replaced."""
        new, labels, bias = (_roots(values, batch_size) for values in squares)
        of_features = np.array(self.features)
        of_features[features] = new
        return self._replace(features=of_features, labels=labels, bias=bias)

    def with_labels(self, n: int) -> Self:
        """Return the roots for n labels; a new one starts with those of a usual label."""
        is_new = np.append(self.is_new, np.ones(n - len(self.is_new), bool))
        return self._replace(labels=_extended(self.labels, n), bias=_extended(self.bias, n), is_new=is_new)

    def insert_features(self, columns: Longs) -> Self:
        """Return the roots with those of features that no document had, before these columns."""
        return self._replace(features=np.insert(self.features, columns, 0))


def _roots(squares: Floats, batch_size: int) -> Halves:
    return np.minimum(np.sqrt(squares) * np.float32(batch_size), LARGEST_ROOT).astype(np.float16)


def _usual(roots: Halves) -> np.float16:
    known = roots[roots > 0]
    return np.float16(np.median(known) if len(known) else 0.0)


def _extended(roots: Halves, n: int) -> Halves:
    return np.append(roots, np.full(n - len(roots), _usual(roots), np.float16))


class Examples(NamedTuple):
    """New and replayed documents to make steps on; columns of X are only those of the features that occur."""

    X: Csr  # (n, n_occurring)
    Y: Csr  # (n, n_labels)
    features: Ints  # (n_occurring,)
    known: Csr  # (n, n_labels) ones where it is known of an incomplete document whether it has a label
    are_complete: Bools  # (n,)
    n_new: int  # these come first

    @classmethod
    def of(cls, X: Csr, Y: Csr, rejected: Csr, are_complete: Bools, replay: Replay) -> Self:
        """Put the new documents and all documents to replay together."""
        replayed_X, replayed_Y = replay.documents(*(X.shape[1], Y.shape[1]))
        known = sp.vstack([Y + rejected, sp.csr_matrix(replayed_Y.shape, dtype=np.float32)], "csr")
        stacked = sp.vstack([X, replayed_X], "csr")
        features, local = np.unique(stacked.indices, return_inverse=True)
        shape = (stacked.shape[0], len(features))
        own = sp.csr_matrix((stacked.data, local.astype(np.int32), stacked.indptr.astype(np.int32)), shape)
        complete = np.append(are_complete, np.ones(replay.n, bool))
        return cls(own, sp.vstack([Y, replayed_Y], "csr"), features.astype(np.int32), known, complete, X.shape[0])

    def batches(self, epochs: int, batch_size: int, rng: Rng) -> Iterator[tuple[Ints, float]]:
        """Yield the rows of each batch, and a factor of the learning rate, which falls linearly from 1 to 0.

        An epoch has the new documents, and a share of replayed ones, in random order.
        """
        n_others = self.X.shape[0] - self.n_new
        n_replayed = min(n_others, max(MIN_REPLAYED, round(REPLAYED * self.n_new)))
        n = self.n_new + n_replayed
        starts = range(0, n, batch_size)
        for epoch in range(epochs):
            replayed = self.n_new + rng.permutation(n_others)[:n_replayed]
            order = rng.permutation(np.append(np.arange(self.n_new), replayed)).astype(np.int32)
            for at, start in enumerate(starts):
                yield order[start : start + batch_size], 1.0 - (epoch * len(starts) + at) / (epochs * len(starts))

    def to_calibrate(self) -> slice:
        """Return the rows by which the biases of new labels are found: the new documents, and a sample of all."""
        return slice(0, self.n_new + CALIBRATED_ON)

    def biases(self, scores: Floats, labels: Longs, counts: Longs | None, n_documents: int) -> Floats:
        """Return the ``expected_biases`` of some labels by their scores of the rows ``to_calibrate``.

        Without ``counts`` (n_labels,) of all documents, the number of those with a label is estimated.
        """
        Y = self.Y[:, labels]
        if counts is None:
            n_replayed = self.X.shape[0] - self.n_new
            stands_for = (n_documents - self.n_new) / max(n_replayed, 1)
            new, replayed = (np.asarray(part.sum(axis=0)).ravel() for part in (Y[: self.n_new], Y[self.n_new :]))
            own = new + stands_for * replayed
        else:
            own = counts[labels]
        rows = self.to_calibrate()
        return expected_biases(scores, Y[rows].toarray() > 0, self.n_new, own.astype(np.float32), n_documents)

    def forget_unknown(self, gradient: Floats, rows: Ints, labels: Ints | slice) -> None:
        """Set the gradient (len(rows), len(labels)) to 0 where nobody knows whether a document has a label."""
        incomplete = np.flatnonzero(~self.are_complete[rows])
        if len(incomplete):
            gradient[incomplete] *= self.known[rows[incomplete]][:, labels].toarray()


def expected_biases(scores: Floats, has_label: Bools, n_new: int, counts: Floats, n_documents: int) -> Floats:
    """Return the biases with which the probabilities of labels add up to their ``counts`` in ``n_documents``.

    ``scores`` (n, m) are those of some documents before the bias, ``has_label`` (n, m) says which have the label. The
    first ``n_new`` are new, the others a sample of all. A label's documents stand for all that have it, and the others
    in the sample for all that do not.

    >>> scores, has_label = np.zeros((4, 1), np.float32), np.array([[True], [False], [False], [False]])
    >>> round(float(expected_biases(scores, has_label, 1, np.ones(1), n_documents=10)[0]), 1)
    -2.2
    """
    others = ~has_label
    if n_new < len(scores):
        others[:n_new] = False
    positives, negatives = np.maximum(has_label.sum(axis=0), 1), np.maximum(others.sum(axis=0), 1)
    weights = (has_label * (counts / positives) + others * (np.maximum(n_documents - counts, 0) / negatives)).T
    low, high = -scores.max(axis=0) - np.float32(20), -scores.min(axis=0) + np.float32(20)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        probabilities = scores + middle
        sigmoid_inplace(probabilities)
        is_high = np.einsum("ij,ji->i", weights, probabilities) > counts
        low, high = np.where(is_high, low, middle), np.where(is_high, middle, high)
    return np.asarray((low + high) / 2, np.float32)


def check_finite(*weights: Floats) -> None:
    """Raise ParameterError unless all weights are finite after steps; the model then stays as it was."""
    if not all(np.isfinite(values).all() for values in weights):
        rule = "weights must stay finite in going on learning, but overflowed"
        raise ParameterError(f"{rule}; set a smaller learning_rate and feature_learning_rate, or train again")


@contextmanager
def refusing_overflow() -> Iterator[None]:
    """Refuse steps on numbers that are too large, as ``check_finite`` does: a kernel divides by what is no number."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except ZeroDivisionError:
        check_finite(np.full(1, np.nan, np.float32))


def nothing_to_replay(name: str) -> ParameterError:
    """Return the error for a model of this method that was saved before it kept documents."""
    rule = f"going on learning needs documents to replay, but this {name} model was saved without any"
    return ParameterError(f"{rule}; train it again")
