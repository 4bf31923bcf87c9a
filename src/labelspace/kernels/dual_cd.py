"""Dual coordinate descent for linear classifiers on all rows of a CSR matrix (as LIBLINEAR).

Squared hinge:  min_w  |w|^2 / 2 + C sum_i max(0, 1 - y_i w.x_i)^2     Hsieh et al., ICML 2008, Algorithm 3, shrinking
Logistic:       min_w  |w|^2 / 2 + C sum_i log(1 + exp(-y_i w.x_i))    Yu, Huang and Lin, Machine Learning, 2011

The squared hinge is fitted for several labels side by side, in lanes: a row is read once for all labels.
The bias is one more feature of value ``bias`` in every row, regularized like the others; its weight is the last of w.
"""

from typing import NamedTuple

import numpy as np

from labelspace.kernels.compiled import kernel, part
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.lanes import LANES, add_row_products, add_to_rows
from labelspace.kernels.random_numbers import initial_state, shuffle
from labelspace.types import Bools, Doubles, Floats, Ints, Longs

MAX_NEWTON_STEPS = 100  # of one alpha of the logistic loss; a few are enough, the bound only ends a bad case
FIRST_INNER_TOLERANCE = 1e-2  # of Newton, which is lowered in later passes


class SolverOptions(NamedTuple):
    """The weight of the loss, and when a solver stops."""

    C: float
    tolerance: float
    max_iter: int


@part()
def soft_threshold(value: np.float32, l1: np.float32) -> np.float32:
    """Return sign(value) max(|value| - l1, 0)."""
    return value - max(min(value, l1), -l1)


@kernel()
def squared_norms(data: Floats, indptr: Ints | Longs, bias: float) -> Floats:
    """Return |x_i|^2 of every row, including the bias feature. Shape (n,)."""
    out = np.empty(len(indptr) - 1, np.float32)
    for row in range(len(out)):
        total = bias * bias
        for j in range(indptr[row], indptr[row + 1]):
            total += data[j] * data[j]
        out[row] = total
    return out


@part()
def lane_steps(
    margins: Floats, y: Floats, norm: float, diag: np.float32, alpha: Floats, lanes: Floats, done: Bools, steps: Floats
) -> tuple[bool, bool]:
    """Solve for a row's ``alpha`` of each lane; return whether any moved, and whether any lane still needs the row.

    ``lanes`` (3, LANES) holds, for each lane: the gradient above which the lane needs no row, and its largest and
    smallest gradient so far.
    """
    moved, needed = False, False
    for lane in range(LANES):
        steps[lane] = 0.0
        old = alpha[lane]
        gradient = y[lane] * margins[lane] - np.float32(1.0) + diag * old
        if done[lane] or (old == 0.0 and gradient > lanes[0, lane]):
            continue
        needed = True
        if old == 0.0:
            gradient = min(gradient, np.float32(0.0))
        lanes[1, lane], lanes[2, lane] = max(lanes[1, lane], gradient), min(lanes[2, lane], gradient)
        if gradient != 0.0:
            alpha[lane] = max(old - gradient / (norm + diag), np.float32(0.0))
            steps[lane] = y[lane] * (alpha[lane] - old)
            moved = True
    return moved, needed


@kernel()
def solve_squared_hinge(
    X: CsrArrays,
    norms: Floats,
    weights: Doubles,
    signs: Floats,
    bias: float,
    options: SolverOptions,
    seed: int,
    w: Floats,
    alpha: Floats,
    order: Ints,
) -> int:
    """Fit up to ``LANES`` labels side by side into ``w`` (D + 1, LANES), zeros; return the number of iterations.

    ``weights`` (n), above 0, multiply C. ``signs`` (n, LANES) is 1 for positives, -1 for negatives, 0 for a lane
    without a label. A row is read once for all labels, and is shrunk when none needs it; a label that has converged
    rests. ``alpha`` (n, LANES) and ``order`` (n) are scratch.
    """
    data, indices, indptr = X
    n = len(norms)
    state = initial_state(seed)
    margins, steps = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    lanes = np.empty((3, LANES), np.float32)
    resting = np.empty(LANES, np.bool_)
    for i in range(n):
        order[i] = i
        for lane in range(LANES):
            alpha[i, lane] = 0.0
    for lane in range(LANES):
        resting[lane], lanes[0, lane] = signs[0, lane] == 0.0, np.inf
    n_active, n_iter, converged, checking = n, 0, False, False
    while n_iter < options.max_iter and not converged:
        n_iter += 1
        rows = order[n_active:] if checking else order[:n_active]
        size, pos = len(rows), 0
        for lane in range(LANES):
            lanes[1, lane], lanes[2, lane] = -np.inf, np.inf
        state = shuffle(rows, size, state)
        while pos < size:
            i = rows[pos]
            for lane in range(LANES):
                margins[lane] = w[-1, lane] * np.float32(bias)
            add_row_products(data, indices, indptr[i], indptr[i + 1], w, margins)
            diagonal = np.float32(0.5 / (options.C * weights[i]))
            moved, needed = lane_steps(margins, signs[i], norms[i], diagonal, alpha[i], lanes, resting, steps)
            if moved:
                add_to_rows(data, indices, indptr[i], indptr[i + 1], w, steps)
                for lane in range(LANES):
                    w[-1, lane] += steps[lane] * np.float32(bias)
            if needed:
                pos += 1
            else:
                size -= 1
                rows[pos], rows[size] = rows[size], rows[pos]
        converged = True
        for lane in range(LANES):
            if not resting[lane]:
                resting[lane] = lanes[1, lane] - lanes[2, lane] <= options.tolerance
                converged &= resting[lane]
                lanes[0, lane] = lanes[1, lane] if lanes[1, lane] > 0.0 else np.inf
        n_active = n if checking else size
        checking = converged and n_active < n  # the shrunk rows, once more, before stopping
        if checking:
            converged = False
            for lane in range(LANES):
                resting[lane], lanes[0, lane] = signs[0, lane] == 0.0, np.inf
    return n_iter


