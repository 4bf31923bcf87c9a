"""Node embeddings level by level: train the children of nodes that documents reach, and beam search.

Node c has the vector ``vectors[offset[c] : offset[c] + width[c]]``; the vector of a document for c's level starts at
``doc_offset[c]`` of the document's row. The level determines the width of both. In Euclidean space the margin of
a child is their inner product plus its bias; in the Poincaré ball both are tangent vectors at the origin, and the inner
product is replaced by one that is derived from the hyperbolic distance of their exponential maps.
"""

import numpy as np
import numpy.typing as npt

from labelspace.kernels.beam_search import log_activation
from labelspace.kernels.compiled import kernel
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs

Flat = Floats | npt.NDArray[np.int8]

LOGISTIC = 0.0  # the power for which ``log_activation`` is the log sigmoid
MIN_ERROR = np.float32(1e-3)  # smaller errors, before weighting, change no vector
EPSILON = np.float32(1e-6)
ADAGRAD_EPSILON = np.float32(1e-10)  # added to Adagrad's denominator
MAX_NORM = np.float32(4.0)  # of a tangent vector, so that cosh fits into float32


@kernel()
def node_visits(rows: Ints, starts: Longs, reached: Ints, last_child: Ints) -> tuple[Ints, Ints, Longs, Longs]:
    """All visits of inner nodes by documents: node, row, first entry of ``reached`` after the node, end of the row.

    Document i reaches ``reached[starts[i] : starts[i + 1]]``, which are sorted. So the last two outputs are the range
    of ``reached`` in which the children of the node are.
    """
    size = 0
    for row in rows:
        for j in range(starts[row], starts[row + 1]):
            size += last_child[reached[j]] > 0
    nodes, visit_rows = np.empty(size, np.int32), np.empty(size, np.int32)
    child_starts, row_ends = np.empty(size, np.int64), np.empty(size, np.int64)
    n_visits = 0
    for i, row in enumerate(rows):
        for j in range(starts[row], starts[row + 1]):
            if last_child[reached[j]] > 0:
                nodes[n_visits], visit_rows[n_visits] = reached[j], i
                child_starts[n_visits], row_ends[n_visits] = j + 1, starts[row + 1]
                n_visits += 1
    return nodes, visit_rows, child_starts, row_ends


@kernel(error_model="numpy")  # a norm of 0 gives no number, not an error
def hyperbolic_product(product: float, r: float, e: float) -> tuple[float, float, float, float]:
    """(r^2 + e^2 - d^2) / 2 for the distance d of exp(x) and exp(y), and its derivatives by x . y, |x| = r and |y| = e.

    In Euclidean space this is x . y itself, by the law of cosines; in the ball it falls faster with the angle.
    """
    a, b = np.sinh(r) / r, np.sinh(e) / e
    cosh = max(np.cosh(r) * np.cosh(e) - a * b * product, 1.0 + 1e-6)
    distance = np.arccosh(cosh)
    slope = distance / np.sqrt(cosh * cosh - 1.0)  # derivative of d^2 / 2 by cosh d
    r_slope = np.sinh(r) * np.cosh(e) - b * product * (np.cosh(r) - a) / r
    e_slope = np.cosh(r) * np.sinh(e) - a * product * (np.cosh(e) - b) / e
    return (r * r + e * e - distance * distance) / 2, slope * a * b, r - slope * r_slope, e - slope * e_slope


@kernel(fastmath=True)
def norm(vector: Floats) -> float:
    """The norm of a vector, above 0."""
    total = np.float32(0.0)
    for m in range(len(vector)):
        total += vector[m] * vector[m]
    return float(np.sqrt(total) + EPSILON)


