"""Node embeddings level by level: train the children of the nodes that documents reach, and beam search.

Node c has the vector ``embeddings[offset[c] : offset[c] + width[c]]``; the vector of a document for c's level starts at
``document_offset[c]`` of the document's row. The level determines the width of both. In Euclidean space the margin of
a child is their inner product plus its bias. In the Poincaré ball both are tangent vectors at the origin, and the inner
product is replaced by one that is derived from the hyperbolic distance of their exponential maps.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelspace.kernels.beam_search import log_activation
from labelspace.kernels.compiled import kernel
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs

LOGISTIC = 0.0  # the power for which ``log_activation`` is the log sigmoid
MIN_ERROR = np.float32(1e-3)  # smaller errors, before weighting, change no vector: most visits are right, and skipped
MIN_MARGIN = -80.0  # exp(80) is far below the largest float64, and the error there is 1 in float32
EPSILON = np.float32(1e-6)  # added to norms, which are divided by
ADAGRAD_EPSILON = np.float32(1e-10)  # added to Adagrad's denominator, which may be 0
MAX_NORM = np.float32(4.0)  # of a tangent vector, so that cosh fits into float32


class NodeArrays(NamedTuple):
    """A tree, and where the embeddings of its nodes are; each array has one entry per node."""

    first_child: Ints
    last_child: Ints  # exclusive; 0 for a leaf
    label: Ints  # -1 for a node without a label
    level: Ints
    offset: Longs
    width: Ints
    document_offset: Ints


class Paths(NamedTuple):
    """The nodes on the paths of documents, sorted: document i has ``nodes[starts[i] : starts[i + 1]]``."""

    starts: Longs
    nodes: Ints


class Visits(NamedTuple):
    """Visits of inner nodes by documents; children that are visited too are between two positions in ``path_nodes``."""

    nodes: Ints
    rows: Ints  # of the batch
    child_starts: Longs  # the position after the node
    row_ends: Longs  # the end of the document
    path_nodes: Ints  # ``Paths.nodes``


class Parents(NamedTuple):
    """The visited nodes whose children are trained."""

    nodes: Ints
    visit_ends: Longs  # of visits sorted by node: those of parent p are ``visit_ends[p] : visit_ends[p + 1]``
    targets: Floats  # (n_parents, largest width) what the children's embeddings are drawn to
    deviations: Floats  # like targets: gets the sum over the children of embedding minus target


class Documents(NamedTuple):
    """The documents of a batch, with the gradients by their vectors and norms, which start at 0."""

    vectors: Floats  # (batch, all widths)
    norms: Floats  # (batch, levels)
    weights: Floats  # (batch, levels) of the loss
    by_vectors: Floats
    by_norms: Floats


class TrainedNodes(NamedTuple):
    """The embeddings and biases of the nodes, with the sums of squares of row-wise Adagrad."""

    embeddings: Floats  # of all nodes, one after another
    bias: Floats  # (n_nodes,) as the others
    squares: Floats
    bias_squares: Floats


class SearchedNodes(NamedTuple):
    """Quantized embeddings with a scale per node, and their norms, which only the ball needs."""

    embeddings: Floats | npt.NDArray[np.int8]
    scales: Floats
    norms: Floats
    bias: Floats


class Step(NamedTuple):
    """The rates of an update: of the gradient, of the distance from the target, and of the embedding itself."""

    learning_rate: float
    target_weight: float
    decay: float
    ball: bool  # nodes are points of the Poincaré ball


@kernel(error_model="numpy", forceinline=True)  # a norm of 0 gives no number, not an error
def hyperbolic_product(product: float, r: float, e: float) -> tuple[float, float, float, float]:
    """Return (r^2 + e^2 - d^2) / 2 for the distance d of exp(x) and exp(y), and its derivatives by x . y, r and e.

    r is |x| and e is |y|. In Euclidean space this is x . y itself, by the law of cosines; in the ball it falls faster
    with the angle.
    """
    a, b = np.sinh(r) / r, np.sinh(e) / e
    cosh = max(np.cosh(r) * np.cosh(e) - a * b * product, 1.0 + 1e-6)
    distance = np.arccosh(cosh)
    slope = distance / np.sqrt(cosh * cosh - 1.0)  # derivative of d^2 / 2 by cosh d
    r_slope = np.sinh(r) * np.cosh(e) - b * product * (np.cosh(r) - a) / r
    e_slope = np.cosh(r) * np.sinh(e) - a * product * (np.cosh(e) - b) / e
    return (r * r + e * e - distance * distance) / 2, slope * a * b, r - slope * r_slope, e - slope * e_slope


@kernel(fastmath=True, forceinline=True)
def norm(vector: Floats) -> float:
    """Return the norm of a vector, above 0."""
    total = np.float32(0.0)
    for m in range(len(vector)):
        total += vector[m] * vector[m]
    return float(np.sqrt(total) + EPSILON)


@kernel(fastmath=True, forceinline=True)
def margin_gradient(
    document: Floats, vector: Floats, bias: float, is_positive: bool, weight: float, r: float, e: float, ball: bool
) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """Return the derivatives of one document's loss at one child: by the margin, by the inner product, by r and e.

    In the ball r and e are the norms of the document and of the child. All but the first are 0 for a small error.
    """
    dot = np.float32(0.0)
    for m in range(len(vector)):
        dot += document[m] * vector[m]
    product_slope, r_slope, e_slope, margin = 1.0, 0.0, 0.0, float(dot + bias)
    if ball:
        product, product_slope, r_slope, e_slope = hyperbolic_product(float(dot), r, e)
        margin = product + bias
    error = np.float32(1.0 / (1.0 + np.exp(-max(margin, MIN_MARGIN))))
    if is_positive:
        error -= np.float32(1.0)
    is_small = abs(error) < MIN_ERROR
    error *= np.float32(weight)
    if is_small:
        return error, np.float32(0.0), np.float32(0.0), np.float32(0.0)
    return error, error * np.float32(product_slope), error * np.float32(r_slope), error * np.float32(e_slope)


@kernel(fastmath=True, forceinline=True)
def add_gradients(
    coefficient: np.float32, document: Floats, vector: Floats, gradient: Floats, document_gradient: Floats
) -> None:
    """Add the gradients of ``coefficient`` times the inner product to those of the child and of the document."""
    for m in range(len(vector)):
        gradient[m] += coefficient * document[m]
        document_gradient[m] += coefficient * vector[m]


@kernel(fastmath=True, forceinline=True)
def adagrad_step(
    vector: Floats, gradient: Floats, target: Floats, deviation: Floats, decay: float, squared_sum: float, step: Step
) -> np.float32:
    """Update on gradient + target_weight * (vector - target) + decay * vector, and return the new squared sum.

    The difference between vector and target is added to ``deviation``. Each loop adds one term to the gradient: the
    compiler may add two in any order, and not in the same one when it compiles and when it loads what it compiled.
    """
    total = np.float32(0.0)
    for m in range(len(vector)):
        difference = vector[m] - target[m]
        deviation[m] += difference
        gradient[m] += np.float32(step.target_weight) * difference
    for m in range(len(vector)):
        gradient[m] += np.float32(decay) * vector[m]
        total += gradient[m] * gradient[m]
    total = np.float32(squared_sum + total / len(vector))
    rate = np.float32(step.learning_rate) / (np.sqrt(total) + ADAGRAD_EPSILON)
    for m in range(len(vector)):
        vector[m] -= rate * gradient[m]
    return total


@kernel(fastmath=True)
def update_children(
    parents: Parents, visits: Visits, documents: Documents, tree: NodeArrays, nodes: TrainedNodes, step: Step
) -> None:
    """Train the children of ``parents`` on binary cross-entropy (does a visit go on to them?), one child at a time.

    ``visits`` are sorted by node, and their ``child_starts`` are advanced. ``deviations`` of the parents and the
    gradients of the documents are added to.
    """
    child_starts, row_ends, path_nodes, ball = visits.child_starts, visits.row_ends, visits.path_nodes, step.ball
    gradient_buffer = np.empty(documents.vectors.shape[1], np.float32)
    for p in range(len(parents.nodes)):
        parent = parents.nodes[p]
        for child in range(tree.first_child[parent], tree.last_child[parent]):
            width, level = tree.width[child], tree.level[child]
            columns = slice(tree.document_offset[child], tree.document_offset[child] + width)
            vector = nodes.embeddings[tree.offset[child] : tree.offset[child] + width]
            vector_norm = norm(vector) if ball else 1.0
            gradient = gradient_buffer[: len(vector)]
            gradient[:] = 0.0
            bias_gradient, norm_gradient = np.float32(0.0), np.float32(0.0)
            for visit in range(parents.visit_ends[p], parents.visit_ends[p + 1]):
                row = visits.rows[visit]
                while child_starts[visit] < row_ends[visit] and path_nodes[child_starts[visit]] < child:
                    child_starts[visit] += 1
                is_positive = child_starts[visit] < row_ends[visit] and path_nodes[child_starts[visit]] == child
                document, document_norm = documents.vectors[row, columns], documents.norms[row, level]
                weight = documents.weights[row, level]
                error, by_product, by_r, by_e = margin_gradient(
                    document, vector, nodes.bias[child], is_positive, weight, document_norm, vector_norm, ball
                )
                if by_product != 0.0:
                    add_gradients(by_product, document, vector, gradient, documents.by_vectors[row, columns])
                bias_gradient += error
                documents.by_norms[row, level] += by_r
                norm_gradient += by_e
            decay = step.decay + float(norm_gradient) / vector_norm  # the gradient by the norm is along the vector
            nodes.squares[child] = adagrad_step(
                vector, gradient, parents.targets[p], parents.deviations[p], decay, nodes.squares[child], step
            )
            if ball and norm(vector) > MAX_NORM:
                vector *= MAX_NORM / norm(vector)
            nodes.bias_squares[child] += bias_gradient * bias_gradient
            rate = np.float32(step.learning_rate)
            nodes.bias[child] -= rate * bias_gradient / (np.sqrt(nodes.bias_squares[child]) + ADAGRAD_EPSILON)


@kernel(fastmath=True)
def relu_matmul(hidden: Floats, weights: Floats, out: Floats) -> None:
    """Write relu(hidden) @ weights to ``out``, for hidden (n, units) and weights (units, width)."""
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
    documents: Floats,
    document_norms: Floats,
    nodes: SearchedNodes,
    tree: NodeArrays,
    ball: bool,
    beam_size: int,
    out_labels: Ints,
    out_scores: Floats,
) -> None:
    """Write the best labels of each document, level by level, expanding the ``beam_size`` best nodes of each level.

    A node's score is the log of the product of the probabilities along its path; nodes of any level may have labels.
    """
    first_child, last_child, label = tree.first_child, tree.last_child, tree.label
    embeddings, scales, bias = nodes.embeddings, nodes.scales, nodes.bias
    beam, scores = np.empty(beam_size, np.int32), np.empty(beam_size, np.float32)
    next_beam, next_scores = np.empty(beam_size, np.int32), np.empty(beam_size, np.float32)
    for row in range(len(documents)):
        row_labels, row_scores = out_labels[row], out_scores[row]
        beam[0], scores[0], size, n_labels = 0, np.float32(0.0), 1, 0
        while size > 0:
            next_size = 0
            for i in range(size):
                for child in range(first_child[beam[i]], last_child[beam[i]]):
                    start, document_start, dot = tree.offset[child], tree.document_offset[child], np.float32(0.0)
                    for m in range(tree.width[child]):
                        dot += documents[row, document_start + m] * embeddings[start + m]
                    margin = dot * scales[child] + bias[child]
                    if ball:
                        r, e = document_norms[row, tree.level[child]], nodes.norms[child]
                        margin = hyperbolic_product(dot * scales[child], r, e)[0] + bias[child]
                    score = scores[i] + log_activation(float(margin), LOGISTIC)
                    if label[child] >= 0:
                        n_labels = push(row_scores, row_labels, n_labels, score, label[child])
                    if last_child[child] > 0:
                        next_size = push(next_scores, next_beam, next_size, score, child)
            beam[:next_size], scores[:next_size] = next_beam[:next_size], next_scores[:next_size]
            size = next_size
        sort_best_first(row_scores, row_labels, n_labels)
