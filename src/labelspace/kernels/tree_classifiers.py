"""Tree of classifiers: the training targets of its nodes, and training the children of one node or of many.

All nodes of all trees are columns of one sparse matrix W (n_features, n_nodes) stored by features; the children of a
node are neighbors in it, so that a document's weights for them are one range of each feature's row.
"""

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import kernel, part
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.dual_cd import SolverOptions, solve_logistic, solve_squared_hinge, squared_norms
from labelspace.kernels.lanes import LANES
from labelspace.kernels.radix_sort import radix_sort
from labelspace.types import Floats, Ints, Longs


@kernel()
def compact_rows(
    data: Floats, indices: Ints, indptr: Ints | Longs, rows: Ints, new_column: Ints
) -> tuple[Floats, Ints, Longs, Ints]:
    """Some rows of a CSR matrix with their columns renumbered from 0; the original columns are returned last.

    ``new_column`` (n_columns) is scratch, all -1 before and after.
    """
    size = count_entries(indptr, rows)
    values, columns = np.empty(size, np.float32), np.empty(size, np.int32)
    ends, column_ids = compact_rows_into(data, indices, indptr, rows, new_column, values, columns)
    return values, columns, ends, column_ids


@kernel()
def count_entries(indptr: Ints | Longs, rows: Ints) -> int:
    """The entries of some rows of a CSR matrix."""
    size = 0
    for row in rows:
        size += indptr[row + 1] - indptr[row]
    return size


@kernel()
def compact_rows_into(
    data: Floats, indices: Ints, indptr: Ints | Longs, rows: Ints, new_column: Ints, values: Floats, columns: Ints
) -> tuple[Longs, Ints]:
    """``compact_rows`` into ``values`` and ``columns``, which have an entry for each of the rows."""
    size = len(values)
    ends = np.zeros(len(rows) + 1, np.int64)  # rows of all documents may have more than 2**31 entries
    column_ids = np.empty(min(size, len(new_column)), np.int32)
    n_columns, pos = 0, 0
    for i, row in enumerate(rows):
        for j in range(indptr[row], indptr[row + 1]):
            column = indices[j]
            if new_column[column] < 0:
                new_column[column] = n_columns
                column_ids[n_columns] = column
                n_columns += 1
            values[pos], columns[pos] = data[j], new_column[column]
            pos += 1
        ends[i + 1] = pos
    for i in range(n_columns):
        new_column[column_ids[i]] = -1
    return ends, column_ids[:n_columns]


@kernel()
def node_training_set(
    indices: Ints, indptr: Ints, cuts: Longs, all_rows: bool, negatives: Ints, row_index: Ints
) -> tuple[Ints, Ints, Longs]:
    """The documents that reach a node, and the positives of each of its children.

    Column l of a CSC matrix lists the documents of label l; child c has the labels cuts[c]..cuts[c + 1]. ``negatives``
    are added as negatives of all children, or ``all_rows`` are. ``row_index`` (n) is scratch, all -1 before and after.
    Returns sorted documents, then the positives as indices into them, and where those of each child end.
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
    return rows, positives[:pos], ends


@kernel()
def enlarge(ids: Ints, values: Floats, size: int, capacity: int) -> tuple[Ints, Floats]:
    """Copies of the first ``size`` entries of two arrays, in arrays of ``capacity`` entries."""
    new_ids, new_values = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
    for i in range(size):
        new_ids[i], new_values[i] = ids[i], values[i]
    return new_ids, new_values


@kernel()
def train_children(
    data: Floats, indices: Ints, indptr: Ints, rows: Ints, positives: Ints, positive_ends: Longs, logistic: bool,
    bias: float, C: float, tolerance: float, max_iter: int, threshold: float, seed: int, new_column: Ints,
    values: Floats, columns: Ints,
) -> tuple[Ints, Floats, Longs, Floats]:  # fmt: skip
    """One classifier for each child of a node, on the documents ``rows`` that reach it.

    The positives of child c are positives[positive_ends[c] : positive_ends[c + 1]], as indices into ``rows``. Returns
    features, weights (of absolute value ``threshold`` and more), where those of each child end, and the biases.
    ``values`` and ``columns`` are scratch, with an entry for each of the rows.
    """
    ends, feature_ids = compact_rows_into(data, indices, indptr, rows, new_column, values, columns)
    n, n_features, n_children = len(rows), len(feature_ids), len(positive_ends) - 1
    X = CsrArrays(values, columns, ends)
    options = SolverOptions(C, tolerance, max_iter)
    norms = squared_norms(values, ends, bias)
    w, alpha = np.empty((n_features + 1, LANES), np.float32), np.empty((n, LANES), np.float32)
    order, signs = np.empty(n, np.int32), np.empty((n, LANES), np.float32)
    biases, stops = np.empty(n_children, np.float32), np.zeros(n_children + 1, np.int64)
    features, weights = np.empty(1024, np.int32), np.empty(1024, np.float32)
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
        if logistic:
            for lane in range(n_lanes):
                positive = signs[:, lane] > 0.0
                solve_logistic(
                    X, norms, positive, bias, options, seed + first + lane, w[:, lane], alpha[:, lane], order
                )
        else:
            solve_squared_hinge(X, norms, signs, bias, options, seed + first, w, alpha, order)
        for lane in range(n_lanes):
            biases[first + lane] = w[-1, lane] * bias
        features, weights = append_weights(w[:-1], n_lanes, threshold, feature_ids, features, weights, stops[first:])
    size = stops[n_children]
    return features[:size].copy(), weights[:size].copy(), stops, biases


@part()
def append_weights(
    w: Floats, n_lanes: int, threshold: float, feature_ids: Ints, features: Ints, weights: Floats, stops: Longs
) -> tuple[Ints, Floats]:
    """Append the weights of each lane of size ``threshold`` and more, from stops[0] on; fills the next ``stops``.

    Returns ``features`` and ``weights``, or larger ones.
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


