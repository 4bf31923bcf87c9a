"""Squared hinge with L1 for one label, by dual coordinate descent on active documents (Yen et al., KDD 2017).

    min_w  |w|^2 / 2 + l1 |w|_1 + C sum_i max(0, 1 - y_i w.x_i)^2

In the dual w is the soft-thresholded v = sum_i y_i a_i x_i, and few a_i are above 0: only documents that violate the
margin are visited. The bias is one more feature of value 1, without L1; its weight is the last of v.
"""

import numpy as np

from labelspace.kernels.compiled import kernel, part
from labelspace.kernels.growing_rows import soft_threshold
from labelspace.kernels.random_numbers import initial_state, next_state, shuffle
from labelspace.kernels.topk import push
from labelspace.types import Bools, Floats, Ints

NEGATIVES_PER_POSITIVE = 10  # of the active documents at the start
MIN_SELECTED = 100  # documents that a search may make active
SEARCH_EVERY = 3  # passes over the active documents, unless they are solved earlier


@part()
def draw_active(positives: Ints, most: int, seed: int, alpha: Floats, order: Ints) -> int:
    """The positives, then negatives drawn at random, at most ``most``; returns the number of both.

    ``alpha`` (n) becomes 0 for active documents; it is -1 for all before, which stands for not active.
    """
    n_active, state = 0, initial_state(seed)
    for i in positives:
        alpha[i], order[n_active] = 0.0, i
        n_active += 1
    for _ in range(min(NEGATIVES_PER_POSITIVE * len(positives), most)):
        state = next_state(state)
        i = np.int64(state % np.uint64(len(alpha)))
        if alpha[i] < 0.0:
            alpha[i], order[n_active] = 0.0, i
            n_active += 1
    return n_active


@part()
def visit_active(
    data: Floats, indices: Ints, indptr: Ints, norms: Floats, positive: Bools, C: float, l1: float, v: Floats,
    alpha: Floats, order: Ints, n_active: int,
) -> tuple[int, float]:  # fmt: skip
    """One step of coordinate descent for each active document; negatives with a_i = 0 become inactive.

    Returns the number of active documents and the largest projected gradient.
    """
    diagonal, bias, shrink, largest, pos = np.float32(0.5 / C), len(v) - 1, np.float32(l1), np.float32(0.0), 0
    while pos < n_active:
        i = order[pos]
        margin = v[bias]
        for j in range(indptr[i], indptr[i + 1]):
            margin += data[j] * soft_threshold(v[indices[j]], shrink)
        gradient = (margin if positive[i] else -margin) - np.float32(1.0) + diagonal * alpha[i]
        new = max(alpha[i] - gradient / (norms[i] + diagonal), np.float32(0.0))
        if new != alpha[i]:
            largest = max(largest, abs(gradient))
            step = new - alpha[i] if positive[i] else alpha[i] - new
            alpha[i] = new
            for j in range(indptr[i], indptr[i + 1]):
                v[indices[j]] += step * data[j]
            v[bias] += step
        if new == 0.0 and not positive[i]:
            alpha[i] = -1.0
            n_active -= 1
            order[pos], order[n_active] = order[n_active], order[pos]
        else:
            pos += 1
    return n_active, float(largest)


@part()
def add_violating(
    c_data: Floats, c_indices: Ints, c_indptr: Ints, l1: float, v: Floats, alpha: Floats, order: Ints, n_active: int,
    margins: Floats, best_margins: Floats, best: Ints,
) -> tuple[int, float]:  # fmt: skip
    """Make the negatives that violate the margin most active, at most ``len(best)``: X by features finds them.

    Returns the number of active documents and the largest violation. ``margins`` (n), ``best_margins`` and ``best`` are
    scratch.
    """
    bias = len(v) - 1
    for i in range(len(margins)):
        margins[i] = v[bias]
    for feature in range(bias):
        w = soft_threshold(v[feature], np.float32(l1))
        if w != 0.0:
            for j in range(c_indptr[feature], c_indptr[feature + 1]):
                margins[c_indices[j]] += w * c_data[j]
    found, largest = 0, np.float32(0.0)
    for i in range(len(margins)):
        if alpha[i] < 0.0 and margins[i] > -1.0:  # positives are always active
            largest = max(largest, np.float32(1.0) + margins[i])
            if found < len(best) or margins[i] > best_margins[0]:
                found = push(best_margins, best, found, margins[i], i)
    for i in best[:found]:
        alpha[i], order[n_active] = 0.0, i
        n_active += 1
    return n_active, float(largest)


@kernel()
def solve_l1_squared_hinge(
    data: Floats, indices: Ints, indptr: Ints, c_data: Floats, c_indices: Ints, c_indptr: Ints, norms: Floats,
    positives: Ints, C: float, l1: float, tolerance: float, max_iter: int, seed: int, v: Floats,
) -> int:  # fmt: skip
    """Fit one label with these positives into ``v`` (D + 1, zeros): X is given by documents and by features.

    Returns the passes made. The weights are v, soft-thresholded by l1 but for the last.
    """
    n = len(norms)
    most = max(n // 10, 1)
    alpha, order, positive = np.full(n, -1.0, np.float32), np.empty(n, np.int32), np.zeros(n, np.bool_)
    margins, best_margins, best = np.empty(n, np.float32), np.empty(most, np.float32), np.empty(most, np.int32)
    for i in positives:
        positive[i] = True
    n_active = draw_active(positives, most, seed, alpha, order)
    state = initial_state(seed)
    for n_iter in range(1, max_iter + 1):
        state = shuffle(order, n_active, state)
        n_active, gradient = visit_active(
            data, indices, indptr, norms, positive, C, l1, v, alpha, order, n_active
        )  # fmt: skip
        if gradient > tolerance and n_iter % SEARCH_EVERY:
            continue
        room = min(max(n_active, MIN_SELECTED), most)
        n_active, violation = add_violating(
            c_data, c_indices, c_indptr, l1, v, alpha, order, n_active, margins, best_margins[:room], best[:room]
        )
        if max(gradient, violation) <= tolerance:
            return n_iter
    return max_iter
