"""Kernels of FastXML: growing a tree of documents, and scoring labels by the leaves that a document reaches.

The nodes of a tree are numbered level by level. The children of node i are child[i] and child[i] + 1, and 0 is no
child. A node with children has weights, a leaf has documents.

The two sides of a node are separated by logistic regression with an L1 penalty, on a CSC matrix, by Newton steps
(newGLMNET: Yuan, Ho and Lin, JMLR 2012):

    min_w  |w|_1 + sum_i c_i log(1 + exp(-y_i w.x_i))

1. At w, take the gradient g and the diagonal D of the second derivatives of the losses.
2. Find d that minimizes g.d + d'X'DXd / 2 + |w + d|_1 by coordinate descent, which keeps Xd up to date.
3. Go along d as far as the objective falls enough (Armijo), and repeat.

Features of weight 0 whose gradient is well within [-1, 1] are left out until all others have converged.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import kernel
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.dual_cd import SolverOptions
from labelspace.kernels.random_numbers import initial_state, next_state, shuffle
from labelspace.kernels.sparse_layers import group_by_feature
from labelspace.kernels.topk import push, sort_best_first
from labelspace.kernels.tree_classifiers import compact_rows
from labelspace.types import Bools, Doubles, Floats, Ints, Longs

DAMPING = 1e-12  # added to each second derivative: a feature without curvature still has a step
MAX_PASSES = 100  # of coordinate descent per Newton step; the tolerance of a step usually ends it earlier
MAX_HALVINGS = 20  # of the step along d, after which w stays as it is
SMALLEST_STEP = 1e-14  # a smaller change of a weight is lost in rounding, and is not worth reading its column
SUFFICIENT = 0.01  # share of the predicted decrease that a step must reach, as in LIBLINEAR
LEAST_GAIN = 1e-6  # of the mean nDCG: the sides of a node have settled when a round gains less
MAX_ROUNDS = 100  # of moving documents between the two sides of a node

Weights = npt.NDArray[np.int8]
MAX_WEIGHT = 127  # of a node's weights, which are whole numbers of 8 bits


class Examples(NamedTuple):
    """The documents of a logistic regression: side, cost, margin, and the derivatives of the loss by the margin."""

    positive: Bools
    costs: Doubles
    margins: Doubles
    slope: Doubles
    curvature: Doubles


class Newton(NamedTuple):
    """The state of a Newton step: gradient, second derivatives, weights, the direction of a step, and X times it."""

    g: Doubles
    h: Doubles
    w: Doubles
    d: Doubles
    xd: Doubles


class Targets(NamedTuple):
    """The gain of each label of each document, the weights of documents, and the discount of each rank."""

    gains: CsrArrays
    row_weights: Doubles
    discounts: Doubles


class Forest(NamedTuple):
    """All trees: the weights of node i are at weight_starts[i] : weight_starts[i + 1], its documents likewise."""

    roots: Ints
    child: Ints
    features: Ints
    weights: Weights
    weight_starts: Longs
    documents: Ints
    document_starts: Longs


class GivenLabels(NamedTuple):
    """The labels of training document i, at ptr[i] : ptr[i + 1], and the weight of each label in a score."""

    labels: Ints
    ptr: Longs
    weights: Floats


class Tail(NamedTuple):
    """The tail classifiers: the mean documents of the labels (n_features + 1, n_labels), with their squared norms.

    ``values`` are those of the documents as given, of which the trees may see normalized ones; a score is the tree's to
    the power of alpha, times that of the tail classifier to the power of 1 - alpha.
    """

    values: Floats
    means: CsrArrays
    norms: Floats
    alpha: float
    gamma: float


@kernel()
def soft_step(g: float, h: float, w: float) -> float:
    """Return the z that minimizes g z + h z^2 / 2 + |w + z|."""
    if g + 1.0 <= h * w:
        return -(g + 1.0) / h
    if g - 1.0 >= h * w:
        return -(g - 1.0) / h
    return -w


@kernel()
def violation(g: float, w: float) -> float:
    """Return how far a gradient is from its value at the best w: -sign(w), or within [-1, 1] for a w of 0."""
    if w > 0.0:
        return abs(g + 1.0)
    if w < 0.0:
        return abs(g - 1.0)
    return max(abs(g) - 1.0, 0.0)


@kernel()
def loss_terms(examples: Examples) -> float:
    """Compute the first and second derivative of each loss by its margin; return the sum of the losses."""
    positive, costs, margins, slope, curvature = examples
    total = 0.0
    for i in range(len(margins)):
        signed = margins[i] if positive[i] else -margins[i]
        small = np.exp(-abs(signed))
        wrong = (small if signed > 0.0 else 1.0) / (1.0 + small)  # 1 / (1 + exp(signed))
        slope[i] = -costs[i] * wrong if positive[i] else costs[i] * wrong
        curvature[i] = costs[i] * wrong * (1.0 - wrong)
        total += costs[i] * (np.log1p(small) + max(-signed, 0.0))
    return total


@kernel()
def newton_direction(by_column: CsrArrays, curvature: Doubles, active: Ints, tolerance: float, newton: Newton) -> None:
    """Compute the direction of step 2 into ``d``, and X d into ``xd``; both are zeros at first."""
    data, rows, starts = by_column
    g, h, w, d, xd = newton
    for _ in range(MAX_PASSES):
        left = 0.0
        for j in active:
            slope = g[j] + DAMPING * d[j]
            for m in range(starts[j], starts[j + 1]):
                slope += data[m] * curvature[rows[m]] * xd[rows[m]]
            left += violation(slope, w[j] + d[j])
            z = soft_step(slope, h[j], w[j] + d[j])
            if abs(z) < SMALLEST_STEP:
                continue
            d[j] += z
            for m in range(starts[j], starts[j + 1]):
                xd[rows[m]] += data[m] * z
        if left <= tolerance:
            return


@kernel()
def line_search(examples: Examples, active: Ints, newton: Newton, loss: float) -> float:
    """Make step 3: move ``w`` and the margins, update the derivatives, and return the new sum of losses."""
    margins = examples.margins
    g, _, w, d, xd = newton
    predicted = 0.0
    for j in active:
        predicted += g[j] * d[j] + abs(w[j] + d[j]) - abs(w[j])
    step, moved = 1.0, 0.0
    for _ in range(MAX_HALVINGS):
        for i in range(len(margins)):
            margins[i] += (step - moved) * xd[i]
        moved = step
        norms = 0.0
        for j in active:
            norms += abs(w[j] + step * d[j]) - abs(w[j])
        new = loss_terms(examples)
        if new - loss + norms <= SUFFICIENT * step * predicted:
            for j in active:
                w[j] += step * d[j]
            return new
        step *= 0.5
    for i in range(len(margins)):
        margins[i] -= moved * xd[i]
    return loss_terms(examples)


@kernel()
def solve_l1_logistic(
    by_column: CsrArrays, positive: Bools, costs: Doubles, tolerance: float, max_iter: int, w: Doubles, margins: Doubles
) -> int:
    """Fit ``w`` (zeros), with ``margins`` (zeros) = X w; return the number of Newton steps made.

    Stops when the violations of optimality add up to at most ``tolerance`` times the violations at 0.
    """
    data, rows, starts = by_column
    n, n_columns = len(costs), len(starts) - 1
    g, h = np.empty(n_columns), np.empty(n_columns)
    d, xd = np.zeros(n_columns), np.zeros(n)
    newton = Newton(g, h, w, d, xd)
    slope = np.empty(n)
    examples = Examples(positive, costs, margins, slope, np.empty(n))
    active = np.arange(n_columns).astype(np.int32)
    n_active = n_columns
    loss = loss_terms(examples)
    first, shrink_below, inner = -1.0, -np.inf, 1.0
    for n_iter in range(max_iter):
        total, largest, pos = 0.0, 0.0, 0
        while pos < n_active:
            j = active[pos]
            g[j], h[j] = 0.0, DAMPING
            for m in range(starts[j], starts[j + 1]):
                g[j] += data[m] * slope[rows[m]]
                h[j] += data[m] * data[m] * examples.curvature[rows[m]]
            if w[j] == 0.0 and abs(g[j]) < shrink_below:
                n_active -= 1
                active[pos], active[n_active] = active[n_active], active[pos]
                continue
            wrong = violation(g[j], w[j])
            total += wrong
            largest = max(largest, wrong)
            pos += 1
        if first < 0.0:
            first, inner = total, total
        if total <= tolerance * first:
            if n_active == n_columns:
                return n_iter
            n_active, shrink_below = n_columns, -np.inf  # check the features that were left out before stopping
            continue
        shrink_below = 1.0 - largest / n
        inner = min(inner, 0.25 * total)
        newton_direction(by_column, examples.curvature, active[:n_active], inner, newton)
        loss = line_search(examples, active[:n_active], newton, loss)
        for j in active[:n_active]:
            d[j] = 0.0
        for i in range(n):
            xd[i] = 0.0
    return max_iter


@kernel()
def partition_by_ndcg(targets: Targets, n_labels: int, positive: Bools) -> int:
    """Move documents between two groups, from a start in ``positive``, while the mean nDCG rises; return the rounds.

    Document i has labels[ends[i] : ends[i + 1]] with their ``gains``. A round ranks the labels of each group by the
    sum of gains, each times the weight of its document; rank r has discounts[r]. A document then goes to the group in
    which its DCG is larger; if they are equal, it stays.
    """
    (gains, labels, ends), row_weights, discounts = targets
    n, n_rounds = len(row_weights), 0
    sums, advantage = np.empty((2, n_labels)), np.empty(n_labels)
    before = -np.inf
    for _ in range(MAX_ROUNDS):
        n_rounds += 1
        for label in range(n_labels):
            sums[0, label], sums[1, label], advantage[label] = 0.0, 0.0, 0.0
        for i in range(n):
            group = 1 if positive[i] else 0
            for j in range(ends[i], ends[i + 1]):
                sums[group, labels[j]] -= gains[j] * row_weights[i]  # negative: the sort is ascending
        ndcg = 0.0
        for group in range(2):
            order = np.argsort(sums[group], kind="mergesort")
            for rank, label in enumerate(order):
                advantage[label] += discounts[rank] if group == 1 else -discounts[rank]
                ndcg -= discounts[rank] * sums[group, label]
        for i in range(n):
            difference = 0.0
            for j in range(ends[i], ends[i + 1]):
                difference += gains[j] * advantage[labels[j]]
            if difference != 0.0:
                positive[i] = difference > 0.0
        ndcg /= n
        if ndcg - before < LEAST_GAIN:
            break
        before = ndcg
    return n_rounds


@kernel()
def round_weights(w: Doubles, max_value: int) -> None:
    """Scale weights so that the largest is ``max_value``, and round them.

    A split needs only the sign of w.x, so the scale is not kept.
    """
    largest = 0.0
    for value in w:
        largest = max(largest, abs(value))
    for j in range(len(w)):
        w[j] = np.rint(w[j] / largest * max_value) if largest > 0.0 else 0.0


@kernel()
def split_node(
    X: CsrArrays, targets: Targets, rows: Ints, options: SolverOptions, new_id: Ints, positive: Bools
) -> tuple[Ints, Weights]:
    """Split the documents ``rows`` in two, from a start in ``positive``; return the features and weights of the split.

    Afterwards ``positive`` has the side of each document. Without weights there is no split. ``new_id`` has room for a
    number for each label and each feature; it is scratch, all -1 before and after.
    """
    n = len(rows)
    node_gains, node_labels, ends, label_ids = compact_rows(targets.gains, rows, new_id)
    own = Targets(CsrArrays(node_gains, node_labels, ends), targets.row_weights[rows], targets.discounts)
    partition_by_ndcg(own, len(label_ids), positive)
    n_positive = positive.sum()
    if not 0 < n_positive < n:
        return np.empty(0, np.int32), np.empty(0, np.int8)
    costs = np.empty(n)
    for i in range(n):
        costs[i] = options.C * n / (n_positive if positive[i] else n - n_positive)
    values, columns, ends, feature_ids = compact_rows(X, rows, new_id)
    entries = group_by_feature(values, columns, ends, np.zeros(len(feature_ids), np.int64))  # numbered as they come
    by_column = CsrArrays(entries.values, entries.rows, entries.ends)
    w, margins = np.zeros(len(feature_ids)), np.zeros(n)
    solve_l1_logistic(by_column, positive, costs, options.tolerance, options.max_iter, w, margins)
    round_weights(w, MAX_WEIGHT)
    for i in range(n):
        margin = 0.0
        for j in range(ends[i], ends[i + 1]):
            margin += values[j] * w[columns[j]]
        positive[i] = margin >= 0.0
    n_positive = positive.sum()
    kept = np.flatnonzero(w) if 0 < n_positive < n else np.empty(0, np.int64)
    return feature_ids[kept], w[kept].astype(np.int8)


@kernel()
def partition_rows(rows: Ints, positive: Bools) -> int:
    """Bring the positive rows to the front and return their number; the order within each side stays."""
    front, others = rows[positive], rows[~positive]
    rows[: len(front)], rows[len(front) :] = front, others
    return len(front)


@kernel()
def grow_tree(
    X: CsrArrays, n_features: int, targets: Targets, options: SolverOptions, max_leaf: int, max_kept: int, seed: int
) -> tuple[Ints, list[Ints], list[Weights], Ints, Ints, Ints]:
    """Grow a tree from random starts: split each node of more than ``max_leaf`` documents, if a split is found.

    A leaf keeps at most ``max_kept`` of its documents. Returns the first child of each node; features and weights of
    each split; the number of weights of each node; the documents of the leaves; the number of documents of each node.
    """
    n = len(X.indptr) - 1
    state = next_state(initial_state(seed))
    new_id = np.full(max(n_features, len(targets.discounts)), -1, np.int32)
    order = np.arange(n).astype(np.int32)
    positive = np.empty(n, np.bool_)
    begin, end, child = np.zeros(2 * n, np.int32), np.zeros(2 * n, np.int32), np.zeros(2 * n, np.int32)
    n_weights, n_documents = np.zeros(2 * n, np.int32), np.zeros(2 * n, np.int32)
    features, weights = [np.empty(0, np.int32)], [np.empty(0, np.int8)]
    documents = np.empty(n, np.int32)
    end[0] = n
    n_placed, n_nodes, node = 0, 1, 0
    while node < n_nodes:
        rows = order[begin[node] : end[node]]
        if len(rows) > max_leaf:
            for i in range(len(rows)):
                state = next_state(state)
                positive[i] = (state >> np.uint64(33)) & np.uint64(1) == np.uint64(1)
            found, w = split_node(X, targets, rows, options, new_id, positive[: len(rows)])
            if len(found):
                features.append(found)
                weights.append(w)
                n_weights[node] = len(found)
                middle = begin[node] + partition_rows(rows, positive[: len(rows)])
                begin[n_nodes], end[n_nodes] = begin[node], middle
                begin[n_nodes + 1], end[n_nodes + 1] = middle, end[node]
                child[node] = n_nodes
                n_nodes += 2
        if child[node] == 0:
            if len(rows) > max_kept:
                state = shuffle(rows, len(rows), state)
            n_documents[node] = min(len(rows), max_kept)
            for row in rows[: n_documents[node]]:
                documents[n_placed] = row
                n_placed += 1
        node += 1
    return child[:n_nodes], features, weights, n_weights[:n_nodes], documents[:n_placed], n_documents[:n_nodes]


@kernel()
def find_leaf(x: Floats, root: int, forest: Forest) -> int:
    """Return the leaf that a dense document ``x`` reaches."""
    child, features, weights, weight_starts = forest.child, forest.features, forest.weights, forest.weight_starts
    node = root
    while child[node] > 0:
        margin = 0.0  # products of int8 and float32 are exact, and so are their sums: ties are ties in any order
        for j in range(weight_starts[node], weight_starts[node + 1]):
            margin += np.float64(weights[j]) * x[features[j]]
        node = child[node] if margin >= 0.0 else child[node] + 1
    return node


@kernel()
def leaf_votes(x: Floats, forest: Forest, votes: Floats, voters: Ints) -> int:
    """Find the training documents that share a leaf with ``x``: write them into ``voters`` and return their number.

    A document's vote is the mean over trees of 1 / size of the leaf. ``votes`` (n_documents) is zeros at first.
    """
    n_voters = 0
    for root in forest.roots:
        leaf = find_leaf(x, root, forest)
        first, last = forest.document_starts[leaf], forest.document_starts[leaf + 1]
        for j in range(first, last):
            document = forest.documents[j]
            if votes[document] == 0.0:
                voters[n_voters] = document
                n_voters += 1
            votes[document] += np.float32(1.0 / ((last - first) * len(forest.roots)))
    return n_voters


@kernel()
def tail_similarities(data: Floats, indices: Ints, means: CsrArrays, out: Doubles) -> None:
    """Multiply a document, scaled to length 1 with its bias feature, with the mean document of each label."""
    t_data, t_indices, t_indptr = means
    bias = len(t_indptr) - 2
    total = 1.0
    for value in data:
        total += np.float64(value) * value
    scale = 1.0 / np.sqrt(total)
    for label in range(len(out)):
        out[label] = 0.0
    for m in range(t_indptr[bias], t_indptr[bias + 1]):
        out[t_indices[m]] += t_data[m] * scale
    for j in range(len(data)):
        for m in range(t_indptr[indices[j]], t_indptr[indices[j] + 1]):
            out[t_indices[m]] += data[j] * scale * t_data[m]


@kernel()
def forest_topk(
    X: CsrArrays, start: int, stop: int, forest: Forest, given: GivenLabels, tail: Tail, labels: Ints, scores: Floats
) -> None:
    """Find the k best labels of rows start..stop: the labels of documents in the same leaves, times a weight per label.

    With ``alpha`` below 1, the tail classifiers see the documents as given, and both scores are mixed.
    """
    values, indices, indptr = X
    given_labels, label_ptr, label_weights = given
    alpha = tail.alpha
    x = np.zeros(len(tail.means.indptr) - 1, np.float32)
    x[-1] = 1.0
    votes, voters = np.zeros(len(label_ptr) - 1, np.float32), np.empty(len(label_ptr) - 1, np.int32)
    n_labels = len(label_weights)
    sums, found = np.zeros(n_labels, np.float32), np.empty(n_labels, np.int32)
    similarity = np.empty(n_labels)
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        for j in range(first, last):
            x[indices[j]] = values[j]
        n_voters = leaf_votes(x, forest, votes, voters)
        for j in range(first, last):
            x[indices[j]] = 0.0
        n_found = 0
        for document in voters[:n_voters]:
            for j in range(label_ptr[document], label_ptr[document + 1]):
                if sums[given_labels[j]] == 0.0:
                    found[n_found] = given_labels[j]
                    n_found += 1
                sums[given_labels[j]] += votes[document]
            votes[document] = 0.0
        if alpha < 1.0:
            tail_similarities(tail.values[first:last], indices[first:last], tail.means, similarity)
        size = 0
        for label in found[:n_found]:
            score = np.float64(sums[label] * label_weights[label])
            if alpha < 1.0:
                distance = tail.norms[label] + 1.0 - 2.0 * similarity[label]
                nearness = 1.0 / (1.0 + np.exp(tail.gamma * distance))
                score = score**alpha * nearness ** (1.0 - alpha)
            size = push(scores[row], labels[row], size, np.float32(score), label)
            sums[label] = 0.0
        sort_best_first(scores[row], labels[row], size)
