"""Kernels of PD-Sparse and PPD-Sparse: matrices with growing rows, and the solvers of both losses.

Separation ranking loss, one document at a time, by block-coordinate Frank-Wolfe (Yen et al., ICML 2016):

    min_W  |W|^2 / 2 + l1 |W|_1 + C sum_i max(0, 1 + max_{n not in y_i} w_n.x_i - min_{p in y_i} w_p.x_i)

In the dual, document i has a number a_ik >= 0 for each label k. Its sum over the labels of the document (positives)
equals its sum over all other labels (negatives), and is at most C. W is the soft-thresholded V, and
V_k = sum_i (+ or -) a_ik x_i.

Squared hinge, one label at a time, by dual coordinate descent on active documents (Yen et al., KDD 2017):

    min_w  |w|^2 / 2 + l1 |w|_1 + C sum_i max(0, 1 - y_i w.x_i)^2

In the dual, w is the soft-thresholded v = sum_i y_i a_i x_i. Few a_i are above 0: only documents that violate the
margin are visited. The bias is one more feature of value 1, without L1; its weight is the last entry of v.
"""

from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from labelspace.kernels.compiled import kernel, part
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.dual_cd import SolverOptions, soft_threshold
from labelspace.kernels.random_numbers import initial_state, next_state, shuffle
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Bools, Csr, Doubles, Floats, Ints, Longs

INITIAL_ROOM = 1024  # entries of a new pool, which doubles when it is full
HALVINGS = 60  # of an interval of float64: more of them would change nothing
NEGATIVES_PER_POSITIVE = 10  # documents drawn at the start; with more, the first passes take longer
MIN_SELECTED = 100  # documents that one search may make active, even if few are active
SEARCH_EVERY = 3  # passes between searches: a search reads all of X, a pass only the active documents


class GrowingRows(NamedTuple):
    """A sparse matrix V (n_rows, n_labels) whose rows grow: the entries of a row are adjacent in one pool.

    Row r has ``sizes[r]`` entries from ``starts[r]`` on, and room for ``rooms[r]``. A full row moves to the end of the
    pool, ``end[0]``, with twice the room. The caller makes sure first that the pool is long enough (``room_needed``).
    ``moments`` sum all that was added to an entry, each times the moment of its step: they give the mean over steps.
    """

    labels: Ints
    values: Floats
    moments: Floats
    starts: Longs
    sizes: Ints
    rooms: Ints
    end: Longs

    @classmethod
    def empty(cls, n_rows: int) -> Self:
        """Return a matrix of zeros."""
        labels, starts = np.zeros(INITIAL_ROOM, np.int32), np.zeros(n_rows, np.int64)
        values, moments = np.zeros((2, INITIAL_ROOM), np.float32)
        sizes, rooms = np.zeros((2, n_rows), np.int32)
        return cls(labels, values, moments, starts, sizes, rooms, np.zeros(1, np.int64))

    def grown(self) -> Self:
        """Return the matrix in a pool of twice the length."""
        room = (0, len(self.labels))
        return self._replace(
            labels=np.pad(self.labels, room), values=np.pad(self.values, room), moments=np.pad(self.moments, room)
        )

    def mean(self, n_steps: int) -> Self:
        """Return the mean of the matrix over the steps made, where step t has weight t and moment t (t - 1)."""
        return self._replace(values=self.values - self.moments * np.float32(1 / (n_steps * (n_steps + 1))))

    def above(self, l1: Floats, n_labels: int, shrink: bool = True) -> Csr:
        """Return the entries above l1 (n_rows) in size, soft-thresholded unless ``shrink`` is False."""
        indptr = np.append(0, np.cumsum(self.sizes, dtype=np.int64))
        at = np.arange(indptr[-1]) + np.repeat(self.starts - indptr[:-1], self.sizes)
        bounds = np.repeat(l1, self.sizes)
        values = self.values[at]
        shrunk = values - np.clip(values, -bounds, bounds)
        kept = shrunk != 0
        matrix = (shrunk if shrink else values)[kept], self.labels[at][kept], np.append(0, np.cumsum(kept))[indptr]
        return sp.csr_matrix(matrix, shape=(len(self.starts), n_labels))

    def restricted(self, support: Csr) -> Self:
        """Return only the entries where ``support`` is not zero; what was added before does not count in a mean."""
        entries = self.above(np.zeros(len(self.starts), np.float32), support.shape[1], shrink=False)
        kept = entries.multiply(support != 0).tocsr()
        sizes = np.diff(kept.indptr).astype(np.int32)
        pool = (kept.indices.astype(np.int32), kept.data.astype(np.float32), np.zeros(kept.nnz, np.float32))
        return type(self)(*pool, kept.indptr[:-1].astype(np.int64), sizes, sizes.copy(), np.array([kept.nnz], np.int64))


