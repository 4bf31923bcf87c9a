"""Tree of classifiers: the documents that reach a node, and training the classifiers of its children.

All nodes of all trees are columns of one sparse matrix W (n_features, n_nodes) stored by features; the children of a
node are neighbors in it, so that a document's weights for them are one range of each feature's row.
"""

from typing import NamedTuple

import numpy as np

from labelspace.kernels.compiled import kernel, part
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.dual_cd import SolverOptions, solve_logistic, solve_squared_hinge, squared_norms
from labelspace.kernels.lanes import LANES
from labelspace.kernels.topk import radix_sort
from labelspace.types import Doubles, Floats, Ints, Longs

FIRST_WEIGHTS = 1024  # weights of trained nodes that there is room for at first; the arrays are doubled when full


class ClassifierOptions(NamedTuple):
    """How the classifiers of nodes are trained."""

    logistic: bool  # the logistic loss, else the squared hinge
    bias: float  # value of the bias feature
    solver: SolverOptions
    threshold: float  # weights of a smaller absolute value are dropped
    weights: Doubles  # of all documents, above 0: they multiply C


class NodeDocuments(NamedTuple):
    """The documents that a node's classifiers are trained on."""

    rows: Ints  # sorted
    positives: Ints  # indices into ``rows``: those of child c are positives[ends[c] : ends[c + 1]]
    ends: Longs


class NodeScratch(NamedTuple):
    """Buffers of ``train_children``: one entry per feature, all -1, and two for each of the documents' values."""

    new_column: Ints
    values: Floats
    columns: Ints


@kernel()
def compact_rows(X: CsrArrays, rows: Ints, new_column: Ints) -> tuple[Floats, Ints, Longs, Ints]:
    """Return some rows of X with their columns renumbered from 0, as three arrays, and the original columns.

    ``new_column`` (n_columns) is scratch, all -1 before and after.
    """
    size = count_entries(X.indptr, rows)
    values, columns = np.empty(size, np.float32), np.empty(size, np.int32)
    ends, column_ids = compact_rows_into(X, rows, NodeScratch(new_column, values, columns))
    return values, columns, ends, column_ids


@kernel()
def count_entries(indptr: Ints | Longs, rows: Ints) -> int:
    """Count the entries of some rows of a CSR matrix."""
    size = 0
    for row in rows:
        size += indptr[row + 1] - indptr[row]
    return size


@kernel()
def compact_rows_into(X: CsrArrays, rows: Ints, scratch: NodeScratch) -> tuple[Longs, Ints]:
    """Write what ``compact_rows`` returns to ``scratch``; return where rows end, and the original columns."""
    new_column, values, columns = scratch.new_column, scratch.values, scratch.columns
    size = len(values)
    ends = np.zeros(len(rows) + 1, np.int64)  # rows of all documents may have more than 2**31 entries
    column_ids = np.empty(min(size, len(new_column)), np.int32)
    n_columns, pos = 0, 0
    for i, row in enumerate(rows):
        for j in range(X.indptr[row], X.indptr[row + 1]):
            column = X.indices[j]
            if new_column[column] < 0:
                new_column[column] = n_columns
                column_ids[n_columns] = column
                n_columns += 1
            values[pos], columns[pos] = X.data[j], new_column[column]
            pos += 1
        ends[i + 1] = pos
    for i in range(n_columns):
        new_column[column_ids[i]] = -1
    return ends, column_ids[:n_columns]


@kernel()
def node_training_set(
    indices: Ints, indptr: Ints, cuts: Longs, all_rows: bool, negatives: Ints, row_index: Ints
) -> NodeDocuments:
    """Return the documents that reach a node, and the positives of each of its children.

    Column l of a CSC matrix lists the documents of label l; child c has the labels cuts[c]..cuts[c + 1]. ``negatives``
    are added as negatives of all children, or ``all_rows`` are. ``row_index`` (n) is scratch, all -1 before and after.
    """
    positive_rows = indices[indptr[cuts[0]] : indptr[cuts[-1]]]
    size = len(row_index) if all_rows else len(positive_rows) + len(negatives)
    found, buffer, n_rows = np.empty(size, np.int64), np.empty(size, np.int64), 0
    if all_rows:
        for i in range(size):
            found[i] = i << 32
        n_rows = size
    else:
        for listed in (positive_rows, negatives):
            for document in listed:
                if row_index[document] < 0:
                    row_index[document] = 0
                    found[n_rows] = np.int64(document) << 32
                    n_rows += 1
        found = radix_sort(found[:n_rows], buffer, len(row_index))
    rows = np.empty(n_rows, np.int32)
    for i in range(n_rows):
        rows[i] = found[i] >> 32
        row_index[rows[i]] = i
    positives, ends = np.empty(len(positive_rows), np.int32), np.zeros(len(cuts), np.int64)
    last_child = np.full(n_rows, -1, np.int32)
    pos = 0
    for child in range(len(cuts) - 1):
        for document in indices[indptr[cuts[child]] : indptr[cuts[child + 1]]]:
            i = row_index[document]
            if last_child[i] != child:
                last_child[i] = child
                positives[pos] = i
                pos += 1
        ends[child + 1] = pos
    for document in rows:
        row_index[document] = -1
    return NodeDocuments(rows, positives[:pos], ends)


