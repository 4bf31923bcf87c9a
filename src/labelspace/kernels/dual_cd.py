"""Dual coordinate descent for linear classifiers, one label at a time, on all rows of a CSR matrix (as LIBLINEAR).

Squared hinge:  min_w  |w|^2 / 2 + C sum_i max(0, 1 - y_i w.x_i)^2     Hsieh et al., ICML 2008, Algorithm 3, shrinking
Logistic:       min_w  |w|^2 / 2 + C sum_i log(1 + exp(-y_i w.x_i))    Yu, Huang and Lin, Machine Learning, 2011

The bias is one more feature of value ``bias`` in every row, regularized like the others; its weight is the last of w.
"""

import numpy as np
import numpy.typing as npt
from numba import njit

from labelspace.kernels.random_numbers import initial_state, shuffle
from labelspace.types import Floats, Ints


@njit(cache=True, nogil=True)
def squared_norms(data: Floats, indptr: Ints, bias: float) -> Floats:
    """|x_i|^2 of every row, including the bias feature. Shape (n,)."""
    out = np.empty(len(indptr) - 1, np.float32)
    for row in range(len(out)):
        total = bias * bias
        for j in range(indptr[row], indptr[row + 1]):
            total += data[j] * data[j]
        out[row] = total
    return out


@njit(cache=True, nogil=True)
def solve_squared_hinge(
    data: Floats, indices: Ints, indptr: Ints, norms: Floats, positive: npt.NDArray[np.bool_], bias: float,
    C: float, tolerance: float, max_iter: int, seed: int, w: Floats, alpha: Floats, order: Ints,
) -> int:  # fmt: skip
    """Fit one label into ``w`` (D + 1, zeros); ``alpha`` and ``order`` (n) are scratch. Returns the iterations made."""
    n, bias_index, diagonal = len(norms), len(w) - 1, np.float32(0.5 / C)
    state = initial_state(seed)
    for i in range(n):
        alpha[i], order[i] = 0.0, i
    n_active, shrink_above, n_iter = n, np.inf, 0
    while n_iter < max_iter:
        n_iter += 1
        max_gradient, min_gradient = -np.inf, np.inf
        state = shuffle(order, n_active, state)
        pos = 0
        while pos < n_active:
            i = order[pos]
            start, stop = indptr[i], indptr[i + 1]
            margin = np.float32(bias) * w[bias_index]
            for j in range(start, stop):
                margin += data[j] * w[indices[j]]
            gradient = (margin if positive[i] else -margin) - np.float32(1.0) + diagonal * alpha[i]
            if alpha[i] == 0.0 and gradient > 0.0:
                if gradient > shrink_above:
                    n_active -= 1
                    order[pos], order[n_active] = order[n_active], order[pos]
                    continue
                pos += 1
                max_gradient, min_gradient = max(max_gradient, 0.0), min(min_gradient, 0.0)
                continue
            pos += 1
            max_gradient, min_gradient = max(max_gradient, gradient), min(min_gradient, gradient)
            if abs(gradient) > 1e-12:
                new = max(alpha[i] - gradient / (norms[i] + diagonal), np.float32(0.0))
                step = new - alpha[i] if positive[i] else alpha[i] - new
                alpha[i] = new
                for j in range(start, stop):
                    w[indices[j]] += step * data[j]
                w[bias_index] += step * np.float32(bias)
        if max_gradient - min_gradient <= tolerance:
            if n_active == n:
                break
            n_active, shrink_above = n, np.inf  # check the shrunk rows before stopping
            continue
        shrink_above = max_gradient if max_gradient > 0.0 else np.inf
    return n_iter


@njit(cache=True, nogil=True)
def solve_logistic(
    data: Floats, indices: Ints, indptr: Ints, norms: Floats, positive: npt.NDArray[np.bool_], bias: float,
    C: float, tolerance: float, max_iter: int, seed: int, w: Floats, alpha: Floats, order: Ints,
) -> int:  # fmt: skip
    """``solve_squared_hinge`` for the logistic loss: each alpha is between 0 and C, found by a few Newton steps."""
    n, bias_index = len(norms), len(w) - 1
    state = initial_state(seed)
    min_alpha = min(1e-3 * C, 1e-8)
    for i in range(n):
        alpha[i], order[i] = min_alpha, i
        step = np.float32(min_alpha if positive[i] else -min_alpha)
        for j in range(indptr[i], indptr[i + 1]):
            w[indices[j]] += step * data[j]
        w[bias_index] += step * np.float32(bias)
    inner_tolerance, n_iter = 1e-2, 0
    while n_iter < max_iter:
        n_iter += 1
        max_gradient, newton_steps = 0.0, 0
        state = shuffle(order, n, state)
        for i in order[:n]:
            margin = np.float32(bias) * w[bias_index]
            for j in range(indptr[i], indptr[i + 1]):
                margin += data[j] * w[indices[j]]
            signed_margin, curvature = np.float64(margin if positive[i] else -margin), np.float64(norms[i])
            # Solve for alpha or C - alpha, whichever will be below C / 2: there Newton's method converges.
            old, sign = min(max(np.float64(alpha[i]), min_alpha), C - min_alpha), 1.0
            if 0.5 * curvature * (C - 2.0 * old) + signed_margin < 0.0:
                old, sign = C - old, -1.0
            z = 0.1 * old if C - old < 0.5 * C else old
            gradient = curvature * (z - old) + sign * signed_margin + np.log(z / (C - z))
            max_gradient = max(max_gradient, abs(gradient))
            moved = False
            for _ in range(100):
                if abs(gradient) < inner_tolerance:
                    break
                new = z - gradient / (curvature + C / (C - z) / z)
                z = new if new > 0.0 else 0.1 * z
                gradient = curvature * (z - old) + sign * signed_margin + np.log(z / (C - z))
                newton_steps += 1
                moved = True
            if moved:
                alpha[i] = z if sign > 0.0 else C - z
                step = np.float32(sign * (z - old) if positive[i] else sign * (old - z))
                for j in range(indptr[i], indptr[i + 1]):
                    w[indices[j]] += step * data[j]
                w[bias_index] += step * np.float32(bias)
        if max_gradient < tolerance:
            break
        if newton_steps <= n / 10:
            inner_tolerance = max(1e-8, 0.1 * inner_tolerance)
    return n_iter