class Changes(NamedTuple):
    """The labels that one step changes, and by what: room for as many labels as can be active.

    ``slot`` (n_labels) has the position of each label in ``labels``, or a negative number.
    """

    labels: Ints
    steps: Floats
    slot: Ints


class ActiveLabels(NamedTuple):
    """The active labels of each document, its own labels first, and their dual variables a_ik. Shape (n, room)."""

    labels: Ints
    alpha: Floats
    sizes: Ints


class PassScratch(NamedTuple):
    """Buffers of a pass: the scores of all labels, the best-ranked labels, and new a_ik of a document's labels."""

    scores: Floats
    best_scores: Floats
    best: Ints
    positive: Bools
    b: Doubles


class SeparationProblem(NamedTuple):
    """Documents X (n, n_features), their labels Y, and the objective; l1 (n_features) has a weight per feature."""

    X: CsrArrays
    Y: CsrArrays
    norms: Floats
    allowed: Bools
    l1: Floats
    C: Doubles  # (n), of each document
    n_selected: int


class LabelProblem(NamedTuple):
    """Documents X (n, n_features) by documents and by features, |x|^2 of each with its bias, and the objective."""

    X: CsrArrays
    by_feature: CsrArrays
    norms: Floats
    weights: Doubles  # (n), above 0: they multiply C
    l1: float
    options: SolverOptions


@kernel()
def room_needed(V: GrowingRows, rows: Ints, n_added: int) -> int:
    """Return the number of entries that the pool must have left before each of the rows gets ``n_added`` more."""
    needed = 0
    for row in rows:
        if V.sizes[row] + n_added > V.rooms[row]:
            needed += 2 * (V.sizes[row] + n_added)
    return needed


@kernel()
def move_row(V: GrowingRows, row: int, n_added: int) -> None:
    """Move a row to the end of the pool, with twice the room for ``n_added`` more entries."""
    start, new = V.starts[row], V.end[0]
    for m in range(V.sizes[row]):
        V.labels[new + m] = V.labels[start + m]
        V.values[new + m] = V.values[start + m]
        V.moments[new + m] = V.moments[start + m]
    V.starts[row] = new
    V.rooms[row] = 2 * (V.sizes[row] + n_added)
    V.end[0] += V.rooms[row]


@kernel()
def add_to_row(
    V: GrowingRows, row: int, factor: np.float32, moment: np.float32, changes: Changes, n_changed: int, grow: bool
) -> None:
    """Add factor * steps[c] to the entry of each label c of ``changes``; missing entries are made if ``grow``.

    ``changes.slot`` is changed meanwhile and restored.
    """
    labels, values, moments = V.labels, V.values, V.moments
    changed, steps, slot = changes
    start, found = V.starts[row], 0
    for m in range(start, start + V.sizes[row]):
        c = slot[labels[m]]
        if c >= 0:
            values[m] += factor * steps[c]
            moments[m] += moment * factor * steps[c]
            found += 1
            slot[labels[m]] = -3 - c  # found
    if found < n_changed and grow:
        if V.sizes[row] + n_changed - found > V.rooms[row]:
            move_row(V, row, n_changed - found)
            start = V.starts[row]
        for c in range(n_changed):
            if slot[changed[c]] == c:
                m = start + V.sizes[row]
                labels[m] = changed[c]
                values[m] = factor * steps[c]
                moments[m] = moment * factor * steps[c]
                V.sizes[row] += 1
    for c in range(n_changed):
        slot[changed[c]] = c


@kernel()
def sum_above(b: Doubles, positive: Bools, n: int, side: bool, at: float) -> float:
    """Return the sum of max(b_k - at, 0) over one side."""
    total = 0.0
    for k in range(n):
        if positive[k] == side and b[k] > at:
            total += b[k] - at
    return total