@kernel()
def enlarge(ids: Ints, values: Floats, size: int, capacity: int) -> tuple[Ints, Floats]:
    """Copy the first ``size`` entries of two arrays to arrays of ``capacity`` entries."""
    new_ids, new_values = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
    for i in range(size):
        new_ids[i], new_values[i] = ids[i], values[i]
    return new_ids, new_values


@kernel()
def train_children(
    X: CsrArrays, documents: NodeDocuments, options: ClassifierOptions, seed: int, scratch: NodeScratch
) -> tuple[Ints, Floats, Longs, Floats]:
    """Train one classifier for each child of a node.

    Return features, weights (of absolute value ``threshold`` and more), where those of each child end, and the biases.
    """
    bias, positives, positive_ends = options.bias, documents.positives, documents.ends
    ends, feature_ids = compact_rows_into(X, documents.rows, scratch)
    n, n_features, n_children = len(documents.rows), len(feature_ids), len(positive_ends) - 1
    rows = CsrArrays(scratch.values, scratch.columns, ends)
    norms, own_weights = squared_norms(scratch.values, ends, bias), options.weights[documents.rows]
    w, alpha = np.empty((n_features + 1, LANES), np.float32), np.empty((n, LANES), np.float32)
    order, signs = np.empty(n, np.int32), np.empty((n, LANES), np.float32)
    biases, stops = np.empty(n_children, np.float32), np.zeros(n_children + 1, np.int64)
    features, weights = np.empty(FIRST_WEIGHTS, np.int32), np.empty(FIRST_WEIGHTS, np.float32)
    for first in range(0, n_children, LANES):
        n_lanes = min(LANES, n_children - first)
        for i in range(n):
            for lane in range(LANES):
                signs[i, lane] = -1.0 if lane < n_lanes else 0.0
        for lane in range(n_lanes):
            for i in positives[positive_ends[first + lane] : positive_ends[first + lane + 1]]:
                signs[i, lane] = 1.0
        for j in range(n_features + 1):
            for lane in range(LANES):
                w[j, lane] = 0.0
        if options.logistic:
            for lane in range(n_lanes):
                positive = signs[:, lane] > 0.0
                solver, lane_seed = options.solver, seed + first + lane
                solve_logistic(
                    rows, norms, own_weights, positive, bias, solver, lane_seed, w[:, lane], alpha[:, lane], order
                )
        else:
            solve_squared_hinge(rows, norms, own_weights, signs, bias, options.solver, seed + first, w, alpha, order)
        for lane in range(n_lanes):
            biases[first + lane] = w[-1, lane] * bias
        features, weights = append_weights(
            w[:-1], n_lanes, options.threshold, feature_ids, features, weights, stops[first:]
        )
    size = stops[n_children]
    return features[:size].copy(), weights[:size].copy(), stops, biases


@part()
def append_weights(
    w: Floats, n_lanes: int, threshold: float, feature_ids: Ints, features: Ints, weights: Floats, stops: Longs
) -> tuple[Ints, Floats]:
    """Append the weights of each lane of size ``threshold`` and more, from stops[0] on; fill the next ``stops``.

    Return ``features`` and ``weights``, or larger ones.
    """
    counts = np.zeros(LANES, np.int64)
    for j in range(len(w)):
        for lane in range(LANES):
            counts[lane] += abs(w[j, lane]) >= threshold and w[j, lane] != 0.0
    for lane in range(n_lanes):
        stops[lane + 1] = stops[lane] + counts[lane]
    if stops[n_lanes] > len(features):
        features, weights = enlarge(features, weights, stops[0], 2 * stops[n_lanes])
    ends = stops[:n_lanes].copy()
    for j in range(len(w)):
        for lane in range(n_lanes):
            if abs(w[j, lane]) >= threshold and w[j, lane] != 0.0:
                features[ends[lane]], weights[ends[lane]] = feature_ids[j], w[j, lane]
                ends[lane] += 1
    return features, weights