@kernel(fastmath=True)
def add_child_gradient(
    document: Floats, vector: Floats, bias: float, is_positive: bool, weight: float, r: float, e: float,
    ball: bool, gradient: Floats, document_gradient: Floats,
) -> tuple[np.float32, np.float32, np.float32]:  # fmt: skip
    """The error of one document at one child, and the derivatives by the norms r and e of their vectors in the ball.

    Adds to the gradients by the child's vector and by the document's vector.
    """
    dot = np.float32(0.0)
    for m in range(len(vector)):
        dot += document[m] * vector[m]
    product_slope, r_slope, e_slope, margin = 1.0, 0.0, 0.0, float(dot + bias)
    if ball:
        product, product_slope, r_slope, e_slope = hyperbolic_product(float(dot), r, e)
        margin = product + bias
    error = np.float32(1.0 / (1.0 + np.exp(-max(margin, -80.0))))
    if is_positive:
        error -= np.float32(1.0)
    is_small = abs(error) < MIN_ERROR
    error *= np.float32(weight)
    if is_small:
        return error, np.float32(0.0), np.float32(0.0)
    coefficient = error * np.float32(product_slope)
    for m in range(len(vector)):
        gradient[m] += coefficient * document[m]
        document_gradient[m] += coefficient * vector[m]
    return error, error * np.float32(r_slope), error * np.float32(e_slope)


@kernel(fastmath=True)
def adagrad_step(
    vector: Floats, gradient: Floats, target: Floats, deviation: Floats, target_weight: float, decay: float,
    squared_sum: float, learning_rate: float,
) -> np.float32:  # fmt: skip
    """Adagrad step on gradient + target_weight * (vector - target) + decay * vector; returns the new squared sum.

    The difference between vector and target is added to ``deviation``. Each loop adds one term to the gradient: the
    compiler may add two in any order, and not in the same one when it compiles and when it loads what it compiled.
    """
    step = np.float32(0.0)
    for m in range(len(vector)):
        difference = vector[m] - target[m]
        deviation[m] += difference
        gradient[m] += np.float32(target_weight) * difference
    for m in range(len(vector)):
        gradient[m] += np.float32(decay) * vector[m]
        step += gradient[m] * gradient[m]
    total = np.float32(squared_sum + step / len(vector))
    step = np.float32(learning_rate) / (np.sqrt(total) + ADAGRAD_EPSILON)
    for m in range(len(vector)):
        vector[m] -= step * gradient[m]
    return total


@kernel(fastmath=True)
def update_children(
    parents: Ints, parent_ends: Longs, order: Longs, visit_rows: Ints, child_starts: Longs, row_ends: Longs,
    reached: Ints, documents: Floats, lengths: Floats, weights: Floats, first_child: Ints, last_child: Ints,
    level: Ints, offset: Longs, width: Ints, doc_offset: Ints, vectors: Floats, bias: Floats, squares: Floats,
    bias_squares: Floats, targets: Floats, target_weight: float, decay: float, learning_rate: float, ball: bool,
    doc_gradients: Floats, length_gradients: Floats, deviations: Floats,
) -> None:  # fmt: skip
    """Train the children of the nodes ``parents`` on binary cross-entropy (does a visit go on to them?), one at a time.

    ``order`` sorts visits by node; those of parents[p] end at parent_ends[p + 1]. ``child_starts`` are advanced.
    ``documents`` (batch, all widths) are the rows' vectors, ``lengths`` (batch, levels) their norms, ``weights``
    (batch, levels) the weights of errors. ``targets`` (n_parents, width) are what children are regularized towards:
    ``deviations`` gets the sum over the children of their differences from it. ``doc_gradients`` and
    ``length_gradients`` get the gradients by the rows' vectors and norms. ``squares`` is the state of row-wise Adagrad.
    """
    gradient_buffer = np.empty(documents.shape[1], np.float32)
    for p in range(len(parents)):
        parent = parents[p]
        for child in range(first_child[parent], last_child[parent]):
            columns, child_level = slice(doc_offset[child], doc_offset[child] + width[child]), level[child]
            vector = vectors[offset[child] : offset[child] + width[child]]
            vector_norm = norm(vector) if ball else 1.0
            child_gradient = gradient_buffer[: len(vector)]
            child_gradient[:] = 0.0
            bias_gradient, norm_gradient = np.float32(0.0), np.float32(0.0)
            for v in range(parent_ends[p], parent_ends[p + 1]):
                visit = order[v]
                row = visit_rows[visit]
                while child_starts[visit] < row_ends[visit] and reached[child_starts[visit]] < child:
                    child_starts[visit] += 1
                is_positive = child_starts[visit] < row_ends[visit] and reached[child_starts[visit]] == child
                error, r_slope, e_slope = add_child_gradient(
                    documents[row, columns], vector, bias[child], is_positive, weights[row, child_level], lengths[row,
                    child_level], vector_norm, ball, child_gradient, doc_gradients[row, columns],
                )  # fmt: skip
                bias_gradient += error
                length_gradients[row, child_level] += r_slope
                norm_gradient += e_slope
            squares[child] = adagrad_step(
                vector, child_gradient, targets[p], deviations[p], target_weight, decay + float(norm_gradient) /
                vector_norm, squares[child], learning_rate,
            )  # fmt: skip
            if ball and norm(vector) > MAX_NORM:
                vector *= MAX_NORM / norm(vector)
            bias_squares[child] += bias_gradient * bias_gradient
            bias[child] -= np.float32(learning_rate) * bias_gradient / (np.sqrt(bias_squares[child]) + ADAGRAD_EPSILON)