@kernel()
def classifier_targets(
    indices: Ints, indptr: Ints, rows: Ints, leaf_of: Ints, parent: Ints, first_child: Ints, last_child: Ints,
    max_distance: int, distance: Ints,
) -> tuple[Floats, Ints, Ints]:  # fmt: skip
    """The training targets of a tree's classifiers for some rows of Y (CSR), as the parts of a matrix (rows, n_nodes).

    A row reaches the root and every node above one of its labels. Its entries are the nodes at most ``max_distance``
    steps below a reached node, 1 for reached nodes: with 1 step, the children of reached nodes. ``leaf_of`` (n_labels,)
    is the leaf of a label or -1, ``distance`` (n_nodes,) scratch, all -1 before and after.
    """
    capacity = 1024
    targets, nodes = np.empty(capacity, np.float32), np.empty(capacity, np.int32)
    ends, visited = np.zeros(len(rows) + 1, np.int32), np.empty(len(parent), np.int32)
    size = 0
    for i, row in enumerate(rows):
        distance[0], visited[0], n_visited = 0, 0, 1
        for j in range(indptr[row], indptr[row + 1]):
            node = leaf_of[indices[j]]
            while node > 0 and distance[node] < 0:  # up to a node that is visited already
                distance[node], visited[n_visited] = 0, node
                n_visited, node = n_visited + 1, parent[node]
        pos = 0
        while pos < n_visited:  # breadth first from the reached nodes
            node = visited[pos]
            pos += 1
            if distance[node] < max_distance:
                for child in range(first_child[node], last_child[node]):
                    if distance[child] < 0:
                        distance[child], visited[n_visited] = distance[node] + 1, child
                        n_visited += 1
        if size + n_visited > capacity:
            capacity = 2 * (size + n_visited)
            nodes, targets = enlarge(nodes, targets, size, capacity)
        for node in visited[1:n_visited]:
            nodes[size], targets[size] = node, np.float32(1.0 if distance[node] == 0 else 0.0)
            size += 1
        for node in visited[:n_visited]:
            distance[node] = -1
        ends[i + 1] = size
    return targets[:size], nodes[:size], ends


@kernel()
def leaf_ranges(first_child: Ints, last_child: Ints) -> Longs:
    """The leaves below each node as a range of all leaves, numbered depth first. Shape (n_nodes, 2)."""
    out = np.zeros((len(first_child), 2), np.int64)
    for node in range(len(first_child) - 1, -1, -1):  # children have larger numbers
        out[node, 1] = 1 if last_child[node] == 0 else 0
        for child in range(first_child[node], last_child[node]):
            out[node, 1] += out[child, 1]
    for node in range(len(first_child)):
        leaf = out[node, 0]
        out[node, 1] += leaf
        for child in range(first_child[node], last_child[node]):
            out[child, 0] = leaf
            leaf += out[child, 1]
    return out


@kernel()
def train_nodes(
    data: Floats, indices: Ints, indptr: Ints, n_features: int, positive_rows: Ints, positive_indptr: Ints, cuts: Longs,
    is_root: npt.NDArray[np.bool_], logistic: bool, bias: float, C: float, tolerance: float, max_iter: int,
    threshold: float, seed: int,
) -> tuple[Ints, Floats, Longs, Floats]:  # fmt: skip
    """``node_training_set`` and ``train_children`` for many nodes of two children each, in one call.

    Row i of ``cuts`` (nodes, 3) says where the labels of the node's children start and end, as columns of the CSC
    matrix of documents ``positive_rows``; all documents reach a root. Returns what ``train_children`` does.
    """
    new_column, row_index = np.full(n_features, -1, np.int32), np.full(len(indptr) - 1, -1, np.int32)
    capacity, size, nobody = 1024, 0, np.zeros(0, np.int32)
    features, weights = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
    stops, biases = np.zeros(2 * len(cuts) + 1, np.int64), np.empty(2 * len(cuts), np.float32)
    for i in range(len(cuts)):
        rows, positives, positive_ends = node_training_set(
            positive_rows, positive_indptr, cuts[i], is_root[i], nobody, row_index
        )
        n_entries = count_entries(indptr, rows)
        ids, values, node_stops, node_biases = train_children(
            data, indices, indptr, rows, positives, positive_ends, logistic, bias, C, tolerance, max_iter, threshold,
            seed + i, new_column, np.empty(n_entries, np.float32), np.empty(n_entries, np.int32),
        )  # fmt: skip
        if size + len(ids) > capacity:
            capacity = 2 * (size + len(ids))
            features, weights = enlarge(features, weights, size, capacity)
        for j in range(len(ids)):
            features[size + j], weights[size + j] = ids[j], values[j]
        for child in range(2):
            stops[2 * i + child + 1], biases[2 * i + child] = size + node_stops[child + 1], node_biases[child]
        size += len(ids)
    return features[:size].copy(), weights[:size].copy(), stops, biases
