"""Logistic regression with an L1 penalty, on a CSC matrix, by Newton steps (newGLMNET: Yuan, Ho and Lin, JMLR 2012).

    min_w  |w|_1 + sum_i c_i log(1 + exp(-y_i w.x_i))

1. At w, take the gradient g and the diagonal D of the second derivatives of the losses.
2. Find d that minimizes g.d + d'X'DXd / 2 + |w + d|_1 by coordinate descent, which keeps Xd up to date.
3. Go along d as far as the objective falls enough (Armijo), and repeat.

Features of weight 0 whose gradient is well within [-1, 1] are left out until the others have converged.
"""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.types import Bools, Doubles, Floats, Ints, Longs

DAMPING = 1e-12  # added to each second derivative: a feature without curvature still has a step
MAX_PASSES = 100  # of coordinate descent per Newton step
MAX_HALVINGS = 20  # of the step along d
SUFFICIENT = 0.01  # share of the predicted decrease that is asked for


@kernel()
def to_columns(values: Floats, columns: Ints, ends: Ints | Longs, n_columns: int) -> tuple[Floats, Ints, Longs]:
    """A CSR matrix as CSC: values, rows, and where each column begins."""
    starts = np.zeros(n_columns + 1, np.int64)
    for column in columns:
        starts[column + 1] += 1
    for column in range(n_columns):
        starts[column + 1] += starts[column]
    at = starts[:-1].copy()
    by_column, rows = np.empty(len(values), np.float32), np.empty(len(values), np.int32)
    for row in range(len(ends) - 1):
        for j in range(ends[row], ends[row + 1]):
            to = at[columns[j]]
            by_column[to], rows[to] = values[j], row
            at[columns[j]] = to + 1
    return by_column, rows, starts


@kernel()
def soft_step(g: float, h: float, w: float) -> float:
    """The z that minimizes g z + h z^2 / 2 + |w + z|."""
    if g + 1.0 <= h * w:
        return -(g + 1.0) / h
    if g - 1.0 >= h * w:
        return -(g - 1.0) / h
    return -w


@kernel()
def violation(g: float, w: float) -> float:
    """How far a gradient is from what it must be where w is best: -sign(w), or within [-1, 1] for 0."""
    if w > 0.0:
        return abs(g + 1.0)
    if w < 0.0:
        return abs(g - 1.0)
    return max(abs(g) - 1.0, 0.0)


@kernel()
def loss_terms(positive: Bools, costs: Doubles, margins: Doubles, slope: Doubles, curvature: Doubles) -> float:
    """First and second derivatives of each loss by its margin; returns the sum of the losses."""
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
def newton_direction(
    data: Floats, rows: Ints, starts: Longs, curvature: Doubles, g: Doubles, h: Doubles, active: Ints, n_active: int,
    tolerance: float, w: Doubles, d: Doubles, xd: Doubles,
) -> None:  # fmt: skip
    """Step 2: the direction into ``d``, and X d into ``xd``; both are zeros at first."""
    for _ in range(MAX_PASSES):
        left = 0.0
        for j in active[:n_active]:
            slope = g[j] + DAMPING * d[j]
            for m in range(starts[j], starts[j + 1]):
                slope += data[m] * curvature[rows[m]] * xd[rows[m]]
            left += violation(slope, w[j] + d[j])
            z = soft_step(slope, h[j], w[j] + d[j])
            if abs(z) < 1e-14:
                continue
            d[j] += z
            for m in range(starts[j], starts[j + 1]):
                xd[rows[m]] += data[m] * z
        if left <= tolerance:
            return


@kernel()
def line_search(
    positive: Bools, costs: Doubles, active: Ints, n_active: int, g: Doubles, w: Doubles, d: Doubles, xd: Doubles,
    margins: Doubles, loss: float, slope: Doubles, curvature: Doubles,
) -> float:  # fmt: skip
    """Step 3: move ``w`` and ``margins``, update the derivatives, and return the new sum of losses."""
    predicted = 0.0
    for j in active[:n_active]:
        predicted += g[j] * d[j] + abs(w[j] + d[j]) - abs(w[j])
    step, moved = 1.0, 0.0
    for _ in range(MAX_HALVINGS):
        for i in range(len(margins)):
            margins[i] += (step - moved) * xd[i]
        moved, norms = step, 0.0
        for j in active[:n_active]:
            norms += abs(w[j] + step * d[j]) - abs(w[j])
        new = loss_terms(positive, costs, margins, slope, curvature)
        if new - loss + norms <= SUFFICIENT * step * predicted:
            for j in active[:n_active]:
                w[j] += step * d[j]
            return new
        step *= 0.5
    for i in range(len(margins)):
        margins[i] -= moved * xd[i]
    return loss_terms(positive, costs, margins, slope, curvature)


@kernel()
def solve_l1_logistic(
    data: Floats, rows: Ints, starts: Longs, positive: Bools, costs: Doubles, tolerance: float, max_iter: int,
    w: Doubles, margins: Doubles,
) -> int:  # fmt: skip
    """Fit ``w`` (zeros), with ``margins`` (zeros) = X w; returns the Newton steps made.

    Stops where the violations of optimality add up to at most ``tolerance`` times those at 0.
    """
    n, n_columns = len(costs), len(starts) - 1
    g, h, d = np.empty(n_columns), np.empty(n_columns), np.zeros(n_columns)
    slope, curvature, xd = np.empty(n), np.empty(n), np.zeros(n)
    active, n_active = np.arange(n_columns).astype(np.int32), n_columns
    loss = loss_terms(positive, costs, margins, slope, curvature)
    first, shrink_below, inner = -1.0, -np.inf, 1.0
    for n_iter in range(max_iter):
        total, largest, pos = 0.0, 0.0, 0
        while pos < n_active:
            j = active[pos]
            g[j], h[j] = 0.0, DAMPING
            for m in range(starts[j], starts[j + 1]):
                g[j] += data[m] * slope[rows[m]]
                h[j] += data[m] * data[m] * curvature[rows[m]]
            if w[j] == 0.0 and abs(g[j]) < shrink_below:
                n_active -= 1
                active[pos], active[n_active] = active[n_active], active[pos]
                continue
            wrong = violation(g[j], w[j])
            total, largest = total + wrong, max(largest, wrong)
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
        newton_direction(data, rows, starts, curvature, g, h, active, n_active, inner, w, d, xd)
        loss = line_search(positive, costs, active, n_active, g, w, d, xd, margins, loss, slope, curvature)
        for j in active[:n_active]:
            d[j] = 0.0
        for i in range(n):
            xd[i] = 0.0
    return max_iter