@kernel()
def threshold_of_sum(b: Doubles, positive: Bools, n: int, side: bool, largest: float, total: float) -> float:
    """Return the number t with sum_above(t) = total, for a side whose largest b is ``largest``."""
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

    The result is max(b_k - t, 0) for negatives and max(b_k + t, 0) for positives. If the sums are above C, each side
    has its own threshold.
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
def add_most_violating(
    truth: Ints, allowed: Bools, slot: Ints, active: ActiveLabels, i: int, scratch: PassScratch
) -> int:
    """Make the best-ranked negatives active that violate the margin to the worst-ranked positive of document i.

    At most ``len(scratch.best)`` labels are added. ``slot`` is -1 for all labels, before and after. Returns the new
    number of active labels.
    """
    labels, size = active.labels[i], int(active.sizes[i])
    scores, best_scores, best, _, _ = scratch
    lowest = np.float32(np.inf)
    for label in truth:
        slot[label] = -2
        lowest = min(lowest, scores[label])
    for a in range(size):
        slot[labels[a]] = -2
    found = 0
    for label in range(len(scores)):
        if allowed[label] and slot[label] == -1 and scores[label] > lowest - np.float32(1.0):
            found = push(best_scores, best, found, scores[label], label)
    for label in truth:
        slot[label] = -1
    for a in range(size):
        slot[labels[a]] = -1
    sort_best_first(best_scores, best, found)
    for label in best[: min(found, len(labels) - size)]:
        labels[size] = label
        active.alpha[i, size] = 0.0
        size += 1
    return size


@kernel()
def score_labels(x: Floats, features: Ints, l1: Floats, V: GrowingRows, scores: Floats) -> None:
    """Compute the scores x.w of all labels for one document, where W is V soft-thresholded by l1 (n_features)."""
    labels, values, starts, sizes = V.labels, V.values, V.starts, V.sizes
    for label in range(len(scores)):
        scores[label] = 0.0
    for j in range(len(features)):
        feature = features[j]
        value, shrink = x[j], l1[feature]
        for m in range(starts[feature], starts[feature] + sizes[feature]):
            scores[labels[m]] += value * soft_threshold(values[m], shrink)


@kernel()
def correct_active(
    norm: float, C: float, active: ActiveLabels, i: int, size: int, scratch: PassScratch, changes: Changes
) -> int:
    """Find the best a_ik of the active labels of document i, which are positive or not, and write them into ``b``.

    ``changes`` receives the labels whose a_ik changes and the change of their V, in units of x. Returns their number.
    """
    labels, alpha = active.labels[i], active.alpha[i]
    scores, positive, b = scratch.scores, scratch.positive, scratch.b
    for a in range(size):
        slope = -scores[labels[a]] if positive[a] else 1.0 + scores[labels[a]]
        b[a] = alpha[a] + slope / norm
    project_on_equal_sums(b, positive, size, C)
    n_changed = 0
    for a in range(size):
        step = np.float32(b[a]) - alpha[a]
        if step != 0.0:
            changes.labels[n_changed] = labels[a]
            changes.steps[n_changed] = step if positive[a] else -step
            n_changed += 1
    return n_changed


@kernel()
def keep_nonzero(n_positive: int, active: Ints, alpha: Floats, size: int, b: Doubles) -> int:
    """Take ``b`` as the a_ik, drop negatives whose a_ik is 0, and return the number of labels that stay active."""
    kept = 0
    for a in range(size):
        if b[a] > 0.0 or a < n_positive:
            active[kept], alpha[kept] = active[a], b[a]
            kept += 1
    return kept