@part()
def least_alpha(C: float) -> float:
    """Return the smallest alpha of the logistic loss, which needs the logarithm of alpha."""
    return min(1e-3 * C, 1e-8)


@part()
def logistic_step(
    old: float, C: float, signed_margin: float, curvature: float, inner_tolerance: float
) -> tuple[float, float, float, int]:
    """Solve for one alpha of the logistic loss by Newton's method, from ``old``, which is between 0 and C.

    Return the new alpha, its change, the absolute gradient before, and the number of steps.
    """
    # Solve for alpha or C - alpha, whichever will be below C / 2: there Newton's method converges.
    start, sign, n_steps = old, 1.0, 0
    if 0.5 * curvature * (C - 2.0 * old) + signed_margin < 0.0:
        start, sign = C - old, -1.0
    z = 0.1 * start if C - start < 0.5 * C else start
    gradient = curvature * (z - start) + sign * signed_margin + np.log(z / (C - z))
    first_gradient = abs(gradient)
    while n_steps < MAX_NEWTON_STEPS and abs(gradient) >= inner_tolerance:
        new = z - gradient / (curvature + C / (C - z) / z)
        z = new if new > 0.0 else 0.1 * z
        gradient = curvature * (z - start) + sign * signed_margin + np.log(z / (C - z))
        n_steps += 1
    return (z if sign > 0.0 else C - z), sign * (z - start), first_gradient, n_steps


@kernel()
def solve_logistic(
    X: CsrArrays,
    norms: Floats,
    weights: Doubles,
    positive: Bools,
    bias: float,
    options: SolverOptions,
    seed: int,
    w: Floats,
    alpha: Floats,
    order: Ints,
) -> None:
    """Fit one label with the logistic loss into ``w`` (D + 1,), zeros.

    Each alpha is between 0 and C times the weight of its row, found by a few Newton steps. ``alpha`` (n,) and ``order``
    (n,) are scratch.
    """
    data, indices, indptr = X
    n, bias_index = len(norms), len(w) - 1
    state = initial_state(seed)
    # The loss needs the logarithm of alpha: it starts just above 0, and the tolerance of Newton falls from 0.01.
    for i in range(n):
        min_alpha = least_alpha(options.C * weights[i])
        alpha[i], order[i] = min_alpha, i
        step = np.float32(min_alpha if positive[i] else -min_alpha)
        for j in range(indptr[i], indptr[i + 1]):
            w[indices[j]] += step * data[j]
        w[bias_index] += step * np.float32(bias)
    inner_tolerance = FIRST_INNER_TOLERANCE
    for _ in range(options.max_iter):
        max_gradient, newton_steps = 0.0, 0
        state = shuffle(order, n, state)
        for i in order[:n]:
            margin = np.float32(bias) * w[bias_index]
            for j in range(indptr[i], indptr[i + 1]):
                margin += data[j] * w[indices[j]]
            signed_margin, curvature = np.float64(margin if positive[i] else -margin), np.float64(norms[i])
            C = options.C * weights[i]
            min_alpha = least_alpha(C)
            old = min(max(np.float64(alpha[i]), min_alpha), C - min_alpha)
            new, change, gradient, n_steps = logistic_step(old, C, signed_margin, curvature, inner_tolerance)
            max_gradient = max(max_gradient, gradient)
            newton_steps += n_steps
            if n_steps:
                alpha[i] = new
                step = np.float32(change if positive[i] else -change)
                for j in range(indptr[i], indptr[i + 1]):
                    w[indices[j]] += step * data[j]
                w[bias_index] += step * np.float32(bias)
        if max_gradient < options.tolerance:
            break
        if newton_steps <= n / 10:
            inner_tolerance = max(1e-8, 0.1 * inner_tolerance)
