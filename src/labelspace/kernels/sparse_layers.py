"""A network with one hidden layer on sparse rows: only the vectors of a document's features are read and updated.

Feature vectors are float32 in training and int8 with a scale each in prediction: the same kernel serves both, with
scales of 1 in training.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import kernel, part
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.topk import topk_allowed
from labelspace.types import Bools, Doubles, Floats, Ints, Longs

Table = Floats | npt.NDArray[np.int8]
TINY = np.float32(1e-10)  # added to the root of Adagrad's sum: a vector without a gradient yet is not divided by 0


class Layer(NamedTuple):
    """A table of weights, float32 or int8, the scale of each row or column, and the bias of the units."""

    weights: Table
    scales: Floats
    bias: Floats


class FeatureEntries(NamedTuple):
    """The entries of a batch by features: feature ``features[i]`` has the rows and values at ends[i] : ends[i + 1]."""

    features: Ints
    ends: Longs
    rows: Ints
    values: Floats


@kernel()
def dropout_rows(
    data: Floats, indices: Ints, indptr: Ints, rows: Ints, draws: Floats, dropout: float
) -> tuple[Floats, Ints, Ints]:
    """Return some rows of X (CSR) with dropout: ``draws`` has a uniform number per entry, in order.

    What remains is divided by 1 - dropout, so that a row keeps its expected sum.
    """
    kept_data, kept_indices = np.empty(len(draws), np.float32), np.empty(len(draws), np.int32)
    kept_indptr = np.zeros(len(rows) + 1, np.int32)
    scale = np.float32(1.0 / (1.0 - dropout))
    size = entry = 0
    for i, row in enumerate(rows):
        for j in range(indptr[row], indptr[row + 1]):
            if draws[entry] >= dropout:
                kept_data[size], kept_indices[size] = data[j] * scale, indices[j]
                size += 1
            entry += 1
        kept_indptr[i + 1] = size
    return kept_data[:size], kept_indices[:size], kept_indptr


@kernel()
def group_by_feature(data: Floats, indices: Ints, indptr: Ints | Longs, offsets: Ints | Longs) -> FeatureEntries:
    """Group the entries of a batch (CSR) by features, of which only those that occur are listed.

    ``offsets`` (n_features,) is scratch, all zeros before and after: the cost does not depend on the number of
    features.
    """
    features = np.empty(len(indices), np.int32)
    n = 0
    for feature in indices:
        if offsets[feature] == 0:
            features[n] = feature
            n += 1
        offsets[feature] += 1
    features = features[:n]
    ends = np.zeros(n + 1, np.int64)  # some documents may have more than 2**31 entries
    for i, feature in enumerate(features):
        ends[i + 1] = ends[i] + offsets[feature]
        offsets[feature] = ends[i]
    rows, values = np.empty(len(indices), np.int32), np.empty(len(indices), np.float32)
    for row in range(len(indptr) - 1):
        for j in range(indptr[row], indptr[row + 1]):
            pos = offsets[indices[j]]
            rows[pos], values[pos] = row, data[j]
            offsets[indices[j]] += 1
    for feature in features:
        offsets[feature] = 0
    return FeatureEntries(features, ends, rows, values)


@kernel(fastmath=True, forceinline=True)
def embed_row(data: Floats, features: Ints, vectors: Table, scales: Floats, bias: Floats, out: Floats) -> None:
    """Sum a row's feature vectors times its values, plus the bias. ``vectors`` is (n_features, hidden)."""
    for m in range(len(out)):
        out[m] = bias[m]
    for j in range(len(features)):
        feature = features[j]
        vector, value = vectors[feature], data[j] * scales[feature]
        for m in range(len(out)):
            out[m] += value * vector[m]


@kernel()
def embed_rows(
    data: Floats,
    indices: Ints,
    indptr: Ints,
    start: int,
    stop: int,
    vectors: Table,
    scales: Floats,
    bias: Floats,
    out: Floats,
) -> None:
    """Call ``embed_row`` for the rows start..stop of X (CSR); ``out`` is (n, hidden)."""
    for row in range(start, stop):
        entries = slice(indptr[row], indptr[row + 1])
        embed_row(data[entries], indices[entries], vectors, scales, bias, out[row])


@kernel()
def subtract_label_block(indices: Ints, indptr: Ints, rows: Ints, start: int, out: Floats) -> None:
    """Subtract 1 at the labels of some rows of Y (CSR); ``out`` (len(rows), n) is the label block from ``start`` on."""
    for i, row in enumerate(rows):
        for j in range(indptr[row], indptr[row + 1]):
            if start <= indices[j] < start + out.shape[1]:
                out[i, indices[j] - start] -= np.float32(1.0)


