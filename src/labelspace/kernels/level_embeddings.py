"""Labels level by level: learning the vectors of children where documents pass, and searching down.

Node c has the vector ``vectors[offset[c] : offset[c] + width[c]]``; the vector of a document for c's level begins at
``place[c]`` of the document's row. Both are as long as the level says. In flat space the margin of a child is their
product plus its bias; in the Poincaré ball both are tangent vectors at the origin, and the distance of the points they
lead to takes the place of the angle in the product.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from labelspace.kernels.beam_search import log_step
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs

Flat = Floats | npt.NDArray[np.int8]

LOGISTIC = 0.0  # the power for which a step down is logistic
SLIGHT = np.float32(1e-3)  # errors below this, whatever they count, move no vector
TINY = np.float32(1e-6)
NOTHING = np.float32(1e-10)  # what Adagrad divides by at the least
RADIUS = np.float32(4.0)  # no tangent vector of the ball is longer: cosh in float32 bears it


@njit(cache=True, nogil=True)
def passes(rows: Ints, starts: Longs, reached: Ints, last_child: Ints) -> tuple[Ints, Ints, Longs, Longs]:
    """The inner nodes that some documents reach: node and row of each pass, where the row's nodes below begin, and end.

    Document i reaches ``reached[starts[i] : starts[i + 1]]``, which are sorted. The last two say where in ``reached``
    the children of the pass's node would stand at the earliest, and where the row ends.
    """
    size = 0
    for row in rows:
        for j in range(starts[row], starts[row + 1]):
            size += last_child[reached[j]] > 0
    nodes, of_rows = np.empty(size, np.int32), np.empty(size, np.int32)
    begins, ends = np.empty(size, np.int64), np.empty(size, np.int64)
    at = 0
    for i, row in enumerate(rows):
        for j in range(starts[row], starts[row + 1]):
            if last_child[reached[j]] > 0:
                nodes[at], of_rows[at], begins[at], ends[at] = reached[j], i, j + 1, starts[row + 1]
                at += 1
    return nodes, of_rows, begins, ends


@njit(cache=True, nogil=True)
def ball_product(product: float, r: float, e: float) -> tuple[float, float, float, float]:
    """(r^2 + e^2 - d^2) / 2 for the distance d of exp(x) and exp(y), and its slopes by x . y, |x| = r and |y| = e.

    In flat space this is x . y itself, by the law of cosines; in the ball it falls faster with the angle.
    """
    a, b = np.sinh(r) / r, np.sinh(e) / e
    cosh = max(np.cosh(r) * np.cosh(e) - a * b * product, 1.0 + 1e-6)
    distance = np.arccosh(cosh)
    slope = distance / np.sqrt(cosh * cosh - 1.0)  # of d^2 / 2 by cosh d
    by_r = np.sinh(r) * np.cosh(e) - b * product * (np.cosh(r) - a) / r
    by_e = np.cosh(r) * np.sinh(e) - a * product * (np.cosh(e) - b) / e
    return (r * r + e * e - distance * distance) / 2, slope * a * b, r - slope * by_r, e - slope * by_e


@njit(cache=True, nogil=True, fastmath=True)
def norm(vector: Floats) -> float:
    """The length of a vector, above 0."""
    total = np.float32(0.0)
    for m in range(len(vector)):
        total += vector[m] * vector[m]
    return float(np.sqrt(total) + TINY)


@njit(cache=True, nogil=True, fastmath=True)
def descend_pass(
    document: Floats,
    own: Floats,
    bias: float,
    goes_on: bool,
    weight: float,
    r: float,
    e: float,
    ball: bool,
    gradient: Floats,
    by_document: Floats,
) -> tuple[np.float32, np.float32, np.float32]:
    """The error of one document at one child, and the slopes by the lengths r and e of their vectors in the ball.

    The gradients by the child's vector and by the document's are added to.
    """
    total = np.float32(0.0)
    for m in range(len(own)):
        total += document[m] * own[m]
    by_product, by_r, by_e, margin = 1.0, 0.0, 0.0, float(total + bias)
    if ball:
        product, by_product, by_r, by_e = ball_product(float(total), r, e)
        margin = product + bias
    error = np.float32(1.0 / (1.0 + np.exp(-max(margin, -80.0))))
    if goes_on:
        error -= np.float32(1.0)
    is_slight = abs(error) < SLIGHT
    error *= np.float32(weight)
    if is_slight:
        return error, np.float32(0.0), np.float32(0.0)
    along = error * np.float32(by_product)
    for m in range(len(own)):
        gradient[m] += along * document[m]
        by_document[m] += along * own[m]
    return error, error * np.float32(by_r), error * np.float32(by_e)


@njit(cache=True, nogil=True, fastmath=True)
def move_vector(
    own: Floats, gradient: Floats, goal: Floats, stray: Floats, pull: float, decay: float, square: float, rate: float
) -> np.float32:
    """A step of Adagrad on the gradient, a pull to the goal and a decay; the new sum of squares is returned.

    How far the vector is off its goal is added to ``stray``.
    """
    step = np.float32(0.0)
    for m in range(len(own)):
        off = own[m] - goal[m]
        stray[m] += off
        gradient[m] += np.float32(pull) * off + np.float32(decay) * own[m]
        step += gradient[m] * gradient[m]
    total = np.float32(square + step / len(own))
    step = np.float32(rate) / (np.sqrt(total) + NOTHING)
    for m in range(len(own)):
        own[m] -= step * gradient[m]
    return total


@njit(cache=True, nogil=True, fastmath=True)
def learn_children(
    groups: Ints, group_ends: Longs, order: Longs, of_rows: Ints, begins: Longs, ends: Longs, reached: Ints,
    documents: Floats, lengths: Floats, weights: Floats, first_child: Ints, last_child: Ints, level: Ints,
    offset: Longs, width: Ints, place: Ints, vectors: Floats, bias: Floats, squares: Floats, bias_squares: Floats,
    goals: Floats, pull: float, decay: float, rate: float, ball: bool, by_documents: Floats, by_lengths: Floats,
    strays: Floats,
) -> None:  # fmt: skip
    """Move the children of the nodes ``groups`` on the cross-entropy of who passes on to them; a child at a time.

    ``order`` sorts passes by node; those of groups[g] end at group_ends[g + 1]. ``begins`` moves on. ``documents``
    (batch, all widths) are the rows' vectors, ``lengths`` (batch, levels) their norms, ``weights`` (batch, levels) what
    an error counts. ``goals`` (n_groups, width) are what children are pulled to: ``strays`` gets the sum over the
    children of how far they are off. ``by_documents`` and ``by_lengths`` get the gradients by the rows' vectors and
    norms. Row-wise Adagrad remembers ``squares``.
    """
    gradient = np.empty(documents.shape[1], np.float32)
    for g in range(len(groups)):
        parent = groups[g]
        for child in range(first_child[parent], last_child[parent]):
            at, own_level = slice(place[child], place[child] + width[child]), level[child]
            own = vectors[offset[child] : offset[child] + width[child]]
            length = norm(own) if ball else 1.0
            mine = gradient[: len(own)]
            mine[:] = 0.0
            by_bias, by_length = np.float32(0.0), np.float32(0.0)
            for p in range(group_ends[g], group_ends[g + 1]):
                a_pass = order[p]
                row = of_rows[a_pass]
                while begins[a_pass] < ends[a_pass] and reached[begins[a_pass]] < child:
                    begins[a_pass] += 1
                goes_on = begins[a_pass] < ends[a_pass] and reached[begins[a_pass]] == child
                error, by_r, by_e = descend_pass(
                    documents[row, at], own, bias[child], goes_on, weights[row, own_level], lengths[row, own_level],
                    length, ball, mine, by_documents[row, at],
                )  # fmt: skip
                by_bias += error
                by_lengths[row, own_level] += by_r
                by_length += by_e
            squares[child] = move_vector(
                own, mine, goals[g], strays[g], pull, decay + float(by_length) / length, squares[child], rate
            )
            if ball and norm(own) > RADIUS:
                own *= RADIUS / norm(own)
            bias_squares[child] += by_bias * by_bias
            bias[child] -= np.float32(rate) * by_bias / (np.sqrt(bias_squares[child]) + NOTHING)


@njit(cache=True, nogil=True, fastmath=True)
def map_units(hidden: Floats, maps: Floats, out: Floats) -> None:
    """What the units above 0 of each row (n, units) become by ``maps`` (units, width)."""
    out[:] = 0.0
    for row in range(len(hidden)):
        own = out[row]
        for unit in range(len(maps)):
            value = hidden[row, unit]
            if value > 0.0:
                by = maps[unit]
                for m in range(len(own)):
                    own[m] += value * by[m]


@njit(cache=True, nogil=True, fastmath=True)
def search_levels(
    documents: Floats,
    lengths: Floats,
    vectors: Flat,
    scales: Floats,
    node_lengths: Floats,
    bias: Floats,
    first_child: Ints,
    last_child: Ints,
    label: Ints,
    level: Ints,
    offset: Longs,
    width: Ints,
    place: Ints,
    ball: bool,
    beam: int,
    out_labels: Ints,
    out_scores: Floats,
) -> None:
    """The best labels of each document: down the levels, from the ``beam`` best nodes of one to their children.

    A node's score is the logarithm of the product of the chances on its way; nodes on any level may have labels.
    """
    nodes, scores = np.empty(beam, np.int32), np.empty(beam, np.float32)
    next_nodes, next_scores = np.empty(beam, np.int32), np.empty(beam, np.float32)
    for row in range(len(documents)):
        found, best = out_labels[row], out_scores[row]
        nodes[0], scores[0], size, n_found = 0, np.float32(0.0), 1, 0
        while size > 0:
            below = 0
            for i in range(size):
                for child in range(first_child[nodes[i]], last_child[nodes[i]]):
                    start, at, total = offset[child], place[child], np.float32(0.0)
                    for m in range(width[child]):
                        total += documents[row, at + m] * vectors[start + m]
                    margin = total * scales[child] + bias[child]
                    if ball:
                        own = lengths[row, level[child]]
                        margin = ball_product(total * scales[child], own, node_lengths[child])[0] + bias[child]
                    score = scores[i] + log_step(float(margin), LOGISTIC)
                    if label[child] >= 0:
                        n_found = push(best, found, n_found, score, label[child])
                    if last_child[child] > 0:
                        below = push(next_scores, next_nodes, below, score, child)
            nodes[:below], scores[:below], size = next_nodes[:below], next_scores[:below], below
        sort_best_first(best, found, n_found)
