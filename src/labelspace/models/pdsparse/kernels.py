"""A sparse matrix whose rows grow: labels and values of a row are adjacent in one pool, with room behind them.

Row r has ``sizes[r]`` entries from ``starts[r]`` on and room for ``rooms[r]``. A row that is full moves to the end of
the pool, ``end[0]``, with twice the room. Whoever adds makes sure first that the pool is long enough (``room_needed``).
``moments`` are the sum of all that was added to an entry, each times the ``moment`` of its step: they make the mean of
the matrix over steps.

Block-coordinate Frank-Wolfe for the separation ranking loss with L1, a document at a time (Yen et al., ICML 2016).

    min_W  |W|^2 / 2 + l1 |W|_1 + C sum_i max(0, 1 + max_{n not in y_i} w_n.x_i - min_{p in y_i} w_p.x_i)

In the dual, document i has a number a_ik >= 0 for each label k; those of its labels (positives) and those of the others
(negatives) have the same sum, at most C. W is the soft-thresholded V, and V_k = sum_i (+ or -) a_ik x_i.

Squared hinge with L1 for one label, by dual coordinate descent on active documents (Yen et al., KDD 2017).

    min_w  |w|^2 / 2 + l1 |w|_1 + C sum_i max(0, 1 - y_i w.x_i)^2

In the dual w is the soft-thresholded v = sum_i y_i a_i x_i, and few a_i are above 0: only documents that violate the
margin are visited. The bias is one more feature of value 1, without L1; its weight is the last of v.
"""

import numpy as np

from labelspace.kernels.compiled import kernel, part
from labelspace.kernels.random_numbers import initial_state, next_state, shuffle
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Bools, Doubles, Floats, Ints, Longs


@part()
def soft_threshold(value: np.float32, l1: np.float32) -> np.float32:
    """Sign(value) max(|value| - l1, 0)."""
    return value - max(min(value, l1), -l1)


@kernel()
def room_needed(rows: Ints, n_added: int, sizes: Ints, rooms: Ints) -> int:
    """Entries that the pool must have left before each of the rows gets ``n_added`` more."""
    needed = 0
    for row in rows:
        if sizes[row] + n_added > rooms[row]:
            needed += 2 * (sizes[row] + n_added)
    return needed


@kernel()
def move_row(
    row: int, n_added: int, labels: Ints, values: Floats, moments: Floats, starts: Longs, sizes: Ints, rooms: Ints,
    end: Longs,
) -> None:  # fmt: skip
    """Move a row to the end of the pool, with twice the room for ``n_added`` more entries."""
    start, new = starts[row], end[0]
    for m in range(sizes[row]):
        labels[new + m], values[new + m], moments[new + m] = labels[start + m], values[start + m], moments[start + m]
    starts[row], rooms[row] = new, 2 * (sizes[row] + n_added)
    end[0] += rooms[row]


@kernel()
def add_to_row(
    row: int, factor: np.float32, moment: np.float32, changed: Ints, steps: Floats, n_changed: int, slot: Ints,
    grow: bool, labels: Ints, values: Floats, moments: Floats, starts: Longs, sizes: Ints, rooms: Ints, end: Longs,
) -> None:  # fmt: skip
    """Add factor * steps[c] to the entry of each label changed[c]; entries that are not there are made if ``grow``.

    ``slot`` (n_labels) has the place of each label in ``changed``, else a negative number. It is the same afterwards.
    """
    start, found = starts[row], 0
    for m in range(start, start + sizes[row]):
        c = slot[labels[m]]
        if c >= 0:
            values[m] += factor * steps[c]
            moments[m] += moment * factor * steps[c]
            found += 1
            slot[labels[m]] = -3 - c  # found
    if found < n_changed and grow:
        if sizes[row] + n_changed - found > rooms[row]:
            move_row(row, n_changed - found, labels, values, moments, starts, sizes, rooms, end)
            start = starts[row]
        for c in range(n_changed):
            if slot[changed[c]] == c:
                m = start + sizes[row]
                labels[m], values[m], moments[m] = changed[c], factor * steps[c], moment * factor * steps[c]
                sizes[row] += 1
    for c in range(n_changed):
        slot[changed[c]] = c


@kernel()
def nonzero_rows(
    l1: Floats, labels: Ints, values: Floats, starts: Longs, sizes: Ints, shrink: bool, indptr: Longs,
    out_labels: Ints, out_values: Floats,
) -> int:  # fmt: skip
    """Copy the entries above l1[row] in size, one row after another; with ``shrink`` soft-thresholded.

    ``indptr`` (n_rows + 1) gets where each row begins. Returns the number of entries.
    """
    pos = 0
    for row in range(len(starts)):
        indptr[row] = pos
        for m in range(starts[row], starts[row] + sizes[row]):
            value = soft_threshold(values[m], l1[row])
            if value != 0.0:
                out_labels[pos], out_values[pos] = labels[m], value if shrink else values[m]
                pos += 1
    indptr[len(starts)] = pos
    return pos


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
