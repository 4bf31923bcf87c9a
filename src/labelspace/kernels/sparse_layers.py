"""A network with one hidden layer on sparse rows: only the vectors of a document's own features are read and changed.

The features' vectors are float32 while they are learned and int8 with a scale each where they are only read: the same
kernel serves both, the scales of the former being 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from labelspace.kernels.topk import best_allowed
from labelspace.types import Doubles, Floats, Ints

Table = Floats | npt.NDArray[np.int8]


@njit(cache=True, nogil=True)
def take_rows(
    data: Floats, indices: Ints, indptr: Ints, rows: Ints, chance: Floats, dropout: float
) -> tuple[Floats, Ints, Ints]:
    """Some rows of X (CSR) without the values that lose: ``chance`` has a number in 0..1 for each, in order.

    What stays is divided by 1 - dropout, so that a row keeps its sum on average.
    """
    kept_data, kept_indices = np.empty(len(chance), np.float32), np.empty(len(chance), np.int32)
    kept_indptr = np.zeros(len(rows) + 1, np.int32)
    share = np.float32(1.0 / (1.0 - dropout))
    size = seen = 0
    for i, row in enumerate(rows):
        for j in range(indptr[row], indptr[row + 1]):
            if chance[seen] >= dropout:
                kept_data[size], kept_indices[size] = data[j] * share, indices[j]
                size += 1
            seen += 1
        kept_indptr[i + 1] = size
    return kept_data[:size], kept_indices[:size], kept_indptr


@njit(cache=True, nogil=True)
def by_feature(data: Floats, indices: Ints, indptr: Ints, ends_of: Ints) -> tuple[Ints, Ints, Ints, Floats]:
    """A batch (CSR) by its features: those it has, where each ends, and the row and value of every entry.

    Entries of feature ``features[i]`` stand at ``ends[i]:ends[i + 1]``. ``ends_of`` is (n_features,) zeros to work in,
    and is left so: the cost does not depend on the number of features.
    """
    features = np.empty(len(indices), np.int32)
    n = 0
    for feature in indices:
        if ends_of[feature] == 0:
            features[n] = feature
            n += 1
        ends_of[feature] += 1
    features = features[:n]
    ends = np.zeros(n + 1, np.int32)
    for i, feature in enumerate(features):
        ends[i + 1] = ends[i] + ends_of[feature]
        ends_of[feature] = ends[i]
    rows, values = np.empty(len(indices), np.int32), np.empty(len(indices), np.float32)
    for row in range(len(indptr) - 1):
        for j in range(indptr[row], indptr[row + 1]):
            at = ends_of[indices[j]]
            rows[at], values[at] = row, data[j]
            ends_of[indices[j]] += 1
    ends_of[features] = 0
    return features, ends, rows, values


@njit(cache=True, nogil=True, fastmath=True)
def embed_row(data: Floats, features: Ints, vectors: Table, scales: Floats, bias: Floats, out: Floats) -> None:
    """The vectors of a row's features times its values, plus the bias. ``vectors`` is (n_features, hidden)."""
    out[:] = bias
    for j in range(len(features)):
        feature = features[j]
        vector, value = vectors[feature], data[j] * scales[feature]
        for m in range(len(out)):
            out[m] += value * vector[m]