@kernel(fastmath=True)
def relu_matmul(hidden: Floats, weights: Floats, out: Floats) -> None:
    """relu(hidden) @ weights for hidden (n, units) and weights (units, width)."""
    out[:] = 0.0
    for row in range(len(hidden)):
        out_row = out[row]
        for unit in range(len(weights)):
            value = hidden[row, unit]
            if value > 0.0:
                unit_weights = weights[unit]
                for m in range(len(out_row)):
                    out_row[m] += value * unit_weights[m]


@kernel(fastmath=True)
def level_beam_search(
    documents: Floats, lengths: Floats, vectors: Flat, scales: Floats, node_lengths: Floats, bias: Floats,
    first_child: Ints, last_child: Ints, label: Ints, level: Ints, offset: Longs, width: Ints, doc_offset: Ints,
    ball: bool, beam_size: int, out_labels: Ints, out_scores: Floats,
) -> None:  # fmt: skip
    """The top labels of each document, level by level, expanding the ``beam_size`` best nodes of each.

    A node's score is the log of the product of the probabilities along its path; nodes of any level may have labels.
    """
    nodes, scores = np.empty(beam_size, np.int32), np.empty(beam_size, np.float32)
    next_nodes, next_scores = np.empty(beam_size, np.int32), np.empty(beam_size, np.float32)
    for row in range(len(documents)):
        row_labels, row_scores = out_labels[row], out_scores[row]
        nodes[0], scores[0], size, n_labels = 0, np.float32(0.0), 1, 0
        while size > 0:
            next_size = 0
            for i in range(size):
                for child in range(first_child[nodes[i]], last_child[nodes[i]]):
                    start, doc_start, dot = offset[child], doc_offset[child], np.float32(0.0)
                    for m in range(width[child]):
                        dot += documents[row, doc_start + m] * vectors[start + m]
                    margin = dot * scales[child] + bias[child]
                    if ball:
                        r, e = lengths[row, level[child]], node_lengths[child]
                        margin = hyperbolic_product(dot * scales[child], r, e)[0] + bias[child]
                    score = scores[i] + log_activation(float(margin), LOGISTIC)
                    if label[child] >= 0:
                        n_labels = push(row_scores, row_labels, n_labels, score, label[child])
                    if last_child[child] > 0:
                        next_size = push(next_scores, next_nodes, next_size, score, child)
            nodes[:next_size], scores[:next_size], size = next_nodes[:next_size], next_scores[:next_size], next_size
        sort_best_first(row_scores, row_labels, n_labels)
