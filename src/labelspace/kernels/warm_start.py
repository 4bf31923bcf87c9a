"""Going on learning with linear classifiers that are stored by features in 8 bits.

Squared hinge:  min_w  sum_j h_j (w_j - u_j)^2 / 2 + l1 |w|_1 + sum_i C_i max(0, 1 - y_i (w.x_i + b))^2
Logistic:       min_w  sum_j h_j (w_j - u_j)^2 / 2 + sum_i C_i log(1 + exp(-y_i (w.x_i + b)))

In the dual, u is what the documents learned before add up to: their dual variables stay as they are, and only those of
the new documents are found, by coordinate descent as in ``dual_cd``. The weights alone would not hold u against many
new documents, so h_j = 1 + stiffness m_j stands for the loss of the documents learned before: its second derivative
grows with their sum of squares m_j of feature j. The bias, which every document has, stays as it is. Weights change
only for features of documents whose dual variable is above 0.
"""

from typing import NamedTuple

import numpy as np

from labelspace.kernels.beam_search import NodeWeights, Tree, child_margins, lower_bound
from labelspace.kernels.compiled import integer, kernel, part
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.dual_cd import FIRST_INNER_TOLERANCE, SolverOptions, least_alpha, logistic_step, soft_threshold
from labelspace.kernels.quantize import INT8_MAX, Int8s
from labelspace.kernels.random_numbers import initial_state, shuffle
from labelspace.types import Bools, Floats, Ints, Longs

FIRST_ROOM = 1024  # entries that there is room for at first; the arrays are doubled when they are full


class Lists(NamedTuple):
    """Lists of ids, one after the other: list i is ids[starts[i] : starts[i + 1]]."""

    ids: Ints
    starts: Longs


class Pairs(NamedTuple):
    """The documents that each classifier learns from: rows[starts[c] : starts[c + 1]].

    The sign is positive for a positive, and its absolute value weighs the loss of the document.
    """

    rows: Ints
    signs: Floats
    starts: Longs


class Columns(NamedTuple):
    """Weights by classifier: those of classifier c are entries starts[c] : starts[c + 1]."""

    features: Ints
    weights: Floats
    starts: Longs


class WarmProblem(NamedTuple):
    """New documents X, with their columns numbered anew, and the objective."""

    X: CsrArrays
    squares: Floats  # m_j for each value of X
    n_features: int
    C: float  # of negatives
    C_positive: float
    solver: SolverOptions
    threshold: float  # weights of a smaller absolute value become 0
    l1: float
    logistic: bool


@part()
def with_room(ids: Ints, size: int) -> Ints:
    """Return ids, or a copy of twice the length if there is no room for one more than ``size``."""
    if size < len(ids):
        return ids
    larger = np.empty(2 * len(ids), np.int32)
    larger[:size] = ids
    return larger


@kernel()
def violated_children(
    X: CsrArrays, start: int, stop: int, weights: NodeWeights, tree: Tree, reached: Lists, known: Lists, margin: float
) -> tuple[Ints, Ints]:
    """Return the documents start..stop and the classifiers whose margin is above ``margin``: rows and nodes.

    The classifiers are the children of the nodes that each document reached, without those that are known of it.
    """
    shift = np.empty(len(tree.first_child), np.int64)
    margins, is_known = np.empty(FIRST_ROOM, np.float32), np.zeros(len(weights.bias), np.bool_)
    rows, nodes, size = np.empty(FIRST_ROOM, np.int32), np.empty(FIRST_ROOM, np.int32), integer(0)
    for row in range(start, stop):
        parents = reached.ids[reached.starts[row] : reached.starts[row + 1]]
        if len(parents) == 0:
            continue
        own = known.ids[known.starts[row] : known.starts[row + 1]]
        for node in own:
            is_known[node] = True
        span = slice(X.indptr[row], X.indptr[row + 1])
        margins = child_margins(X.data[span], X.indices[span], weights, tree, parents, shift, margins)
        for i in range(len(parents)):
            for child in range(tree.first_child[parents[i]], tree.last_child[parents[i]]):
                if margins[shift[i] + child] > margin and not is_known[child]:
                    rows, nodes = with_room(rows, size), with_room(nodes, size)
                    rows[size], nodes[size] = row, child
                    size += 1
        for node in own:
            is_known[node] = False
    return rows[:size].copy(), nodes[:size].copy()


