"""Block-coordinate Frank-Wolfe for the separation ranking loss with L1, a document at a time (Yen et al., ICML 2016).

    min_W  |W|^2 / 2 + l1 |W|_1 + C sum_i max(0, 1 + max_{n not in y_i} w_n.x_i - min_{p in y_i} w_p.x_i)

In the dual, document i has a number a_ik >= 0 for each label k; those of its labels (positives) and those of the others
(negatives) have the same sum, at most C. W is the soft-thresholded V, and V_k = sum_i (+ or -) a_ik x_i.
"""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.growing_rows import add_to_row, room_needed, soft_threshold
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Bools, Doubles, Floats, Ints, Longs

HALVINGS = 60


@kernel()
def sum_above(b: Doubles, positive: Bools, n: int, side: bool, at: float) -> float:
    """The sum of max(b_k - at, 0) over one side."""
    total = 0.0
    for k in range(n):
        if positive[k] == side and b[k] > at:
            total += b[k] - at
    return total


@kernel()
def threshold_of_sum(b: Doubles, positive: Bools, n: int, side: bool, largest: float, total: float) -> float:
    """The number t with sum_above(t) = total, for one side with this largest b."""
    low, high = largest - total, largest
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if sum_above(b, positive, n, side, middle) > total:
            low = middle
        else:
            high = middle
    return high


@kernel()
def project_on_equal_sums(b: Doubles, positive: Bools, n: int, C: float) -> None:
    """Replace b by the nearest numbers of at least 0 whose sums over positives and negatives are equal and at most C.

    They are max(b_k - t, 0) for negatives and max(b_k + t, 0) for positives; where the sums are above C, each side has
    a threshold of its own.
    """
    top_positive, top_negative = -np.inf, -np.inf
    for k in range(n):
        if positive[k]:
            top_positive = max(top_positive, b[k])
        else:
            top_negative = max(top_negative, b[k])
    low, high = -top_positive, top_negative
    if low >= high:
        for k in range(n):
            b[k] = 0.0
        return
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if sum_above(b, positive, n, False, middle) > sum_above(b, positive, n, True, -middle):
            low = middle
        else:
            high = middle
    below, above = high, -high  # thresholds of negatives and of positives
    if sum_above(b, positive, n, False, high) > C:
        below = threshold_of_sum(b, positive, n, False, top_negative, C)
        above = threshold_of_sum(b, positive, n, True, top_positive, C)
    for k in range(n):
        b[k] = max(b[k] - (above if positive[k] else below), 0.0)


@kernel()
def add_truth(y_indices: Ints, y_indptr: Ints, active: Ints) -> None:
    """The labels of each document as its first active ones."""
    for i in range(len(active)):
        for m in range(y_indptr[i], y_indptr[i + 1]):
            active[i, m - y_indptr[i]] = y_indices[m]


@kernel()
def add_most_violating(
    scores: Floats, allowed: Bools, truth: Ints, slot: Ints, active: Ints, alpha: Floats, size: int,
    best_scores: Floats, best: Ints,
) -> int:  # fmt: skip
    """Make the best-ranked negatives active that violate the margin to the worst-ranked positive.

    At most ``len(best)`` are added; ``best`` and ``best_scores`` are scratch. ``slot`` is -1 for all labels, before and
    after. Returns the new number of active labels.
    """
    lowest = np.float32(np.inf)
    for label in truth:
        slot[label] = -2
        lowest = min(lowest, scores[label])
    for a in range(size):
        slot[active[a]] = -2
    found = 0
    for label in range(len(scores)):
        if allowed[label] and slot[label] == -1 and scores[label] > lowest - np.float32(1.0):
            found = push(best_scores, best, found, scores[label], label)
    for label in truth:
        slot[label] = -1
    for a in range(size):
        slot[active[a]] = -1
    sort_best_first(best_scores, best, found)
    for label in best[: min(found, len(active) - size)]:
        active[size], alpha[size] = label, 0.0
        size += 1
    return size


@kernel()
def score_labels(
    data: Floats, features: Ints, l1: Floats, labels: Ints, values: Floats, starts: Longs, sizes: Ints, scores: Floats
) -> None:
    """The scores x.w of all labels for one document: W is V soft-thresholded by l1 (n_features)."""
    for label in range(len(scores)):
        scores[label] = 0.0
    for j in range(len(features)):
        feature, x, shrink = features[j], data[j], l1[features[j]]
        for m in range(starts[feature], starts[feature] + sizes[feature]):
            scores[labels[m]] += x * soft_threshold(values[m], shrink)