@kernel(fastmath=True)
def sampled_products(
    indices: Ints, indptr: Ints, start: int, stop: int, hidden: Floats, vectors: Floats, skipped: Ints, out: Floats
) -> None:
    """Multiply the vectors of row and column at each entry of the rows start..stop of a batch (CSR).

    ``hidden`` is (batch, width), ``vectors`` (n_columns, width). Columns c with ``skipped[c]`` >= 0 are
    skipped; an empty array skips none.
    """
    for row in range(start, stop):
        row_vector = hidden[row]
        for j in range(indptr[row], indptr[row + 1]):
            if len(skipped) > 0 and skipped[indices[j]] >= 0:
                continue
            vector, total = vectors[indices[j]], np.float32(0.0)
            for m in range(len(row_vector)):
                total += row_vector[m] * vector[m]
            out[j] = total


@kernel()
def sampled_squared_errors(
    data: Floats, indices: Ints, indptr: Ints, sample_column: Ints, weight: float, positive_errors: Floats, out: Floats
) -> float:
    """Turn predictions of a batch (CSR) into half the gradient of their squared error, and return that error.

    ``out`` (batch, samples) are predictions at the sampled columns, column c at ``sample_column[c]``; each stands for
    ``weight`` columns, or for one if the row has a value there. ``positive_errors`` are the predictions at the values
    of the row; entries that are in ``out`` too become 0.
    """
    squared_error = 0.0
    for row in range(len(out)):
        errors = out[row]
        for c in range(len(errors)):
            squared_error += weight * errors[c] ** 2
            errors[c] *= np.float32(weight)
        for j in range(indptr[row], indptr[row + 1]):
            c = sample_column[indices[j]]
            if c >= 0:
                prediction = errors[c] / np.float32(weight)
                squared_error += (prediction - data[j]) ** 2 - weight * prediction**2
                errors[c], positive_errors[j] = prediction - data[j], 0.0
            else:
                positive_errors[j] -= data[j]
                squared_error += positive_errors[j] ** 2
    return squared_error


@part()
def feature_gradient(entries: FeatureEntries, i: int, gradient: Floats, out: Floats) -> None:
    """Compute the gradient by the vector of a batch's feature i: (hidden,)."""
    for m in range(len(out)):
        out[m] = 0.0
    for j in range(entries.ends[i], entries.ends[i + 1]):
        value, row_gradient = entries.values[j], gradient[entries.rows[j]]
        for m in range(len(out)):
            out[m] += value * row_gradient[m]


@kernel(fastmath=True)
def feature_gradients(entries: FeatureEntries, gradient: Floats, out: Floats) -> None:
    """Compute the gradients by the vectors of a batch's features: (features, hidden)."""
    for i in range(len(out)):
        feature_gradient(entries, i, gradient, out[i])


@kernel(fastmath=True)
def adagrad_features(
    entries: FeatureEntries,
    start: int,
    stop: int,
    gradient: Floats,
    learning_rate: float,
    vectors: Floats,
    squares: Floats,
    norm_change: Doubles,
) -> None:
    """Make a row-wise Adagrad step on the vectors of features start..stop of a batch.

    ``gradient`` (batch, hidden) is the gradient of the loss by the layer's output. ``squares`` (n_features,), the
    optimizer state, sums the mean square of each vector's gradients. The change of each column's squared norm is added
    to ``norm_change`` (hidden,), unless that array is empty.
    """
    hidden = vectors.shape[1]
    own = np.empty(hidden, np.float32)
    for i in range(start, stop):
        feature_gradient(entries, i, gradient, own)
        total = np.float32(0.0)
        for m in range(hidden):
            total += own[m] * own[m]
        feature = entries.features[i]
        squares[feature] += total / np.float32(hidden)
        step = np.float32(learning_rate) / (np.sqrt(squares[feature]) + TINY)
        vector = vectors[feature]
        for m in range(len(norm_change)):
            norm_change[m] += (vector[m] - step * own[m]) ** 2 - vector[m] ** 2
        for m in range(hidden):
            vector[m] -= step * own[m]


@kernel(fastmath=True)
def adam_step(weights: Floats, gradient: Floats, mean: Floats, square: Floats, learning_rate: float, step: int) -> None:
    """Make step number ``step`` (from 1) of Adam (Kingma and Ba, 2015) with default constants, on flat arrays."""
    one, beta1, beta2, epsilon = np.float32(1.0), np.float32(0.9), np.float32(0.999), np.float32(1e-8)
    step_size = np.float32(learning_rate * np.sqrt(1.0 - 0.999**step) / (1.0 - 0.9**step))
    for i in range(len(weights)):
        g = gradient[i]
        mean[i] = beta1 * mean[i] + (one - beta1) * g
        square[i] = beta2 * square[i] + (one - beta2) * g * g
        weights[i] -= step_size * mean[i] / (np.sqrt(square[i]) + epsilon)


