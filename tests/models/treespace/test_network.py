"""The network of levels: its shape, its ball, its projections, and a step of it against torch's gradients."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.level_embeddings import RADIUS
from labelspace.models.treespace.network import (
    LevelNet,
    Pace,
    Projections,
    Shape,
    level_widths,
    nodes_in_bytes,
    placed,
    placed_back,
)
from labelspace.models.treespace.tree import node_rows, numbered_by_level

PARENTS = [-1, -1, 0, 0, 1, 2, 2, -1, 4]  # three levels, and a leaf at the top


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def shape():
    return Shape(numbered_by_level(np.array(PARENTS), np.arange(9)), np.array([2, 4, 5], np.int32))


def vector_of(shape, vectors, node):
    return vectors[int(shape.offset[node]) : int(shape.offset[node] + shape.width[node])]


def some_vectors(shape, rng, scale=1.0):
    return (rng.standard_normal(int(shape.width.sum())) * scale).astype(np.float32)


@pytest.mark.parametrize(
    ("root", "leaf", "levels", "want"),
    [
        (64, 256, 1, [256]),
        (64, 256, 2, [64, 256]),
        (8, 8, 3, [8, 8, 8]),
        (1, 1000, 4, [1, 10, 100, 1000]),
        (9, 1, 3, [9, 3, 1]),
    ],
)
def test_widths_go_from_root_to_leaf_by_one_factor(root, leaf, levels, want):
    assert level_widths(root, leaf, levels).tolist() == want


def test_every_node_has_a_place_of_its_own(shape):
    assert shape.level.tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert shape.width.tolist() == [0, 2, 2, 2, 4, 4, 4, 5, 5, 5]
    assert shape.place.tolist() == [0, 0, 0, 0, 2, 2, 2, 6, 6, 6]
    taken = np.concatenate([np.arange(at, at + width) for at, width in zip(shape.offset, shape.width, strict=True)])
    assert taken.tolist() == list(range(int(shape.width.sum())))
    assert shape.parts() == [slice(0, 2), slice(2, 6), slice(6, 11)]
    assert shape.rows(np.array([4, 6])).tolist() == [[6, 7, 8, 9], [14, 15, 16, 17]]


def test_a_byte_is_at_most_half_a_scale_off(shape, rng):
    vectors = some_vectors(shape, rng)
    vectors[shape.rows(np.array([2]))] = 0
    found, scales = nodes_in_bytes(shape, vectors)
    assert found.dtype == np.int8
    for node in range(1, len(shape.nodes)):
        own = vector_of(shape, vectors, node)
        assert np.allclose(vector_of(shape, found, node) * scales[node], own, atol=scales[node] * 0.5001)
        assert scales[node] == pytest.approx(np.abs(own).max() / 127, abs=1e-30)


def test_flat_documents_stay_where_they_are(shape, rng):
    documents = rng.standard_normal((3, 11)).astype(np.float32)
    used, lengths = placed(shape, documents, ball=False)
    assert used is documents
    assert (lengths == 1).all()


def test_no_document_leaves_the_ball_and_short_ones_hardly_move(shape, rng):
    raw = rng.standard_normal((4, 11)).astype(np.float32)
    raw[0] *= 100
    raw[1] *= 1e-3
    raw[2, 2:6] = 0
    kept = raw.copy()
    used, lengths = placed(shape, raw, ball=True)
    assert np.array_equal(raw, kept)
    for level, part in enumerate(shape.parts()):
        norms = np.linalg.norm(raw[:, part], axis=1)
        assert np.allclose(lengths[:, level], RADIUS * np.tanh(norms / RADIUS), atol=1e-5)
        assert np.allclose(np.linalg.norm(used[:, part], axis=1), lengths[:, level], atol=1e-5)
    assert lengths.max() <= RADIUS
    assert lengths.min() > 0
    assert np.allclose(used[1], raw[1], rtol=1e-2)


def test_the_way_back_from_the_ball_is_the_gradient(shape, rng):
    raw = rng.standard_normal((3, 11)).astype(np.float32)
    raw[0] *= 4
    by_used, by_lengths = (
        rng.standard_normal((3, 11)).astype(np.float32),
        rng.standard_normal((3, 3)).astype(np.float32),
    )

    def loss(values):
        total = 0.0
        for level, part in enumerate(shape.parts()):
            norms = np.linalg.norm(values[:, part], axis=1)
            lengths = float(RADIUS) * np.tanh(norms / float(RADIUS))
            total += (by_used[:, part] * values[:, part] * (lengths / norms)[:, None]).sum()
            total += by_lengths[:, level] @ lengths
        return total

    found = placed_back(shape, raw, *placed(shape, raw, ball=True), by_used, by_lengths)
    values, step = raw.astype(np.float64), 1e-5
    for at in np.ndindex(*raw.shape):
        up, down = values.copy(), values.copy()
        up[at] += step
        down[at] -= step
        assert found[at] == pytest.approx((loss(up) - loss(down)) / (2 * step), abs=1e-4)
    zero = np.zeros((1, 11), np.float32)
    back = placed_back(shape, zero, *placed(shape, zero, ball=True), by_used[:1], by_lengths[:1])
    assert np.isfinite(back).all()


def some_projections(shape, rng, rank=2):
    held = Projections.new(shape, rank, rng)
    for shared in held.shared:
        shared.value += rng.standard_normal(shared.value.shape).astype(np.float32)
    for node in range(1, len(shape.nodes)):
        if shape.nodes.last_child[node] > 0:  # what lies beyond the width of the children is never used
            held.ups[node, :, : shape.widths[shape.level[node] + 1]] = 0.5
    held.downs *= 10
    return held


def test_projections_begin_by_keeping_coordinates(shape, rng):
    vectors = some_vectors(shape, rng)
    goals = Projections.new(shape, 2, rng).goals(np.array([0, 1, 4], np.int32), vectors)
    assert goals.shape == (3, 5)
    assert not goals[0].any()
    assert np.allclose(goals[1], [*vector_of(shape, vectors, 1), 0, 0, 0])
    assert np.allclose(goals[2], [*vector_of(shape, vectors, 4), 0])


@pytest.mark.parametrize(("pull", "decay"), [(0.6, 0.0), (0.6, 0.3)])
def test_projections_learn_by_torchs_gradients(shape, rng, recorded, pull, decay):
    """Of pull / 2 times the squared distances of children from their goals."""
    torch = pytest.importorskip("torch")
    held, vectors = some_projections(shape, rng), some_vectors(shape, rng)
    groups = np.array([0, 1, 2, 4, 5], np.int32)
    nodes = shape.nodes
    tensor = {
        name: torch.tensor(array, dtype=torch.float64, requires_grad=True)
        for name, array in [("vectors", vectors), ("ups", held.ups), ("downs", held.downs)]
    }
    shared = [torch.tensor(part.value, dtype=torch.float64, requires_grad=True) for part in held.shared]
    goals, strays, loss = held.goals(groups, vectors), np.zeros((5, 5), np.float32), 0
    for at, parent in enumerate(groups.tolist()[1:], start=1):
        level, width = int(shape.level[parent]), int(shape.widths[shape.level[parent] + 1])
        own = vector_of(shape, tensor["vectors"], parent)
        low_rank = tensor["ups"][parent, :, :width].T @ tensor["downs"][parent, :, : len(own)]
        goal = own @ shared[level] + low_rank @ own
        assert np.allclose(goals[at, :width], goal.detach().numpy(), atol=1e-4)
        assert not goals[at, width:].any()
        for child in range(nodes.first_child[parent], nodes.last_child[parent]):
            strays[at, :width] += vector_of(shape, vectors, child) - goals[at, :width]
            constant = torch.tensor(vector_of(shape, vectors, child), dtype=torch.float64)  # the kernel moves it
            loss = loss + pull / 2 * (constant - goal).square().sum()
        loss = loss + decay / 2 * tensor["ups"][parent, :, :width].square().sum()
        loss = loss + decay / 2 * tensor["downs"][parent, :, : len(own)].square().sum()
    for part in shared:
        loss = loss + decay / 2 * (part - torch.eye(*part.shape, dtype=torch.float64)).square().sum()
    loss.backward()
    before = {name: array.copy() for name, array in [("vectors", vectors), ("ups", held.ups), ("downs", held.downs)]}
    squares = np.zeros(len(nodes), np.float32)
    held.learn(groups, vectors, strays, squares, pull, decay, 0.1, 1)
    for part, twin in zip(held.shared, shared, strict=True):
        assert np.allclose(recorded[id(part)], twin.grad.numpy(), atol=1e-3)
    for name, memory in (("ups", held.memories[0]), ("downs", held.memories[1])):
        gradient = tensor[name].grad.numpy().reshape(len(nodes), -1)
        assert np.allclose(memory.squares, np.mean(gradient**2, axis=1), rtol=1e-3)
        moved = (getattr(held, name) - before[name]).reshape(len(nodes), -1)
        assert np.allclose(moved, -0.1 * gradient / (np.sqrt(memory.squares)[:, None] + 1e-10), atol=1e-3)
    for node in range(1, len(nodes)):
        gradient = vector_of(shape, tensor["vectors"].grad.numpy(), node)
        assert squares[node] == pytest.approx(np.mean(gradient**2), rel=1e-3)
        moved = vector_of(shape, vectors - before["vectors"], node)
        assert np.allclose(moved, -0.1 * gradient / (np.sqrt(squares[node]) + 1e-10), atol=1e-3)


def torch_loss(torch, net, shape, x, weights, reaches, consistency, decay, parts):
    """The summed loss of a batch, in full; every document passes below every node that it reaches."""
    features, offset, maps, vectors, bias = parts
    hidden = torch.relu(x @ features + offset)
    raw, nodes, loss = hidden @ maps.T, shape.nodes, 0
    for node in range(1, len(nodes)):
        parent, level = int(nodes.parent[node]), int(shape.level[node])
        passing = [row for row, reached in enumerate(reaches) if parent in reached]
        if not passing:
            continue
        own, part = vector_of(shape, vectors, node), raw[passing, shape.parts()[level]]
        margin = part @ own
        if net.ball:
            norms = part.norm(dim=1)
            r, e = float(RADIUS) * torch.tanh(norms / float(RADIUS)), own.norm()
            cosine = margin / (norms * e)
            distance = torch.acosh(torch.cosh(r) * torch.cosh(e) - torch.sinh(r) * torch.sinh(e) * cosine)
            margin = (r.square() + e.square() - distance.square()) / 2
        goes = torch.tensor([float(node in reaches[row]) for row in passing], dtype=torch.float64)
        losses = torch.nn.functional.binary_cross_entropy_with_logits(margin + bias[node], goes, reduction="none")
        loss = loss + (losses * torch.tensor(weights[passing, level], dtype=torch.float64)).sum()
        goal = torch.zeros(len(own), dtype=torch.float64)
        if parent and net.projections is not None:
            above = vector_of(shape, vectors, parent).detach()  # moved by a step of its own
            goal = above @ torch.tensor(net.projections.shared[level - 1].value, dtype=torch.float64)
        loss = loss + consistency * (own - goal).square().sum() + decay / 2 * own.square().sum()
    return loss


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize(("consistency", "decay"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.2)])
def test_a_step_has_the_gradients_that_torch_finds(shape, rng, recorded, ball, consistency, decay):
    torch = pytest.importorskip("torch")
    n, hidden = 6, 8
    X = sp.csr_matrix(rng.random((n, 7)).astype(np.float32) * (rng.random((n, 7)) < 0.6))
    Y = sp.csr_matrix((rng.random((n, 9)) < 0.3).astype(np.float32))
    starts, reached = node_rows(Y, shape.nodes)
    net = LevelNet(X, shape, hidden, 1 if consistency else None, rng.random(10), ball, rng)
    net.vectors *= 10
    net.features.vectors *= 30
    weights = rng.random((n, 3)).astype(np.float32) + np.float32(0.5)
    parts = [
        torch.tensor(value, dtype=torch.float64, requires_grad=True)
        for value in (net.features.vectors, net.offset.value, net.maps.value, net.vectors, net.bias)
    ]
    x = torch.tensor(X.toarray(), dtype=torch.float64)
    reaches = [set(reached[starts[row] : starts[row + 1]].tolist()) for row in range(n)]
    torch_loss(torch, net, shape, x, weights, reaches, consistency, decay, parts).backward()
    features, offset, maps, vectors, bias = (part.grad.numpy() for part in parts)
    before = net.features.vectors.copy(), net.vectors.copy(), net.bias.copy()
    if net.projections is not None:
        net.projections.learn = lambda *_: None  # has its own test; here it would add to the parents' steps
    rows = np.arange(n, dtype=np.int32)
    pace = Pace(0.1, 0.01, 0.2, 2 * consistency, decay)
    net.learn((X.data, X.indices, X.indptr), rows, starts, reached, weights, 0.0, pace, rng)
    assert np.allclose(recorded[id(net.maps)], maps, atol=5e-3, rtol=1e-2)
    assert np.allclose(recorded[id(net.offset)], offset, atol=5e-3, rtol=1e-2)
    assert np.allclose(net.features.squares, np.mean(features**2, axis=1), rtol=2e-2, atol=1e-5)
    want = -0.2 * features / (np.sqrt(np.mean(features**2, axis=1))[:, None] + 1e-10)
    assert np.allclose(net.features.vectors - before[0], want, atol=1e-2)
    assert np.allclose(net.bias_squares[1:], bias[1:] ** 2, rtol=1e-2, atol=1e-6)
    assert np.allclose((net.bias - before[2])[1:], -0.1 * np.sign(bias[1:]), atol=1e-5)
    for node in range(1, len(shape.nodes)):
        gradient = vector_of(shape, vectors, node)
        size = np.sqrt(np.mean(gradient**2))
        assert net.squares[node] == pytest.approx(size**2, rel=2e-2, abs=1e-6)
        moved = vector_of(shape, net.vectors - before[1], node)
        assert np.allclose(moved, -0.1 * gradient / max(size, 1e-10), atol=1e-2)


@pytest.mark.parametrize("ball", [False, True])
def test_a_step_that_pulls_moves_the_projections_of_the_parents_it_passes(shape, rng, ball):
    X, Y = sp.csr_matrix(np.ones((1, 3), np.float32)), sp.csr_matrix(([1.0], ([0], [5])), (1, 9))  # 5 below 2 below 0
    starts, reached = node_rows(Y, shape.nodes)
    net = LevelNet(X, shape, 4, 1, rng.random(10), ball, rng)
    batch, rows, weights = (X.data, X.indices, X.indptr), np.zeros(1, np.int32), np.ones((1, 3), np.float32)
    net.learn(batch, rows, starts, reached, weights, 0.0, Pace(0.1, 0.01, 0.1, 0.5, 0.0), rng)
    assert all((shared.value != np.eye(*shared.value.shape)).any() for shared in net.projections.shared)
    passed = set(reached.tolist()) & set(np.flatnonzero(shape.nodes.last_child)) - {0}
    assert len(passed) == 2
    assert set(np.flatnonzero(net.projections.ups.any(axis=(1, 2)))) == passed


def test_what_dropout_leaves_out_is_not_moved(shape, rng):
    """With all but a few units dropped, only their columns of the maps move; they count for the others too."""
    X, Y = sp.csr_matrix(np.ones((4, 3), np.float32)), sp.csr_matrix(np.eye(4, 9, dtype=np.float32))
    net = LevelNet(X, shape, 200, None, rng.random(10), False, rng)
    net.features.vectors[:] = 0.1
    before, found = net.maps.value.copy(), []
    net.features.descend = lambda batch, gradient, rate: found.append(gradient)
    batch = (X[:1].data, X[:1].indices, X[:1].indptr)
    starts, reached = node_rows(Y, shape.nodes)
    net.learn(
        batch, np.zeros(1, np.int32), starts, reached, np.ones((1, 3), np.float32), 0.9, Pace(0.1, 0.1, 0, 0, 0), rng
    )
    moved = (net.maps.value != before).any(axis=0)
    assert 5 < moved.sum() < 60
    assert np.array_equal(moved, found[0][0] != 0)


def test_biases_begin_at_the_chances(shape, rng):
    X = sp.csr_matrix(np.ones((2, 3), np.float32))
    chances = np.array([1.0, 0.0, 0.5, 0.25, 1, 1, 1, 1, 1, 1])
    bias = LevelNet(X, shape, 2, None, chances, False, rng).bias
    assert np.allclose(1 / (1 + np.exp(-bias[2:4])), [0.5, 0.25])
    assert np.isfinite(bias).all()
    assert bias[1] < -13
    assert bias[0] == pytest.approx(np.log(999), rel=1e-3)
