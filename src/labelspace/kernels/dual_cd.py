"""Dual coordinate descent for linear machines, one label at a time, over all rows of a CSR matrix.

Squared hinge:  min_w  |w|^2 / 2 + C sum_i max(0, 1 - y_i w.x_i)^2     Hsieh et al., ICML 2008, Algorithm 3, shrinking
Logistic:       min_w  |w|^2 / 2 + C sum_i log(1 + exp(-y_i w.x_i))    Yu, Huang and Lin, Machine Learning, 2011

The bias is one more feature of value ``bias`` in every row, regularized like the others, in the last place of w.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from labelspace.kernels.random_numbers import seeded, shuffle
from labelspace.types import Floats, Ints


@njit(cache=True, nogil=True)
def squared_norms(data: Floats, indptr: Ints, bias: float) -> Floats:
    """|x_i|^2 of every row, the bias feature included. Shape (n,)."""
    out = np.empty(len(indptr) - 1, np.float32)
    for row in range(len(out)):
        total = bias * bias
        for j in range(indptr[row], indptr[row + 1]):
            total += data[j] * data[j]
        out[row] = total
    return out


@njit(cache=True, nogil=True)
def descend(
    data: Floats,
    indices: Ints,
    indptr: Ints,
    norms: Floats,
    positive: npt.NDArray[np.bool_],
    bias: float,
    C: float,
    tolerance: float,
    max_passes: int,
    seed: int,
    w: Floats,
    alpha: Floats,
    order: Ints,
) -> int:
    """Fit one label into ``w`` (D + 1, all zeros); ``alpha`` and ``order`` (n) are scratch. Returns the passes made."""
    n = len(norms)
    diagonal = np.float32(0.5 / C)
    state = seeded(seed)
    bias_at = len(w) - 1
    for i in range(n):
        alpha[i] = 0.0
        order[i] = i
    active = n
    shrink_above = np.inf
    passes = 0
    while passes < max_passes:
        passes += 1
        largest, smallest = -np.inf, np.inf
        state = shuffle(order, active, state)
        at = 0
        while at < active:
            i = order[at]
            start, stop = indptr[i], indptr[i + 1]
            margin = np.float32(bias) * w[bias_at]
            for j in range(start, stop):
                margin += data[j] * w[indices[j]]
            gradient = (margin if positive[i] else -margin) - np.float32(1.0) + diagonal * alpha[i]
            if alpha[i] == 0.0 and gradient > 0.0:
                if gradient > shrink_above:
                    active -= 1
                    order[at], order[active] = order[active], order[at]
                    continue
                at += 1
                largest, smallest = max(largest, 0.0), min(smallest, 0.0)
                continue
            at += 1
            largest, smallest = max(largest, gradient), min(smallest, gradient)
            if abs(gradient) > 1e-12:
                new = max(alpha[i] - gradient / (norms[i] + diagonal), np.float32(0.0))
                step = new - alpha[i] if positive[i] else alpha[i] - new
                alpha[i] = new
                for j in range(start, stop):
                    w[indices[j]] += step * data[j]
                w[bias_at] += step * np.float32(bias)
        if largest - smallest <= tolerance:
            if active == n:
                break
            active = n  # the shrunk rows are looked at once more before we believe it
            shrink_above = np.inf
            continue
        shrink_above = largest if largest > 0.0 else np.inf
    return passes


@njit(cache=True, nogil=True)
def descend_logistic(
    data: Floats,
    indices: Ints,
    indptr: Ints,
    norms: Floats,
    positive: npt.NDArray[np.bool_],
    bias: float,
    C: float,
    tolerance: float,
    max_passes: int,
    seed: int,
    w: Floats,
    alpha: Floats,
    order: Ints,
) -> int:
    """As ``descend``, for the logistic loss: each alpha lies between 0 and C and is found by a few Newton steps."""
    n, bias_at = len(norms), len(w) - 1
    state = seeded(seed)
    least = min(1e-3 * C, 1e-8)
    for i in range(n):
        alpha[i] = least
        order[i] = i
        step = np.float32(least if positive[i] else -least)
        for j in range(indptr[i], indptr[i + 1]):
            w[indices[j]] += step * data[j]
        w[bias_at] += step * np.float32(bias)
    inner_tolerance = 1e-2
    passes = 0
    while passes < max_passes:
        passes += 1
        largest, newton_steps = 0.0, 0
        state = shuffle(order, n, state)
        for i in order[:n]:
            margin = np.float32(bias) * w[bias_at]
            for j in range(indptr[i], indptr[i + 1]):
                margin += data[j] * w[indices[j]]
            slope, curve = np.float64(margin if positive[i] else -margin), np.float64(norms[i])
            # Solve for alpha or for C - alpha, whichever ends up below C / 2: there Newton's method is safe.
            old, sign = min(max(np.float64(alpha[i]), least), C - least), 1.0
            if 0.5 * curve * (C - 2.0 * old) + slope < 0.0:
                old, sign = C - old, -1.0
            z = 0.1 * old if C - old < 0.5 * C else old
            gradient = curve * (z - old) + sign * slope + np.log(z / (C - z))
            largest = max(largest, abs(gradient))
            moved = False
            for _ in range(100):
                if abs(gradient) < inner_tolerance:
                    break
                new = z - gradient / (curve + C / (C - z) / z)
                z = new if new > 0.0 else 0.1 * z
                gradient = curve * (z - old) + sign * slope + np.log(z / (C - z))
                newton_steps += 1
                moved = True
            if moved:
                alpha[i] = z if sign > 0.0 else C - z
                step = np.float32(sign * (z - old) if positive[i] else sign * (old - z))
                for j in range(indptr[i], indptr[i + 1]):
                    w[indices[j]] += step * data[j]
                w[bias_at] += step * np.float32(bias)
        if largest < tolerance:
            break
        if newton_steps <= n / 10:
            inner_tolerance = max(1e-8, 0.1 * inner_tolerance)
    return passes