@kernel(fastmath=True, forceinline=True)
def add_active_units(activity: Floats, weights: Table, out: Floats) -> None:
    """Add activity (hidden,) times weights (hidden, n_labels) to ``out`` (n_labels,), skipping units of activity 0."""
    for unit in range(len(activity)):
        value, unit_weights = activity[unit], weights[unit]
        if value != 0.0:
            for label in range(len(out)):
                out[label] += value * unit_weights[label]


@kernel()
def output_topk_row(activity: Floats, layer: Layer, allowed: Bools, scores: Floats, ids: Ints) -> None:
    """Find the top allowed labels for one row's activity (hidden,); the weights are (hidden, n_labels)."""
    weights, scales, bias = layer
    values = np.zeros(len(bias), np.float32)
    add_active_units(activity, weights, values)
    for label in range(len(values)):
        values[label] = values[label] * scales[label] + bias[label]
    topk_allowed(values, allowed, scores, ids)


@kernel()
def output_topk(
    activity: Floats, start: int, stop: int, layer: Layer, allowed: Bools, out_labels: Ints, out_scores: Floats
) -> None:
    """Call ``output_topk_row`` for the rows start..stop of an activity (n, hidden)."""
    for row in range(start, stop):
        output_topk_row(activity[row], layer, allowed, out_scores[row], out_labels[row])


@kernel()
def network_topk(
    X: CsrArrays, start: int, stop: int, hidden: Layer, output: Layer, allowed: Bools, out: Ints, out_scores: Floats
) -> None:
    """Find the top allowed labels for the rows start..stop of X through a ReLU layer, by their log-odds.

    ``hidden`` has weights (n_features, hidden) with a scale per feature, ``output`` weights (hidden, n_labels) with a
    scale per label. ``out`` and ``out_scores`` have a row for every row of X; only start..stop is written.
    """
    data, indices, indptr = X
    vectors, vector_scales, hidden_bias = hidden
    activity = np.empty(len(hidden_bias), np.float32)
    for row in range(start, stop):
        entries = slice(indptr[row], indptr[row + 1])
        embed_row(data[entries], indices[entries], vectors, vector_scales, hidden_bias, activity)
        for unit in range(len(activity)):
            activity[unit] = max(activity[unit], np.float32(0.0))
        output_topk_row(activity, output, allowed, out_scores[row], out[row])


@kernel(fastmath=True)
def adagrad_unit_rows(
    gradient: Floats, ids: Ints, start: int, stop: int, learning_rate: float, vectors: Floats, squares: Floats
) -> None:
    """Make a row-wise Adagrad step on unit vectors: along the tangent of the sphere, then normalized.

    Row i of ``gradient``, counted from start, belongs to the vector ``ids[start + i]``. ``vectors`` may be wider than
    the gradient; the columns to the right are not changed. ``squares`` is as in ``adagrad_features``.
    """
    width = gradient.shape[1]
    for i in range(start, stop):
        tangent, vector = gradient[i - start], vectors[ids[i]]
        radial = np.float32(0.0)
        for m in range(width):
            radial += tangent[m] * vector[m]
        total = np.float32(0.0)
        for m in range(width):
            tangent[m] -= radial * vector[m]
            total += tangent[m] * tangent[m]
        if total == np.float32(0.0):
            continue
        squares[ids[i]] += total / np.float32(width)
        step = np.float32(learning_rate) / (np.sqrt(squares[ids[i]]) + TINY)
        total = np.float32(0.0)
        for m in range(width):
            vector[m] -= step * tangent[m]
            total += vector[m] * vector[m]
        inverse_norm = np.float32(1.0) / np.sqrt(total)
        for m in range(width):
            vector[m] *= inverse_norm


@kernel()
def dense_forward(activity: Floats, weights: Floats, bias: Floats, out: Floats) -> None:
    """Apply a dense layer (hidden, width) to rows (n, hidden): each row separately, in one order of sums."""
    for row in range(len(activity)):
        out_row = out[row]
        for m in range(len(out_row)):
            out_row[m] = bias[m]
        for unit in range(len(weights)):
            value, unit_weights = activity[row, unit], weights[unit]
            if value != 0.0:
                for m in range(len(out_row)):
                    out_row[m] += value * unit_weights[m]


@kernel()
def dense_submatrix(data: Floats, indices: Ints, indptr: Ints, ids: Ints, positions: Ints, out: Floats) -> None:
    """Copy the rows and columns ``ids`` of a square matrix (CSR) into a dense block.

    ``positions`` (n,) is scratch, all -1 before and after: the cost does not depend on the size of the matrix.
    """
    for i, row in enumerate(ids):
        positions[row] = i
        for j in range(len(ids)):
            out[i, j] = 0.0
    for i, row in enumerate(ids):
        for j in range(indptr[row], indptr[row + 1]):
            if positions[indices[j]] >= 0:
                out[i, positions[indices[j]]] = data[j]
    for row in ids:
        positions[row] = -1