@kernel()
def weights_of_columns(
    values: Int8s, ids: Ints, starts: Longs, scales: Floats, features: Ints, number: Ints, n_columns: int
) -> Columns:
    """Return the weights of some features by classifier; ``number`` has the number of each classifier, or -1."""
    ends = np.zeros(n_columns + 1, np.int64)
    for feature in features:
        for at in range(np.uint64(starts[feature]), np.uint64(starts[feature + 1])):
            column = number[np.uint64(ids[at])]
            if column >= 0:
                ends[column + 1] += 1
    for column in range(n_columns):
        ends[column + 1] += ends[column]
    begins, found = ends.copy(), np.empty(ends[n_columns], np.int32)
    weights = np.empty(ends[n_columns], np.float32)
    for i, feature in enumerate(features):
        for at in range(np.uint64(starts[feature]), np.uint64(starts[feature + 1])):
            column = number[np.uint64(ids[at])]
            if column >= 0:
                place = np.uint64(begins[column])
                found[place], weights[place] = i, scales[feature] * values[at]
                begins[column] += 1
    return Columns(found, weights, ends)


@kernel()
def add_squares(X: CsrArrays, totals: Floats) -> None:
    """Add the squares of each feature's values to ``totals`` (n_features,)."""
    for j in range(X.indptr[0], X.indptr[len(X.indptr) - 1]):
        totals[X.indices[j]] += X.data[j] * X.data[j]


class Metric(NamedTuple):
    """What the stiffness of a classifier makes of the documents."""

    damped: Floats  # each value of X, divided by its h_j
    gains: Floats  # (n,) by how much a step of 1 raises the margin of a document: the sum of x_j^2 / h_j


@kernel()
def measure(problem: WarmProblem, stiffness: np.float32, metric: Metric) -> None:
    """Fill a metric."""
    X = problem.X
    for row in range(len(metric.gains)):
        metric.gains[row] = np.float32(0.0)
        for j in range(X.indptr[row], X.indptr[row + 1]):
            metric.damped[j] = X.data[j] / (np.float32(1.0) + stiffness * problem.squares[j])
            metric.gains[row] += X.data[j] * metric.damped[j]


@part()
def add_document(problem: WarmProblem, metric: Metric, row: int, step: np.float32, v: Floats) -> None:
    """Add step * x to v, each value divided by its h_j."""
    X = problem.X
    for j in range(np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])):
        v[np.uint64(X.indices[j])] += step * metric.damped[j]


@part()
def document_margin(X: CsrArrays, row: int, l1: np.float32, v: Floats) -> np.float32:
    """Return w.x + b, where w is v, soft-thresholded."""
    margin = v[len(v) - 1]
    for j in range(np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])):
        margin += soft_threshold(v[np.uint64(X.indices[j])], l1) * X.data[j]
    return np.float32(margin)


@part()
def label_and_weight(problem: WarmProblem, sign: np.float32) -> tuple[np.float32, float]:
    """Return y, which is 1 or -1, and C of a document."""
    if sign > 0.0:
        return np.float32(1.0), float(problem.C_positive * sign)
    return np.float32(-1.0), float(problem.C * -sign)