@kernel()
def separation_pass(
    problem: SeparationProblem, active: ActiveLabels, V: GrowingRows, order: Ints, begin: int, n_steps: int, grow: bool
) -> tuple[int, np.float32]:
    """Make one step for each of the documents order[begin:], until the pool of V is too short.

    ``n_steps`` is the number of steps before this pass. Returns where in the order it stopped, and the largest step in
    units of the gradient.
    """
    data, indices, indptr = problem.X
    l1, norms = problem.l1, problem.norms
    n_labels, room = len(problem.allowed), active.labels.shape[1]
    largest = np.float32(0.0)
    changes = Changes(np.empty(room, np.int32), np.empty(room, np.float32), np.full(n_labels, -1, np.int32))
    best_scores, best = np.empty(problem.n_selected, np.float32), np.empty(problem.n_selected, np.int32)
    positive, b = np.empty(room, np.bool_), np.empty(room, np.float64)
    scratch = PassScratch(np.empty(n_labels, np.float32), best_scores, best, positive, b)
    for at in range(begin, len(order)):
        i = order[at]
        truth = problem.Y.indices[problem.Y.indptr[i] : problem.Y.indptr[i + 1]]
        if len(truth) == 0 or norms[i] == 0.0:
            continue
        x, features = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        score_labels(x, features, l1, V, scratch.scores)
        size = add_most_violating(truth, problem.allowed, changes.slot, active, i, scratch)
        for a in range(size):
            positive[a] = a < len(truth)
        n_changed = correct_active(norms[i], problem.C[i], active, i, size, scratch, changes)
        if grow and V.end[0] + room_needed(V, features, n_changed) > len(V.labels):
            return at, largest
        active.sizes[i] = keep_nonzero(len(truth), active.labels[i], active.alpha[i], size, b)
        for c in range(n_changed):
            changes.slot[changes.labels[c]] = c
            largest = max(largest, abs(changes.steps[c]) * norms[i])
        moment = np.float32((n_steps + at) * (n_steps + at + 1.0))
        for j in range(len(features) if n_changed else 0):
            add_to_row(V, features[j], x[j], moment, changes, n_changed, grow)
        for c in range(n_changed):
            changes.slot[changes.labels[c]] = -1
    return len(order), largest


@part()
def draw_active(positives: Ints, most: int, seed: int, alpha: Floats, order: Ints) -> int:
    """Make the positives active, then at most ``most`` random negatives; return the number of active documents.

    ``alpha`` (n) is -1 for documents that are not active, which all are at first, and becomes 0 for active ones.
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
    problem: LabelProblem, positive: Bools, v: Floats, alpha: Floats, order: Ints, n_active: int
) -> tuple[int, float]:
    """Make one step of coordinate descent for each active document; negatives with a_i = 0 become inactive.

    Returns the number of active documents and the largest projected gradient.
    """
    data, indices, indptr = problem.X
    norms = problem.norms
    shrink = np.float32(problem.l1)
    bias = len(v) - 1
    largest = np.float32(0.0)
    pos = 0
    while pos < n_active:
        i = order[pos]
        margin = v[bias]
        for j in range(indptr[i], indptr[i + 1]):
            margin += data[j] * soft_threshold(v[indices[j]], shrink)
        diagonal = np.float32(0.5 / (problem.options.C * problem.weights[i]))
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
    problem: LabelProblem, v: Floats, alpha: Floats, order: Ints, n_active: int, margins: Floats, most: int
) -> tuple[int, float]:
    """Make at most ``most`` negatives active that violate the margin most, found in X by features.

    Returns the number of active documents and the largest violation. ``margins`` (n) is scratch.
    """
    data, indices, indptr = problem.by_feature
    best_margins, best = np.empty(most, np.float32), np.empty(most, np.int32)
    bias = len(v) - 1
    for i in range(len(margins)):
        margins[i] = v[bias]
    for feature in range(bias):
        w = soft_threshold(v[feature], np.float32(problem.l1))
        if w != 0.0:
            for j in range(indptr[feature], indptr[feature + 1]):
                margins[indices[j]] += w * data[j]
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
def solve_l1_squared_hinge(problem: LabelProblem, positives: Ints, seed: int, v: Floats) -> int:
    """Fit one label with these positives into ``v`` (D + 1, zeros) and return the number of passes made.

    The weights are v, soft-thresholded by l1 except the last.
    """
    options = problem.options
    n = len(problem.norms)
    most = max(n // 10, 1)
    alpha, order = np.full(n, -1.0, np.float32), np.empty(n, np.int32)
    positive = np.zeros(n, np.bool_)
    margins = np.empty(n, np.float32)
    for i in positives:
        positive[i] = True
    n_active = draw_active(positives, most, seed, alpha, order)
    state = initial_state(seed)
    for n_iter in range(1, options.max_iter + 1):
        state = shuffle(order, n_active, state)
        n_active, gradient = visit_active(problem, positive, v, alpha, order, n_active)
        if gradient > options.tolerance and n_iter % SEARCH_EVERY:
            continue
        room = min(max(n_active, MIN_SELECTED), most)
        n_active, violation = add_violating(problem, v, alpha, order, n_active, margins, room)
        if max(gradient, violation) <= options.tolerance:
            return n_iter
    return options.max_iter
