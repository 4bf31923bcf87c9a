"""A step of the network of levels against torch's gradients, its dropout and its initialization."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.models.treespace.kernels import MAX_NORM
from labelspace.models.treespace.network import LearningRates, LevelNet, QuantizedLevelNet
from labelspace.models.treespace.projections import Penalties
from labelspace.models.treespace.tree import paths_to_labels
from tests.models.recorded_gradients import first_adagrad_step, record_adam
from tests.models.treespace.embeddings import embedding_of


def torch_loss(torch, net, x, weights, paths, parts):
    """The summed loss of a batch, by its definition; ``paths`` are the nodes on the paths of each document."""
    features, hidden_bias, maps, embeddings, bias = parts
    hidden = torch.relu(x @ features + hidden_bias)
    raw, layout, nodes, loss = hidden @ maps.T, net.layout, net.layout.nodes, 0
    for node in range(1, len(nodes)):
        parent, level = int(nodes.parent[node]), int(layout.level[node])
        rows = [row for row, on_path in enumerate(paths) if parent in on_path]
        if not rows:
            continue
        embedding, documents = embedding_of(layout, embeddings, node), raw[rows, layout.level_slices()[level]]
        margin = documents @ embedding
        if net.ball:
            norms = documents.norm(dim=1)
            r, e = float(MAX_NORM) * torch.tanh(norms / float(MAX_NORM)), embedding.norm()
            cosine = margin / (norms * e)
            distance = torch.acosh(torch.cosh(r) * torch.cosh(e) - torch.sinh(r) * torch.sinh(e) * cosine)
            margin = (r.square() + e.square() - distance.square()) / 2
        truth = torch.tensor([float(node in paths[row]) for row in rows], dtype=torch.float64)
        losses = torch.nn.functional.binary_cross_entropy_with_logits(margin + bias[node], truth, reduction="none")
        loss = loss + (losses * torch.tensor(weights[rows, level], dtype=torch.float64)).sum()
        target = torch.zeros(len(embedding), dtype=torch.float64)
        if parent and net.projections is not None:
            parent_embedding = embedding_of(layout, embeddings, parent).detach()  # updated by Projections.backward
            target = parent_embedding @ torch.tensor(net.projections.shared[level - 1].value, dtype=torch.float64)
        loss = loss + net.penalties.consistency * (embedding - target).square().sum()
        loss = loss + net.penalties.weight_decay / 2 * embedding.square().sum()
    return loss


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize(("consistency_weight", "weight_decay"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.2)])
def test_a_step_has_the_gradients_that_torch_finds(layout, rng, monkeypatch, ball, consistency_weight, weight_decay):
    torch = pytest.importorskip("torch")
    n, hidden_dim = 6, 8
    X = sp.csr_matrix(rng.random((n, 7)).astype(np.float32) * (rng.random((n, 7)) < 0.6))
    Y = sp.csr_matrix((rng.random((n, 9)) < 0.3).astype(np.float32))
    paths = paths_to_labels(Y, layout.nodes)
    penalties = Penalties(consistency_weight, weight_decay=weight_decay)
    net = LevelNet(X, layout, hidden_dim, rng.random(10), rng, ball=ball, penalties=penalties)
    net.nodes.embeddings[:] *= 10
    net.features.vectors *= 30
    weights = rng.random((n, 3)).astype(np.float32) + np.float32(0.5)
    parts = [
        torch.tensor(value, dtype=torch.float64, requires_grad=True)
        for value in (
            net.features.vectors,
            net.hidden_bias.value,
            net.level_maps.value,
            net.nodes.embeddings,
            net.nodes.bias,
        )
    ]
    x = torch.tensor(X.toarray(), dtype=torch.float64)
    on_path = [set(nodes.tolist()) for nodes in np.split(paths.nodes, paths.starts[1:-1])]
    torch_loss(torch, net, x, weights, on_path, parts).backward()
    features, hidden_bias, maps, embeddings, bias = (part.grad.numpy() for part in parts)
    before = net.features.vectors.copy(), net.nodes.embeddings.copy(), net.nodes.bias.copy()
    if net.projections is not None:
        net.projections.backward = lambda *_: None  # has its own test; here it would add to the steps of parents
    gradients = record_adam(monkeypatch)
    rows, rates = np.arange(n, dtype=np.int32), LearningRates(nodes=0.1, dense=0.01, features=0.2)
    net.train_step((X.data, X.indices, X.indptr), rows, paths, weights, 0.0, rates, rng)
    assert np.allclose(gradients[id(net.level_maps)], maps, atol=5e-3, rtol=1e-2)
    assert np.allclose(gradients[id(net.hidden_bias)], hidden_bias, atol=5e-3, rtol=1e-2)
    assert np.allclose(net.features.squares, np.mean(features**2, axis=1), rtol=2e-2, atol=1e-5)
    assert np.allclose(net.features.vectors - before[0], first_adagrad_step(features, 0.2), atol=1e-2)
    assert np.allclose(net.nodes.bias_squares[1:], bias[1:] ** 2, rtol=1e-2, atol=1e-6)
    assert np.allclose((net.nodes.bias - before[2])[1:], -0.1 * np.sign(bias[1:]), atol=1e-5)
    for node in range(1, len(layout.nodes)):
        gradient = embedding_of(layout, embeddings, node)
        assert net.nodes.squares[node] == pytest.approx(np.mean(gradient**2), rel=2e-2, abs=1e-6)
        step = embedding_of(layout, net.nodes.embeddings - before[1], node)
        assert np.allclose(step, first_adagrad_step(gradient[None], 0.1)[0], atol=1e-2)


@pytest.mark.parametrize("ball", [False, True])
def test_the_consistency_loss_updates_the_projections_of_parents_on_the_paths(layout, rng, ball):
    X, Y = sp.csr_matrix(np.ones((1, 3), np.float32)), sp.csr_matrix(([1.0], ([0], [5])), (1, 9))  # 5 below 2 below 0
    paths = paths_to_labels(Y, layout.nodes)
    net = LevelNet(X, layout, 4, rng.random(10), rng, ball=ball, penalties=Penalties(0.25))
    batch, rows, weights = (X.data, X.indices, X.indptr), np.zeros(1, np.int32), np.ones((1, 3), np.float32)
    net.train_step(batch, rows, paths, weights, 0.0, LearningRates(0.1, 0.01, 0.1), rng)
    assert all((shared.value != np.eye(*shared.value.shape)).any() for shared in net.projections.shared)
    parents = set(paths.nodes.tolist()) & set(np.flatnonzero(layout.nodes.last_child)) - {0}
    assert len(parents) == 2
    assert set(np.flatnonzero(net.projections.ups.any(axis=(1, 2)))) == parents


def test_dropped_units_are_not_updated(layout, rng):
    """With all but a few units dropped, only their columns of the level maps change."""
    X, Y = sp.csr_matrix(np.ones((4, 3), np.float32)), sp.csr_matrix(np.eye(4, 9, dtype=np.float32))
    net = LevelNet(X, layout, 200, rng.random(10), rng)
    net.features.vectors[:] = 0.1
    before, gradients = net.level_maps.value.copy(), []
    net.features.backward = lambda batch, gradient, rate: gradients.append(gradient)
    batch = (X[:1].data, X[:1].indices, X[:1].indptr)
    paths = paths_to_labels(Y, layout.nodes)
    rows, weights = np.zeros(1, np.int32), np.ones((1, 3), np.float32)
    net.train_step(batch, rows, paths, weights, 0.9, LearningRates(0.1, 0.1, 0.0), rng)
    updated = (net.level_maps.value != before).any(axis=0)
    assert 5 < updated.sum() < 60
    assert np.array_equal(updated, gradients[0][0] != 0)


def test_biases_start_at_the_log_odds(layout, rng):
    X = sp.csr_matrix(np.ones((2, 3), np.float32))
    probabilities = np.array([1.0, 0.0, 0.5, 0.25, 1, 1, 1, 1, 1, 1])
    bias = LevelNet(X, layout, 2, probabilities, rng).nodes.bias
    assert np.allclose(1 / (1 + np.exp(-bias[2:4])), [0.5, 0.25])
    assert np.isfinite(bias).all()
    assert bias[1] < -13
    assert bias[0] == pytest.approx(np.log(999), rel=1e-3)


def test_a_quantized_net_has_the_document_vectors_and_norms_of_the_net(layout, rng):
    X = sp.csr_matrix(rng.random((5, 7)).astype(np.float32))
    net = LevelNet(X, layout, 8, rng.random(10), rng, ball=True)
    stored = QuantizedLevelNet.from_net(net)
    hidden = np.maximum(X @ (stored.feature_embeddings * stored.feature_scales[:, None]), 0)
    assert np.allclose(stored.document_vectors(X), hidden @ net.level_maps.value.T, atol=1e-4)
    norms = stored.node_norms(layout)
    for node in range(1, len(layout.nodes)):
        embedding = embedding_of(layout, stored.node_embeddings.astype(np.float64), node)
        assert norms[node] == pytest.approx(np.linalg.norm(embedding) * stored.node_scales[node], rel=1e-4)
