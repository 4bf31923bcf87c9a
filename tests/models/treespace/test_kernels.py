"""Level embeddings against NumPy twins in float64, and properties of the hyperbolic product."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.models.treespace.kernels import (
    MAX_NORM,
    Documents,
    Parents,
    Paths,
    SearchedNodes,
    Step,
    TrainedNodes,
    Visits,
    hyperbolic_product,
    level_beam_search,
    relu_matmul,
    update_children,
)
from labelspace.models.treespace.layout import LevelLayout, bound_norms, level_dims, quantize_nodes
from labelspace.models.treespace.network import node_visits
from labelspace.models.treespace.tree import breadth_first_nodes, paths_to_labels
from labelspace.types import TopK


@dataclass
class Case:
    """A tree with a label at every node, vectors for it, and documents that reach some of its nodes."""

    shape: LevelLayout
    vectors: np.ndarray
    bias: np.ndarray
    documents: np.ndarray
    lengths: np.ndarray
    weights: np.ndarray
    paths: Paths
    ball: bool


def random_case(seed, ball=False, n=7, n_labels=14, root=3, leaf=6):
    rng = np.random.default_rng(seed)
    parents = np.array([-1, -1, *(rng.integers(-1, i) for i in range(2, n_labels))])
    nodes = breadth_first_nodes(parents, np.arange(n_labels))
    shape = LevelLayout(nodes, level_dims(root, leaf, nodes.height))
    vectors = rng.standard_normal(int(shape.width.sum())).astype(np.float32)
    raw = rng.standard_normal((n, int(shape.widths.sum()))).astype(np.float32)
    documents, lengths = bound_norms(shape, raw, ball)
    Y = rng.random((n, n_labels)) < 0.25
    paths = paths_to_labels(sp.csr_matrix(Y.astype(np.float32)), nodes)
    weights = rng.random((n, shape.levels)).astype(np.float32) + np.float32(0.5)
    bias = rng.standard_normal(len(nodes)).astype(np.float32)
    return Case(shape, vectors, bias, documents, lengths, weights, paths, ball)


def visits_twin(rows, paths, last):
    starts, reached = paths
    return [
        (reached[j], i, j + 1, starts[row + 1])
        for i, row in enumerate(rows)
        for j in range(starts[row], starts[row + 1])
        if last[reached[j]] > 0
    ]


def vector_of(case, vectors, node):
    return vectors[case.shape.offset[node] : case.shape.offset[node] + case.shape.width[node]]


def margin_of(case, vectors, row, node, document=None, length=None):
    """In float64, by the full formulas of the ball."""
    vector = vector_of(case, vectors, node).astype(np.float64)
    start, level = case.shape.arrays.document_offset[node], case.shape.level[node]
    x = (case.documents[row] if document is None else document)[start : start + len(vector)].astype(np.float64)
    if not case.ball:
        return x @ vector + case.bias[node]
    r = case.lengths[row, level] if length is None else length
    return hyperbolic_product_twin(x @ vector, float(r), np.linalg.norm(vector)) + case.bias[node]


def hyperbolic_product_twin(product, r, e):
    cosh = np.cosh(r) * np.cosh(e) - np.sinh(r) * np.sinh(e) * product / (r * e)
    return (r * r + e * e - np.arccosh(max(cosh, 1.0)) ** 2) / 2


def update(case, rows, target_of=None, target_weight=0.0, decay=0.0, learning_rate=0.1, squares=0.0):
    """Run ``update_children``, and return what it changes."""
    visits = node_visits(rows, case.paths, case.shape.nodes.last_child)
    order = np.argsort(visits.nodes, kind="stable")
    visits = Visits(*(part[order] for part in visits[:4]), visits.path_nodes)
    nodes, first_visit = np.unique(visits.nodes, return_index=True)
    targets = np.zeros((len(nodes), int(case.shape.widths.max())), np.float32)
    if target_of is not None:
        targets[:] = target_of[nodes]
    parents = Parents(nodes, np.append(first_visit, len(order)), targets, np.zeros_like(targets))
    sums = [np.full(len(case.bias), squares, np.float32) for _ in range(2)]
    trained = TrainedNodes(case.vectors.copy(), case.bias.copy(), *sums)
    vectors, lengths, weights = case.documents[rows], case.lengths[rows], case.weights[rows]
    documents = Documents(vectors, lengths, weights, np.zeros_like(vectors), np.zeros_like(lengths))
    step = Step(learning_rate, target_weight, decay, case.ball)
    update_children(parents, visits, documents, case.shape.arrays, trained, step)
    return parents, trained, documents


def update_twin(case, rows, target_of=None, target_weight=0.0, decay=0.0, learning_rate=0.1, squares=0.0):
    """NumPy twin, one child at a time, with numeric derivatives."""
    shape, vectors, bias = case.shape, case.vectors.astype(np.float64), case.bias.astype(np.float64)
    new, new_bias = vectors.copy(), bias.copy()
    doc_gradients, length_gradients = (
        np.zeros((len(rows), case.documents.shape[1])),
        np.zeros((len(rows), shape.levels)),
    )
    squared_sums = np.full((2, len(bias)), squares, np.float64)
    deviations = {}
    for child in range(1, len(bias)):
        parent = shape.nodes.parent[child]
        size, start, level = shape.width[child], shape.arrays.document_offset[child], shape.level[child]
        vector, gradient, bias_gradient, norm_gradient, visited = (
            vector_of(case, vectors, child),
            np.zeros(size),
            0.0,
            0.0,
            False,
        )
        for i, row in enumerate(rows):
            nodes = case.paths.nodes[case.paths.starts[row] : case.paths.starts[row + 1]]
            if parent not in nodes:
                continue
            visited = True
            margin = margin_of(case, vectors, row, child)
            error = (1 / (1 + np.exp(-margin)) - (child in nodes)) * case.weights[row, level]
            x, by_product = case.documents[row, start : start + size].astype(np.float64), 1.0
            if case.ball:
                r, e = float(case.lengths[row, level]), np.linalg.norm(vector)
                by_product, by_r, by_e = numeric_slopes(hyperbolic_product_twin, x @ vector, r, e)
                length_gradients[i, level] += error * by_r
                norm_gradient += error * by_e
            bias_gradient += error
            gradient += error * by_product * x
            doc_gradients[i, start : start + size] += error * by_product * vector
        if not visited:
            continue
        target = np.zeros(size) if target_of is None else target_of[parent, :size]
        deviations[parent] = deviations.get(parent, 0) + np.pad(vector - target, (0, int(shape.widths.max()) - size))
        gradient += norm_gradient * vector / np.linalg.norm(vector) if case.ball else 0
        gradient += target_weight * (vector - target) + decay * vector
        squared_sums[:, child] += np.mean(gradient**2), bias_gradient**2
        span = slice(shape.offset[child], shape.offset[child] + size)
        new[span] -= learning_rate * gradient / np.sqrt(squared_sums[0, child])
        if case.ball and np.linalg.norm(new[span]) > MAX_NORM:
            new[span] *= MAX_NORM / np.linalg.norm(new[span])
        new_bias[child] -= learning_rate * bias_gradient / np.sqrt(squared_sums[1, child])
    return new, new_bias, squared_sums, doc_gradients, length_gradients, deviations


def numeric_slopes(function, *values, step=1e-5):
    """Central differences by each value."""
    result = []
    for i in range(len(values)):
        up, down = list(values), list(values)
        up[i] += step
        down[i] -= step
        result.append((function(*up) - function(*down)) / (2 * step))
    return result


@pytest.mark.parametrize("seed", range(3))
def test_node_visits_are_the_inner_nodes_that_rows_reach(seed):
    case = random_case(seed)
    rows = np.array([5, 0, 3], np.int32)
    last = case.shape.nodes.last_child
    result = node_visits(rows, case.paths, last)
    assert list(zip(*(part.tolist() for part in result[:4]), strict=True)) == visits_twin(rows, case.paths, last)
    assert all(len(part) == 0 for part in node_visits(np.zeros(0, np.int32), case.paths, last)[:4])


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize(
    ("target_weight", "decay", "squares"), [(0.0, 0.0, 0.0), (0.7, 0.0, 0.5), (0.0, 0.3, 0.0), (0.4, 0.2, 1)]
)
def test_children_are_updated_like_their_twins(ball, target_weight, decay, squares):
    for seed in range(4):
        case = random_case(seed, ball)
        rows = np.array([6, 1, 2, 4], np.int32)
        rng = np.random.default_rng(seed)
        targets = rng.standard_normal((len(case.bias), int(case.shape.widths.max()))).astype(np.float32)
        case.weights[1, 0] = 0.0  # a document of weight 0 at a level
        args = (rows, targets, target_weight, decay, 0.1, squares)
        parents, nodes, documents = update(case, *args)
        vectors, bias, squared_sums, doc_gradients, length_gradients, deviations = update_twin(case, *args)
        assert np.allclose(nodes.embeddings, vectors, atol=3e-3 if squares == 0 else 1e-3)
        assert np.allclose(nodes.bias, bias, atol=1e-4)
        assert np.allclose(nodes.squares, squared_sums[0], rtol=2e-2, atol=1e-4)
        assert np.allclose(nodes.bias_squares, squared_sums[1], rtol=1e-3, atol=1e-5)
        assert np.allclose(documents.by_vectors, doc_gradients, atol=2e-3)
        assert np.allclose(documents.by_norms, length_gradients, atol=2e-3)
        assert sorted(deviations) == parents.nodes.tolist()
        for parent, deviation in zip(parents.nodes, parents.deviations, strict=True):
            width = case.shape.width[case.shape.nodes.first_child[parent]]
            assert np.allclose(deviation[:width], deviations[parent][:width], atol=1e-4)
            assert not deviation[width:].any()


def test_a_level_of_low_weight_still_learns():
    """The weight scales the update; whether an error is too small is decided before weighting."""
    case = random_case(1)
    case.weights[:] = 1e-4
    rows = np.arange(7, dtype=np.int32)
    _, _, documents = update(case, rows)
    assert np.allclose(documents.by_vectors, update_twin(case, rows)[3], atol=3e-7)
    assert np.abs(documents.by_vectors).max() > 1e-5


def test_children_of_unvisited_nodes_do_not_change():
    case = random_case(2)
    _, nodes, _ = update(case, np.zeros(0, np.int32), target_weight=1.0, decay=1.0)
    assert np.array_equal(nodes.embeddings, case.vectors)
    assert np.array_equal(nodes.bias, case.bias)


def test_no_vector_leaves_the_ball():
    case = random_case(3, ball=True)
    _, nodes, _ = update(case, np.arange(7, dtype=np.int32), learning_rate=100.0)
    norms = [np.linalg.norm(vector_of(case, nodes.embeddings, node)) for node in range(1, len(case.bias))]
    assert max(norms) <= MAX_NORM * 1.0001
    assert max(norms) > MAX_NORM * 0.99


def test_relu_matmul_equals_numpy():
    rng = np.random.default_rng(0)
    hidden, weights = rng.standard_normal((5, 9)).astype(np.float32), rng.standard_normal((9, 6)).astype(np.float32)
    out = np.full((5, 6), 7.0, np.float32)
    relu_matmul(hidden, weights, out)
    assert np.allclose(out, np.maximum(hidden, 0) @ weights, atol=1e-5)


def rounded(case):
    """The same case with the vectors that a saved model has."""
    codes, scales = quantize_nodes(case.shape, case.vectors)
    return replace(case, vectors=codes * np.repeat(scales, case.shape.width))


def search(case, beam_size, k):
    shape, out = case.shape, TopK.empty(len(case.documents), k)
    lengths = np.ones(len(case.bias), np.float32)
    vectors, scales = quantize_nodes(shape, case.vectors)
    for node in range(1, len(case.bias)):
        lengths[node] = np.linalg.norm(vector_of(case, case.vectors, node))
    nodes = SearchedNodes(vectors, scales, lengths, case.bias)
    found = (out.labels, out.scores)
    level_beam_search(case.documents, case.lengths, nodes, shape.arrays, case.ball, beam_size, *found)
    return out


def search_twin(case, beam_size, k):
    """Plain beam search, level by level."""
    rows, nodes = [], case.shape.nodes
    for row in range(len(case.documents)):
        beam_nodes, labels = [(0.0, 0)], []
        while beam_nodes:
            children = [
                (score - np.logaddexp(0, -margin_of(case, case.vectors, row, child)), child)
                for score, node in beam_nodes
                for child in range(nodes.first_child[node], nodes.last_child[node])
            ]
            labels += [(score, int(nodes.label[node])) for score, node in children if nodes.label[node] >= 0]
            inner = sorted((-score, node) for score, node in children if nodes.last_child[node] > 0)
            beam_nodes = [(-score, node) for score, node in inner[:beam_size]]
        rows.append(sorted(((-score, label) for score, label in labels))[:k])
    return rows


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize("beam_size", [1, 2, 50])
@pytest.mark.parametrize("k", [1, 4, 20])
def test_beam_search_equals_its_twin(ball, beam_size, k):
    for seed in range(5):
        case = rounded(random_case(seed, ball))
        result = search(case, beam_size, k)
        for labels, scores, expected in zip(result.labels, result.scores, search_twin(case, beam_size, k), strict=True):
            assert labels[: len(expected)].tolist() == [label for _, label in expected]
            assert np.allclose(scores[: len(expected)], [-score for score, _ in expected], atol=2e-3)
            assert (labels[len(expected) :] == -1).all()
            assert np.isneginf(scores[len(expected) :]).all()


def test_a_search_without_labels_at_inner_nodes():
    case = random_case(4)
    inner = case.shape.nodes.last_child > 0
    assert inner[1:].any()
    leaf_labels = np.where(inner, -1, case.shape.nodes.label)
    case.shape.nodes.label[:] = leaf_labels
    result = search(case, 50, 20)
    assert all(sorted(row[row >= 0]) == sorted(leaf_labels[leaf_labels >= 0]) for row in result.labels)


def test_quantization_hardly_changes_scores():
    case = random_case(5)
    found, exact = search(case, 50, 14), search_twin(case, 50, 14)
    for labels, scores, pairs in zip(found.labels, found.scores, exact, strict=True):
        expected = {label: -score for score, label in pairs}
        assert np.allclose(scores, [expected[label] for label in labels], atol=0.15)
    assert not np.allclose(found.scores[0], [-score for score, _ in exact[0]], atol=1e-4)


@pytest.mark.parametrize("r", [0.01, 0.5, 3.9])
@pytest.mark.parametrize("e", [0.02, 1.0, 4.0])
def test_the_hyperbolic_product_and_its_derivatives(r, e):
    for cosine in (-1.0, -0.3, 0.0, 0.8):
        args = (cosine * r * e, r, e)
        product, *derivatives = hyperbolic_product(*args)
        assert product == pytest.approx(hyperbolic_product_twin(*args), rel=1e-6, abs=1e-8)
        assert np.allclose(derivatives, numeric_slopes(hyperbolic_product_twin, *args), rtol=1e-4, atol=1e-4)


def test_short_vectors_are_flat_and_long_ones_fall_faster_with_the_angle():
    assert hyperbolic_product(0.5e-4, 0.01, 0.01)[0] == pytest.approx(0.5e-4, rel=1e-3)
    assert np.allclose(hyperbolic_product(0.5e-4, 0.01, 0.01)[1:], (1, 0, 0), atol=1e-4)
    assert hyperbolic_product(1e-6**2, 1e-6, 1e-6)[0] == pytest.approx(0, abs=2e-6)
    assert hyperbolic_product(3.0 * 3.0 * 0.5, 3.0, 3.0)[0] < 3.0 * 3.0 * 0.5
    assert hyperbolic_product(6.0, 3.0, 2.0)[0] == pytest.approx(6.0, rel=1e-6)  # on one line the ball is flat


def test_it_is_a_distance():
    """Symmetric, of points on a line the difference, and never longer than over a third point."""
    rng = np.random.default_rng(1)

    def distance(x, y):
        r, e = np.linalg.norm(x), np.linalg.norm(y)
        return np.sqrt(max(r * r + e * e - 2 * hyperbolic_product(float(x @ y), float(r), float(e))[0], 0.0))

    for _ in range(100):
        x, y, z = rng.standard_normal((3, 3))
        assert distance(x, y) == pytest.approx(distance(y, x))
        assert distance(x, z) <= distance(x, y) + distance(y, z) + 1e-6
        assert distance(x, y) >= np.linalg.norm(x - y) - 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nearly_equal_points_have_finite_derivatives(dtype):
    for r in (1e-6, 0.01, 1.0, 4.0):
        for off in (0.0, 1e-7, 1e-4):
            args = dtype(r * r * (1 + off)), dtype(r), dtype(r * (1 + off))
            product, by_product, by_r, by_e = hyperbolic_product(*args)
            assert product == pytest.approx(r * r, abs=1e-2 * r * r + 2e-6)
            assert np.isfinite([by_product, by_r, by_e]).all()
            assert by_product == pytest.approx((np.sinh(r) / r) ** 2, rel=1e-3)
            assert by_product * r + by_r == pytest.approx(r, rel=0.05, abs=2e-6)  # along the line the ball is flat
            assert by_product * r + by_e == pytest.approx(r, rel=0.05, abs=2e-6)