@kernel()
def continue_squared_hinge(
    problem: WarmProblem, metric: Metric, rows: Ints, signs: Floats, seed: int, v: Floats
) -> Bools:
    """Find the dual variable of each new document of a classifier, and add what they say to ``v``.

    Return whether each document was ever added to ``v``.
    """
    X, solver, l1 = problem.X, problem.solver, np.float32(problem.l1)
    alpha, moved = np.zeros(len(rows), np.float32), np.zeros(len(rows), np.bool_)
    order = np.arange(len(rows)).astype(np.int32)
    state = initial_state(seed)
    for _ in range(solver.max_iter):
        largest = np.float32(0.0)
        state = shuffle(order, len(order), state)
        for i in order:
            row, old = rows[i], alpha[i]
            y, C = label_and_weight(problem, signs[i])
            diagonal = np.float32(0.5 / C)
            gradient = y * document_margin(X, row, l1, v) - np.float32(1.0) + diagonal * old
            if old == 0.0 and gradient >= 0.0:
                continue
            largest = max(largest, abs(gradient))
            alpha[i] = max(old - gradient / (metric.gains[row] + diagonal), np.float32(0.0))
            if alpha[i] != old:
                moved[i] = True
                add_document(problem, metric, row, y * (alpha[i] - old), v)
        if largest <= solver.tolerance:
            break
    return moved


@kernel()
def continue_logistic(problem: WarmProblem, metric: Metric, rows: Ints, signs: Floats, seed: int, v: Floats) -> Bools:
    """Do what ``continue_squared_hinge`` does, for the logistic loss."""
    X, solver = problem.X, problem.solver
    alpha, moved = np.zeros(len(rows), np.float32), np.zeros(len(rows), np.bool_)
    order = np.arange(len(rows)).astype(np.int32)
    state, inner_tolerance = initial_state(seed), FIRST_INNER_TOLERANCE
    for _ in range(solver.max_iter):
        largest, n_steps = 0.0, 0
        state = shuffle(order, len(order), state)
        for i in order:
            row = rows[i]
            y, C = label_and_weight(problem, signs[i])
            least = least_alpha(C)
            old = min(max(np.float64(alpha[i]), least), C - least)
            margin = np.float64(y * document_margin(X, row, np.float32(0.0), v))
            new, change, gradient, n_newton = logistic_step(
                old, C, margin, np.float64(metric.gains[row]), inner_tolerance
            )
            largest, n_steps = max(largest, gradient), n_steps + n_newton
            alpha[i], moved[i] = new, True
            add_document(problem, metric, row, y * np.float32(change), v)
        if largest < solver.tolerance:
            break
        if n_steps <= len(rows) / 10:
            inner_tolerance = max(1e-8, 0.1 * inner_tolerance)
    return moved


@kernel()
def continue_columns(
    problem: WarmProblem,
    pairs: Pairs,
    known: Columns,
    bias: Floats,
    stiffness: Floats,
    start: int,
    stop: int,
    seed: int,
) -> Columns:
    """Go on learning the classifiers start..stop, from ``known`` weights; return the weights that changed.

    A weight that became 0 is among them. Of each classifier, ``bias`` and ``stiffness`` (n_classifiers,) are given.
    """
    n_features = problem.n_features
    v, is_listed = np.zeros(n_features + 1, np.float32), np.zeros(n_features, np.bool_)
    listed, before = np.empty(n_features, np.int32), np.zeros(n_features, np.float32)
    features, weights, size = np.empty(FIRST_ROOM, np.int32), np.empty(FIRST_ROOM, np.float32), integer(0)
    stops = np.zeros(stop - start + 1, np.int64)
    l1, X = np.float32(problem.l1), problem.X
    metric = Metric(np.empty(len(X.data), np.float32), np.empty(len(X.indptr) - 1, np.float32))
    for c in range(start, stop):
        if c == start or stiffness[c] != stiffness[c - 1]:
            measure(problem, stiffness[c], metric)
        for at in range(known.starts[c], known.starts[c + 1]):
            w = known.weights[at]
            before[known.features[at]] = w
            v[known.features[at]] = w + l1 if w > 0.0 else w - l1
        v[n_features] = bias[c]
        rows, signs = (
            pairs.rows[pairs.starts[c] : pairs.starts[c + 1]],
            pairs.signs[pairs.starts[c] : pairs.starts[c + 1]],
        )
        if problem.logistic:
            moved = continue_logistic(problem, metric, rows, signs, seed + c, v)
        else:
            moved = continue_squared_hinge(problem, metric, rows, signs, seed + c, v)
        n_listed = 0
        for i in range(len(rows)):
            if moved[i]:
                for j in range(X.indptr[rows[i]], X.indptr[rows[i] + 1]):
                    if not is_listed[X.indices[j]]:
                        is_listed[X.indices[j]] = True
                        listed[n_listed] = X.indices[j]
                        n_listed += 1
        for feature in listed[:n_listed]:
            w = soft_threshold(v[feature], l1)
            if abs(w) < problem.threshold:
                w = np.float32(0.0)
            if w != before[feature]:
                if size == len(features):
                    features, weights = np.append(features, features), np.append(weights, weights)
                features[size], weights[size] = feature, w
                size += 1
            is_listed[feature], v[feature] = False, np.float32(0.0)
        for at in range(known.starts[c], known.starts[c + 1]):
            v[known.features[at]], before[known.features[at]] = np.float32(0.0), np.float32(0.0)
        stops[c - start + 1] = size
    return Columns(features[:size].copy(), weights[:size].copy(), stops)


