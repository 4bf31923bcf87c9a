"""The kernels of levels against NumPy twins in float64, and the ball's product by its laws."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.level_embeddings import RADIUS, ball_product, learn_children, map_units, passes, search_levels
from labelspace.models.treespace.ball import bound_norms
from labelspace.models.treespace.layout import LevelLayout, level_dims, quantize_nodes
from labelspace.models.treespace.tree import breadth_first_nodes, on_path_nodes
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
    starts: np.ndarray
    reached: np.ndarray
    ball: bool


def some_case(seed, ball=False, n=7, n_labels=14, root=3, leaf=6):
    rng = np.random.default_rng(seed)
    parents = np.array([-1, -1, *(rng.integers(-1, i) for i in range(2, n_labels))])
    nodes = breadth_first_nodes(parents, np.arange(n_labels))
    shape = LevelLayout(nodes, level_dims(root, leaf, nodes.height))
    vectors = rng.standard_normal(int(shape.width.sum())).astype(np.float32)
    raw = rng.standard_normal((n, int(shape.widths.sum()))).astype(np.float32)
    documents, lengths = bound_norms(shape, raw, ball)
    Y = rng.random((n, n_labels)) < 0.25
    starts, reached = on_path_nodes(sp.csr_matrix(Y.astype(np.float32)), nodes)
    weights = rng.random((n, shape.levels)).astype(np.float32) + np.float32(0.5)
    bias = rng.standard_normal(len(nodes)).astype(np.float32)
    return Case(shape, vectors, bias, documents, lengths, weights, starts, reached, ball)


def slow_passes(rows, starts, reached, last):
    return [
        (reached[j], i, j + 1, starts[row + 1])
        for i, row in enumerate(rows)
        for j in range(starts[row], starts[row + 1])
        if last[reached[j]] > 0
    ]


def vector_of(case, vectors, node):
    return vectors[case.shape.offset[node] : case.shape.offset[node] + case.shape.width[node]]


def margin_of(case, vectors, row, node, document=None, length=None):
    """In float64, by the formulas of the ball in full."""
    own = vector_of(case, vectors, node).astype(np.float64)
    place, level = case.shape.document_offset[node], case.shape.level[node]
    x = (case.documents[row] if document is None else document)[place : place + len(own)].astype(np.float64)
    if not case.ball:
        return x @ own + case.bias[node]
    r = case.lengths[row, level] if length is None else length
    return slow_ball_product(x @ own, float(r), np.linalg.norm(own)) + case.bias[node]


def slow_ball_product(product, r, e):
    cosh = np.cosh(r) * np.cosh(e) - np.sinh(r) * np.sinh(e) * product / (r * e)
    return (r * r + e * e - np.arccosh(max(cosh, 1.0)) ** 2) / 2


def learned(case, rows, goals_of=None, pull=0.0, decay=0.0, rate=0.1, squares=0.0):
    """What ``learn_children`` leaves behind, and what it began with."""
    first, last = case.shape.tree
    nodes, of_rows, begins, ends = passes(rows, case.starts, case.reached, last)
    order = np.argsort(nodes, kind="stable")
    groups, at = np.unique(nodes[order], return_index=True)
    widest = int(case.shape.widths.max())
    goals = np.zeros((len(groups), widest), np.float32)
    if goals_of is not None:
        goals[:] = goals_of[groups]
    out = {
        "groups": groups, "goals": goals, "vectors": case.vectors.copy(), "bias": case.bias.copy(),
        "squares": np.full(len(case.bias), squares, np.float32),
        "bias_squares": np.full(len(case.bias), squares, np.float32),
        "by_documents": np.zeros((len(rows), case.documents.shape[1]), np.float32),
        "by_lengths": np.zeros((len(rows), case.shape.levels), np.float32), "strays": np.zeros_like(goals),
    }  # fmt: skip
    shape = case.shape
    learn_children(
        groups, np.append(at, len(order)), order, of_rows, begins, ends, case.reached, case.documents[rows],
        case.lengths[rows], case.weights[rows], first, last, shape.level, shape.offset, shape.width,
        shape.document_offset, out["vectors"], out["bias"], out["squares"], out["bias_squares"], goals, pull, decay,
        rate, case.ball, out["by_documents"], out["by_lengths"], out["strays"],
    )  # fmt: skip
    return out


def slow_learned(case, rows, goals_of=None, pull=0.0, decay=0.0, rate=0.1, squares=0.0):
    """The same by the definition: a child at a time, each gradient by the slopes of the formulas."""
    shape, vectors, bias = case.shape, case.vectors.astype(np.float64), case.bias.astype(np.float64)
    new, new_bias = vectors.copy(), bias.copy()
    by_documents, by_lengths = np.zeros((len(rows), case.documents.shape[1])), np.zeros((len(rows), shape.levels))
    memory = np.full((2, len(bias)), squares, np.float64)
    strays = {}
    for child in range(1, len(bias)):
        parent = shape.nodes.parent[child]
        size, place, level = shape.width[child], shape.document_offset[child], shape.level[child]
        own, gradient, by_bias, by_length, passed = vector_of(case, vectors, child), np.zeros(size), 0.0, 0.0, False
        for i, row in enumerate(rows):
            nodes = case.reached[case.starts[row] : case.starts[row + 1]]
            if parent not in nodes:
                continue
            passed = True
            margin = margin_of(case, vectors, row, child)
            error = (1 / (1 + np.exp(-margin)) - (child in nodes)) * case.weights[row, level]
            x, by_product = case.documents[row, place : place + size].astype(np.float64), 1.0
            if case.ball:
                r, e = float(case.lengths[row, level]), np.linalg.norm(own)
                by_product, by_r, by_e = slopes(slow_ball_product, x @ own, r, e)
                by_lengths[i, level] += error * by_r
                by_length += error * by_e
            by_bias += error
            gradient += error * by_product * x
            by_documents[i, place : place + size] += error * by_product * own
        if not passed:
            continue
        goal = np.zeros(size) if goals_of is None else goals_of[parent, :size]
        strays[parent] = strays.get(parent, 0) + np.pad(own - goal, (0, int(shape.widths.max()) - size))
        gradient += by_length * own / np.linalg.norm(own) if case.ball else 0
        gradient += pull * (own - goal) + decay * own
        memory[:, child] += np.mean(gradient**2), by_bias**2
        at = slice(shape.offset[child], shape.offset[child] + size)
        new[at] -= rate * gradient / np.sqrt(memory[0, child])
        if case.ball and np.linalg.norm(new[at]) > RADIUS:
            new[at] *= RADIUS / np.linalg.norm(new[at])
        new_bias[child] -= rate * by_bias / np.sqrt(memory[1, child])
    return new, new_bias, memory, by_documents, by_lengths, strays


def slopes(function, *values, step=1e-5):
    """By each value, from both sides."""
    found = []
    for at in range(len(values)):
        up, down = list(values), list(values)
        up[at] += step
        down[at] -= step
        found.append((function(*up) - function(*down)) / (2 * step))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_passes_are_the_inner_nodes_that_rows_reach(seed):
    case = some_case(seed)
    rows = np.array([5, 0, 3], np.int32)
    last = case.shape.nodes.last_child
    found = passes(rows, case.starts, case.reached, last)
    assert list(zip(*(part.tolist() for part in found), strict=True)) == slow_passes(
        rows, case.starts, case.reached, last
    )
    assert all(len(part) == 0 for part in passes(np.zeros(0, np.int32), case.starts, case.reached, last))


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize(
    ("pull", "decay", "squares"), [(0.0, 0.0, 0.0), (0.7, 0.0, 0.5), (0.0, 0.3, 0.0), (0.4, 0.2, 1)]
)
def test_children_move_as_their_twins_do(ball, pull, decay, squares):
    for seed in range(4):
        case = some_case(seed, ball)
        rows = np.array([6, 1, 2, 4], np.int32)
        rng = np.random.default_rng(seed)
        goals = rng.standard_normal((len(case.bias), int(case.shape.widths.max()))).astype(np.float32)
        case.weights[1, 0] = 0.0  # a document that does not count at a level
        told = (rows, goals, pull, decay, 0.1, squares)
        found, (vectors, bias, memory, by_documents, by_lengths, strays) = (
            learned(case, *told),
            slow_learned(case, *told),
        )
        assert np.allclose(found["vectors"], vectors, atol=3e-3 if squares == 0 else 1e-3)
        assert np.allclose(found["bias"], bias, atol=1e-4)
        assert np.allclose(found["squares"], memory[0], rtol=2e-2, atol=1e-4)
        assert np.allclose(found["bias_squares"], memory[1], rtol=1e-3, atol=1e-5)
        assert np.allclose(found["by_documents"], by_documents, atol=2e-3)
        assert np.allclose(found["by_lengths"], by_lengths, atol=2e-3)
        assert sorted(strays) == found["groups"].tolist()
        for group, stray in zip(found["groups"], found["strays"], strict=True):
            width = case.shape.width[case.shape.nodes.first_child[group]]
            assert np.allclose(stray[:width], strays[group][:width], atol=1e-4)
            assert not stray[width:].any()


def test_a_level_that_counts_little_still_learns():
    """What an error counts says how far it moves things, not whether it is too slight to look at."""
    case = some_case(1)
    case.weights[:] = 1e-4
    rows = np.arange(7, dtype=np.int32)
    moved = learned(case, rows)
    assert np.allclose(moved["by_documents"], slow_learned(case, rows)[3], atol=3e-7)
    assert np.abs(moved["by_documents"]).max() > 1e-5


def test_children_below_which_nobody_passes_stay():
    case = some_case(2)
    moved = learned(case, np.zeros(0, np.int32), pull=1.0, decay=1.0)
    assert np.array_equal(moved["vectors"], case.vectors)
    assert np.array_equal(moved["bias"], case.bias)


def test_no_vector_leaves_the_ball():
    case = some_case(3, ball=True)
    moved = learned(case, np.arange(7, dtype=np.int32), rate=100.0)
    norms = [np.linalg.norm(vector_of(case, moved["vectors"], node)) for node in range(1, len(case.bias))]
    assert max(norms) <= RADIUS * 1.0001
    assert max(norms) > RADIUS * 0.99


def test_units_at_or_below_zero_are_left_out():
    rng = np.random.default_rng(0)
    hidden, maps = rng.standard_normal((5, 9)).astype(np.float32), rng.standard_normal((9, 6)).astype(np.float32)
    out = np.full((5, 6), 7.0, np.float32)
    map_units(hidden, maps, out)
    assert np.allclose(out, np.maximum(hidden, 0) @ maps, atol=1e-5)


def searched(case, beam, k, quantize_int8=False):
    shape, out = case.shape, TopK.empty(len(case.documents), k)
    scales, vectors = np.ones(len(case.bias), np.float32), case.vectors
    lengths = np.ones(len(case.bias), np.float32)
    if quantize_int8:
        vectors, scales = quantize_nodes(shape, case.vectors)
    for node in range(1, len(case.bias)):
        lengths[node] = np.linalg.norm(vector_of(case, case.vectors, node))
    search_levels(
        case.documents, case.lengths, vectors, scales, lengths, case.bias, *shape.tree, shape.nodes.label, shape.level,
        shape.offset, shape.width, shape.document_offset, case.ball, beam, out.labels, out.scores,
    )  # fmt: skip
    return out


def slow_searched(case, beam, k):
    """All paths, a level at a time, of which the best go on."""
    rows, nodes = [], case.shape.nodes
    for row in range(len(case.documents)):
        now, labels = [(0.0, 0)], []
        while now:
            below = [
                (score - np.logaddexp(0, -margin_of(case, case.vectors, row, child)), child)
                for score, node in now
                for child in range(nodes.first_child[node], nodes.last_child[node])
            ]
            labels += [(score, int(nodes.label[node])) for score, node in below if nodes.label[node] >= 0]
            inner = sorted((-score, node) for score, node in below if nodes.last_child[node] > 0)
            now = [(-score, node) for score, node in inner[:beam]]
        rows.append(sorted(((-score, label) for score, label in labels))[:k])
    return rows


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize("beam", [1, 2, 50])
@pytest.mark.parametrize("k", [1, 4, 20])
def test_the_search_finds_what_its_twin_finds(ball, beam, k):
    for seed in range(5):
        case = some_case(seed, ball)
        found = searched(case, beam, k)
        for labels, scores, want in zip(found.labels, found.scores, slow_searched(case, beam, k), strict=True):
            assert labels[: len(want)].tolist() == [label for _, label in want]
            assert np.allclose(scores[: len(want)], [-score for score, _ in want], atol=2e-3)
            assert (labels[len(want) :] == -1).all()
            assert np.isneginf(scores[len(want) :]).all()


def test_a_search_without_labels_at_inner_nodes():
    case = some_case(4)
    inner = case.shape.nodes.last_child > 0
    assert inner[1:].any()
    wanted = np.where(inner, -1, case.shape.nodes.label)
    case.shape.nodes.label[:] = wanted
    found = searched(case, 50, 20)
    assert all(sorted(row[row >= 0]) == sorted(wanted[wanted >= 0]) for row in found.labels)


def test_bytes_hardly_change_scores():
    case = some_case(5)
    exact, rounded = searched(case, 50, 14), searched(case, 50, 14, quantize_int8=True)
    by_label = [np.take_along_axis(top.scores, np.argsort(top.labels, axis=1), 1) for top in (exact, rounded)]
    assert np.allclose(*by_label, atol=0.15)
    assert not np.array_equal(*by_label)


@pytest.mark.parametrize("r", [0.01, 0.5, 3.9])
@pytest.mark.parametrize("e", [0.02, 1.0, 4.0])
def test_the_ball_product_and_its_slopes(r, e):
    for cosine in (-1.0, -0.3, 0.0, 0.8):
        given = (cosine * r * e, r, e)
        product, *by = ball_product(*given)
        assert product == pytest.approx(slow_ball_product(*given), rel=1e-6, abs=1e-8)
        assert np.allclose(by, slopes(slow_ball_product, *given), rtol=1e-4, atol=1e-4)


def test_short_vectors_are_flat_and_long_ones_fall_faster_with_the_angle():
    assert ball_product(0.5e-4, 0.01, 0.01)[0] == pytest.approx(0.5e-4, rel=1e-3)
    assert np.allclose(ball_product(0.5e-4, 0.01, 0.01)[1:], (1, 0, 0), atol=1e-4)
    assert ball_product(1e-6**2, 1e-6, 1e-6)[0] == pytest.approx(0, abs=2e-6)
    assert ball_product(3.0 * 3.0 * 0.5, 3.0, 3.0)[0] < 3.0 * 3.0 * 0.5
    assert ball_product(6.0, 3.0, 2.0)[0] == pytest.approx(6.0, rel=1e-6)  # on one line the ball is flat


def test_it_is_a_distance():
    """Symmetric, of points on a line the difference, and never longer than over a third point."""
    rng = np.random.default_rng(1)

    def distance(x, y):
        r, e = np.linalg.norm(x), np.linalg.norm(y)
        return np.sqrt(max(r * r + e * e - 2 * ball_product(float(x @ y), float(r), float(e))[0], 0.0))

    for _ in range(100):
        x, y, z = rng.standard_normal((3, 3))
        assert distance(x, y) == pytest.approx(distance(y, x))
        assert distance(x, z) <= distance(x, y) + distance(y, z) + 1e-6
        assert distance(x, y) >= np.linalg.norm(x - y) - 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nearly_equal_points_have_finite_slopes(dtype):
    for r in (1e-6, 0.01, 1.0, 4.0):
        for off in (0.0, 1e-7, 1e-4):
            given = dtype(r * r * (1 + off)), dtype(r), dtype(r * (1 + off))
            product, by_product, by_r, by_e = ball_product(*given)
            assert product == pytest.approx(r * r, abs=1e-2 * r * r + 2e-6)
            assert np.isfinite([by_product, by_r, by_e]).all()
            assert by_product == pytest.approx((np.sinh(r) / r) ** 2, rel=1e-3)
            assert by_product * r + by_r == pytest.approx(r, rel=0.05, abs=2e-6)  # along the line the ball is flat
            assert by_product * r + by_e == pytest.approx(r, rel=0.05, abs=2e-6)