@njit(cache=True, nogil=True)
def embed_rows(
    data: Floats, indices: Ints, indptr: Ints, start: int, stop: int, vectors: Table, scales: Floats, bias: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """``embed_row`` for the rows start..stop of X (CSR); ``out`` is (n, hidden)."""
    for row in range(start, stop):
        entries = slice(indptr[row], indptr[row + 1])
        embed_row(data[entries], indices[entries], vectors, scales, bias, out[row])


@njit(cache=True, nogil=True)
def subtract_labels(indices: Ints, indptr: Ints, rows: Ints, start: int, out: Floats) -> None:
    """Take 1 from the places of the labels that some rows of Y (CSR) carry; ``out`` (len(rows), n) begins at start."""
    for i, row in enumerate(rows):
        for j in range(indptr[row], indptr[row + 1]):
            if start <= indices[j] < start + out.shape[1]:
                out[i, indices[j] - start] -= np.float32(1.0)


@njit(cache=True, nogil=True, fastmath=True)
def entry_products(
    indices: Ints, indptr: Ints, start: int, stop: int, hidden: Floats, vectors: Floats, skipped: Ints, out: Floats
) -> None:
    """At each entry of the rows start..stop of a batch (CSR): the product of the row's and the column's vector.

    ``hidden`` is (batch, width), ``vectors`` (n_columns, width). Columns with ``skipped`` at 0 or more are left out;
    an empty one skips none.
    """
    for row in range(start, stop):
        own = hidden[row]
        for j in range(indptr[row], indptr[row + 1]):
            if len(skipped) > 0 and skipped[indices[j]] >= 0:
                continue
            vector, total = vectors[indices[j]], np.float32(0.0)
            for m in range(len(own)):
                total += own[m] * vector[m]
            out[j] = total


@njit(cache=True, nogil=True)
def drawn_errors(
    data: Floats, indices: Ints, indptr: Ints, place: Ints, weight: float, own: Floats, out: Floats
) -> float:
    """Predictions of a batch (CSR) become half the gradient of their squared error, which is returned.

    ``out`` (batch, drawn) are those at the columns drawn, column c at ``place[c]``; each stands for ``weight`` columns,
    but one where the row has a value for itself alone. ``own`` are those at the row's values; an entry that stands in
    ``out`` becomes 0 there.
    """
    error = 0.0
    for row in range(len(out)):
        errors = out[row]
        for at in range(len(errors)):
            error += weight * errors[at] ** 2
            errors[at] *= np.float32(weight)
        for j in range(indptr[row], indptr[row + 1]):
            at = place[indices[j]]
            if at >= 0:
                guess = errors[at] / np.float32(weight)
                error += (guess - data[j]) ** 2 - weight * guess**2
                errors[at], own[j] = guess - data[j], 0.0
            else:
                own[j] -= data[j]
                error += own[j] ** 2
    return error


@njit(cache=True, nogil=True, fastmath=True)
def feature_gradients(values: Floats, rows: Ints, ends: Ints, gradient: Floats, out: Floats) -> None:
    """The gradients by the vectors of a batch's features, which ``by_feature`` arranged: (features, hidden)."""
    for i in range(len(out)):
        own = out[i]
        own[:] = 0.0
        for j in range(ends[i], ends[i + 1]):
            value, of_row = values[j], gradient[rows[j]]
            for m in range(len(own)):
                own[m] += value * of_row[m]


@njit(cache=True, nogil=True, fastmath=True)
def descend_features(
    values: Floats, rows: Ints, ends: Ints, features: Ints, start: int, stop: int, gradient: Floats, rate: float,
    vectors: Floats, squares: Floats, change: Doubles,
) -> None:  # fmt: skip
    """One step of row-wise Adagrad on the vectors of features start..stop of a batch that ``by_feature`` arranged.

    ``gradient`` (batch, hidden) is that of the loss by the layer's output. ``squares`` (n_features,) sums the mean
    square of each vector's gradients so far, and is all that is remembered of it. ``change`` (hidden,), unless it is
    empty, gets added how much the sum of each column's squares changes.
    """
    hidden = vectors.shape[1]
    own = np.empty(hidden, np.float32)
    for i in range(start, stop):
        own[:] = 0.0
        for j in range(ends[i], ends[i + 1]):
            value, of_row = values[j], gradient[rows[j]]
            for m in range(hidden):
                own[m] += value * of_row[m]
        total = np.float32(0.0)
        for m in range(hidden):
            total += own[m] * own[m]
        feature = features[i]
        squares[feature] += total / np.float32(hidden)
        length = np.float32(rate) / (np.sqrt(squares[feature]) + np.float32(1e-10))
        vector = vectors[feature]
        for m in range(len(change)):
            change[m] += (vector[m] - length * own[m]) ** 2 - vector[m] ** 2
        for m in range(hidden):
            vector[m] -= length * own[m]


@njit(cache=True, nogil=True, fastmath=True)
def adam(weights: Floats, gradient: Floats, mean: Floats, square: Floats, rate: float, step: int) -> None:
    """Step number ``step`` (from 1) of Adam (Kingma and Ba, 2015) with its usual constants, on flat arrays."""
    one, a, b, tiny = np.float32(1.0), np.float32(0.9), np.float32(0.999), np.float32(1e-8)
    length = np.float32(rate * np.sqrt(1.0 - 0.999**step) / (1.0 - 0.9**step))
    for i in range(len(weights)):
        g = gradient[i]
        mean[i] = a * mean[i] + (one - a) * g
        square[i] = b * square[i] + (one - b) * g * g
        weights[i] -= length * mean[i] / (np.sqrt(square[i]) + tiny)


@njit(cache=True, nogil=True, fastmath=True)
def add_units(activity: Floats, weights: Table, out: Floats) -> None:
    """Add to ``out`` (n_labels,) the weights (hidden, n_labels) of the units that are active, times their activity."""
    for unit in range(len(activity)):
        value, of_unit = activity[unit], weights[unit]
        if value != 0.0:
            for label in range(len(out)):
                out[label] += value * of_unit[label]


@njit(cache=True, nogil=True)
def best_outputs(
    activity: Floats, weights: Table, scales: Floats, bias: Floats, allowed: npt.NDArray[np.bool_], scores: Floats,
    ids: Ints,
) -> None:  # fmt: skip
    """The best of the allowed labels for one row's activity (hidden,), by weights (hidden, n_labels) and a bias."""
    values = np.zeros(len(bias), np.float32)
    add_units(activity, weights, values)
    for label in range(len(values)):
        values[label] = values[label] * scales[label] + bias[label]
    best_allowed(values, allowed, scores, ids)


@njit(cache=True, nogil=True)
def output_topk(
    activity: Floats, start: int, stop: int, weights: Table, weight_scales: Floats, bias: Floats,
    allowed: npt.NDArray[np.bool_], out_labels: Ints, out_scores: Floats,
) -> None:  # fmt: skip
    """``best_outputs`` of the rows start..stop of an activity (n, hidden)."""
    for row in range(start, stop):
        best_outputs(activity[row], weights, weight_scales, bias, allowed, out_scores[row], out_labels[row])


@njit(cache=True, nogil=True)
def network_topk(
    data: Floats, indices: Ints, indptr: Ints, start: int, stop: int, vectors: Table, vector_scales: Floats,
    hidden_bias: Floats, weights: Table, weight_scales: Floats, bias: Floats, allowed: npt.NDArray[np.bool_],
    out_labels: Ints, out_scores: Floats,
) -> None:  # fmt: skip
    """The best of the allowed labels for the rows start..stop of X (CSR) through a ReLU, by their log-odds.

    ``vectors`` is (n_features, hidden) with a scale a feature, ``weights`` (hidden, n_labels) with a scale a label.
    ``out_labels`` and ``out_scores`` have a row for every row of X; only start..stop is written.
    """
    activity = np.empty(len(hidden_bias), np.float32)
    for row in range(start, stop):
        entries = slice(indptr[row], indptr[row + 1])
        embed_row(data[entries], indices[entries], vectors, vector_scales, hidden_bias, activity)
        for unit in range(len(activity)):
            activity[unit] = max(activity[unit], np.float32(0.0))
        best_outputs(activity, weights, weight_scales, bias, allowed, out_scores[row], out_labels[row])


@njit(cache=True, nogil=True, fastmath=True)
def descend_unit_rows(
    gradient: Floats, ids: Ints, start: int, stop: int, rate: float, vectors: Floats, squares: Floats
) -> None:
    """One step of row-wise Adagrad on vectors of length 1, which stay so: along the sphere, then back onto it.

    Row i of ``gradient``, counted from start, is that of the vector ``ids[start + i]``. ``vectors`` may be wider than
    the gradient; what stands to the right of it is left alone. ``squares`` is as in ``descend_features``.
    """
    width = gradient.shape[1]
    for i in range(start, stop):
        own, vector = gradient[i - start], vectors[ids[i]]
        along = np.float32(0.0)
        for m in range(width):
            along += own[m] * vector[m]
        total = np.float32(0.0)
        for m in range(width):
            own[m] -= along * vector[m]
            total += own[m] * own[m]
        if total == np.float32(0.0):
            continue
        squares[ids[i]] += total / np.float32(width)
        length = np.float32(rate) / (np.sqrt(squares[ids[i]]) + np.float32(1e-10))
        total = np.float32(0.0)
        for m in range(width):
            vector[m] -= length * own[m]
            total += vector[m] * vector[m]
        back = np.float32(1.0) / np.sqrt(total)
        for m in range(width):
            vector[m] *= back


@njit(cache=True, nogil=True)
def dense_rows(activity: Floats, weights: Floats, bias: Floats, out: Floats) -> None:
    """A dense layer on rows (n, hidden), its weights (hidden, width): each row on its own, in one order of sums."""
    for row in range(len(activity)):
        own = out[row]
        own[:] = bias
        for unit in range(len(weights)):
            value, of_unit = activity[row, unit], weights[unit]
            if value != 0.0:
                for m in range(len(own)):
                    own[m] += value * of_unit[m]


@njit(cache=True, nogil=True)
def block_of(data: Floats, indices: Ints, indptr: Ints, chosen: Ints, place: Ints, out: Floats) -> None:
    """The rows and columns ``chosen`` of a square matrix (CSR) as a dense block.

    ``place`` is (n,) of -1 to work in, and is left so: the cost does not depend on the size of the matrix.
    """
    out[:] = 0.0
    for i, row in enumerate(chosen):
        place[row] = i
    for i, row in enumerate(chosen):
        for j in range(indptr[row], indptr[row + 1]):
            if place[indices[j]] >= 0:
                out[i, place[indices[j]]] = data[j]
    for row in chosen:
        place[row] = -1