class FeatureRows(NamedTuple):
    """Weights in 8 bits by feature: feature f has scales[f] * values[starts[f] : starts[f + 1]] for those ids."""

    values: Int8s
    ids: Ints
    starts: Longs
    scales: Floats


@kernel()
def merged_sizes(old: FeatureRows, features: Ints, changes: CsrArrays, scales: Floats) -> Longs:
    """Return how many weights each feature may have at most, and raise ``scales`` where a weight is too large.

    Row i of ``changes`` has the new weights of features[i].
    """
    sizes = np.diff(old.starts).astype(np.int64)
    for i, feature in enumerate(features):
        largest = np.float32(0.0)
        for at in range(changes.indptr[i], changes.indptr[i + 1]):
            largest = max(largest, abs(changes.data[at]))
        sizes[feature] += changes.indptr[i + 1] - changes.indptr[i]
        if largest > scales[feature] * np.float32(INT8_MAX) or scales[feature] <= 0.0:
            scales[feature] = max(largest, np.float32(1e-30)) / np.float32(INT8_MAX)
    return sizes


@kernel()
def merge_rows(old: FeatureRows, features: Ints, changes: CsrArrays, new: FeatureRows) -> int:
    """Write the weights of all features to ``new``, whose scales are set; return their number.

    Both the ids of a feature and those of its changes are in order. ``new.starts`` is filled.
    """
    end, i = integer(0), 0
    for feature in range(len(old.scales)):
        new.starts[feature] = end
        at, stop = integer(old.starts[feature]), integer(old.starts[feature + 1])
        factor = np.float32(1.0)
        if i < len(features) and features[i] == feature:
            factor = old.scales[feature] / new.scales[feature]
            for change in range(changes.indptr[i], changes.indptr[i + 1]):
                node, first = changes.indices[change], at
                at = integer(lower_bound(old.ids, first, stop, node))
                end = copy_weights(old, first, at, factor, new, end)
                if at < stop and old.ids[at] == node:
                    at += 1
                end = put(new, end, node, changes.data[change] / new.scales[feature])
            i += 1
        end = copy_weights(old, at, stop, factor, new, end)
    new.starts[len(old.scales)] = end
    return end


@part()
def copy_weights(old: FeatureRows, at: int, stop: int, factor: np.float32, new: FeatureRows, end: int) -> int:
    """Append old weights, each times the factor between their scales; return the new end."""
    if factor == 1.0:
        for j in range(stop - at):
            new.values[np.uint64(end + j)] = old.values[np.uint64(at + j)]
            new.ids[np.uint64(end + j)] = old.ids[np.uint64(at + j)]
        end += stop - at
    else:
        for j in range(at, stop):
            end = put(new, end, old.ids[j], old.values[j] * factor)
    return end


@part()
def put(new: FeatureRows, end: int, node: int, value: np.float32) -> int:
    """Append a weight, in units of its scale, unless it is 0; return the new end."""
    rounded = min(max(np.rint(value), np.float32(-INT8_MAX)), np.float32(INT8_MAX))
    if rounded != 0.0:
        new.values[end], new.ids[end] = np.int8(rounded), node
        return end + 1
    return end