@kernel()
def correct_active(
    scores: Floats, norm: float, C: float, n_positive: int, active: Ints, alpha: Floats, size: int, b: Doubles,
    positive: Bools, changed: Ints, steps: Floats,
) -> int:  # fmt: skip
    """Find the best a_ik of the active labels, of which the first ``n_positive`` are the document's own, into ``b``.

    ``changed`` and ``steps`` get the labels whose a_ik is another, and what their V changes by, in units of x. Returns
    their number.
    """
    for a in range(size):
        positive[a] = a < n_positive
        slope = -scores[active[a]] if positive[a] else 1.0 + scores[active[a]]
        b[a] = alpha[a] + slope / norm
    project_on_equal_sums(b, positive, size, C)
    n_changed = 0
    for a in range(size):
        step = np.float32(b[a]) - alpha[a]
        if step != 0.0:
            changed[n_changed], steps[n_changed] = active[a], step if positive[a] else -step
            n_changed += 1
    return n_changed


@kernel()
def keep_nonzero(n_positive: int, active: Ints, alpha: Floats, size: int, b: Doubles) -> int:
    """Take ``b`` as the a_ik; labels with 0 cease to be active, but for the document's own. Returns the active ones."""
    kept = 0
    for a in range(size):
        if b[a] > 0.0 or a < n_positive:
            active[kept], alpha[kept] = active[a], b[a]
            kept += 1
    return kept


@kernel()
def separation_pass(
    data: Floats, indices: Ints, indptr: Ints, norms: Floats, y_indices: Ints, y_indptr: Ints, allowed: Bools,
    order: Ints, begin: int, C: float, n_steps: int, n_selected: int, active: Ints, alpha: Floats, n_active: Ints,
    l1: Floats, grow: bool, labels: Ints, values: Floats, moments: Floats, starts: Longs, sizes: Ints, rooms: Ints,
    end: Longs, largest_step: Floats,
) -> int:  # fmt: skip
    """One step for each of the documents order[begin:]; returns where in the order it stopped for want of room.

    ``active`` and ``alpha`` (n, room) have the active labels of each document, its own among them, and their a_ik.
    V (n_features, n_labels) is a matrix of growing rows, l1 (n_features) its thresholds; ``n_steps`` is the
    number of steps before this pass. ``largest_step[0]`` is the largest step so far, in units of the gradient.
    """
    n_labels, room = len(allowed), active.shape[1]
    scores, slot = np.empty(n_labels, np.float32), np.full(n_labels, -1, np.int32)
    b, positive = np.empty(room, np.float64), np.empty(room, np.bool_)
    changed, steps = np.empty(room, np.int32), np.empty(room, np.float32)
    best_scores, best = np.empty(n_selected, np.float32), np.empty(n_selected, np.int32)
    for at in range(begin, len(order)):
        i = order[at]
        truth = y_indices[y_indptr[i] : y_indptr[i + 1]]
        if len(truth) == 0 or norms[i] == 0.0:
            continue
        x, features = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        score_labels(x, features, l1, labels, values, starts, sizes, scores)
        size = add_most_violating(scores, allowed, truth, slot, active[i], alpha[i], n_active[i], best_scores, best)
        n_changed = correct_active(
            scores, norms[i], C, len(truth), active[i], alpha[i], size, b, positive, changed, steps
        )
        if grow and end[0] + room_needed(features, n_changed, sizes, rooms) > len(labels):
            return at
        n_active[i] = keep_nonzero(len(truth), active[i], alpha[i], size, b)
        for c in range(n_changed):
            slot[changed[c]] = c
            largest_step[0] = max(largest_step[0], abs(steps[c]) * norms[i])
        moment = np.float32((n_steps + at) * (n_steps + at + 1.0))
        for j in range(len(features) if n_changed else 0):
            add_to_row(
                features[j], x[j], moment, changed, steps, n_changed, slot, grow, labels, values, moments, starts,
                sizes, rooms, end,
            )  # fmt: skip
        for c in range(n_changed):
            slot[changed[c]] = -1
    return len(order)
