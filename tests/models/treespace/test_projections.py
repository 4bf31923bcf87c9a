"""Projections of parents, and their step against torch's gradients."""

import numpy as np
import pytest

from labelspace.models.treespace.kernels import TrainedNodes
from labelspace.models.treespace.projections import ParentMatrices, Penalties, Projections
from tests.models.recorded_gradients import record_adam
from tests.models.treespace.embeddings import embedding_of, random_embeddings


def random_projections(layout, rng, rank=2):
    projections = Projections(layout, rank, rng)
    for shared in projections.shared:
        shared.value += rng.standard_normal(shared.value.shape).astype(np.float32)
    for node in range(1, len(layout.nodes)):
        if layout.nodes.last_child[node] > 0:  # what lies beyond the width of the children is never used
            projections.ups[node, :, : layout.widths[layout.level[node] + 1]] = 0.5
    projections.downs *= 10
    return projections


def test_initial_projections_keep_coordinates(layout, rng):
    embeddings = random_embeddings(layout, rng)
    targets = Projections(layout, 2, rng).targets(np.array([0, 1, 4], np.int32), embeddings)
    assert targets.shape == (3, 5)
    assert not targets[0].any()
    assert np.allclose(targets[1], [*embedding_of(layout, embeddings, 1), 0, 0, 0])
    assert np.allclose(targets[2], [*embedding_of(layout, embeddings, 4), 0])


def test_initial_matrices_of_parents_keep_coordinates(layout, rng):
    embeddings, parents = random_embeddings(layout, rng), np.array([0, 1, 4], np.int32)
    shared = Projections(layout, 2, rng).targets(parents, embeddings)
    assert np.array_equal(ParentMatrices(layout).targets(parents, embeddings), shared)


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_a_step_of_full_matrices_has_the_gradients_that_torch_finds(layout, rng, weight_decay):
    torch = pytest.importorskip("torch")
    projections, embeddings = ParentMatrices(layout), random_embeddings(layout, rng)
    for matrices in projections.matrices:
        matrices += rng.standard_normal(matrices.shape).astype(np.float32)
    parents, nodes, consistency_weight = np.array([0, 1, 2, 4], np.int32), layout.nodes, 0.3  # not 5, with a child too
    leaf = torch.tensor(embeddings, dtype=torch.float64, requires_grad=True)
    tensors = [torch.tensor(part, dtype=torch.float64, requires_grad=True) for part in projections.matrices]
    targets, residuals, loss = projections.targets(parents, embeddings), np.zeros((4, 5), np.float32), 0
    for at, parent in enumerate(parents.tolist()[1:], start=1):
        level = int(layout.level[parent])
        matrix = tensors[level][parent - int(np.flatnonzero(nodes.level == level + 1)[0])]
        target = embedding_of(layout, leaf, parent) @ matrix
        width = len(target)
        assert np.allclose(targets[at, :width], target.detach().numpy(), atol=1e-4)
        assert not targets[at, width:].any()
        for child in range(nodes.first_child[parent], nodes.last_child[parent]):
            constant = embedding_of(layout, embeddings, child)
            residuals[at, :width] += constant - targets[at, :width]
            loss = loss + consistency_weight * (torch.tensor(constant, dtype=torch.float64) - target).square().sum()
        identity = torch.eye(*matrix.shape, dtype=torch.float64)
        loss = loss + weight_decay / 2 * (matrix - identity).square().sum()
    loss.backward()
    before = [part.copy() for part in (*projections.matrices, embeddings)]
    squares = np.zeros(len(nodes), np.float32)
    trained = TrainedNodes(embeddings, np.zeros_like(squares), squares, np.zeros_like(squares))
    projections.backward(parents, trained, residuals, Penalties(consistency_weight, 1, weight_decay), 0.1, 1)
    for part, old, twin in zip(projections.matrices, before, tensors, strict=False):
        gradient = twin.grad.numpy().reshape(len(part), -1)
        step = -0.1 * gradient / (np.sqrt(np.mean(gradient**2, axis=1, keepdims=True)) + 1e-10)
        assert np.allclose((part - old).reshape(len(part), -1), step, atol=1e-3)
    assert any(not twin.grad[-1].any() for twin in tensors), "what is not named is not updated"
    for node in range(1, len(nodes)):
        gradient = embedding_of(layout, leaf.grad.numpy(), node)
        step = embedding_of(layout, embeddings - before[-1], node)
        assert squares[node] == pytest.approx(np.mean(gradient**2), rel=1e-3)
        assert np.allclose(step, -0.1 * gradient / (np.sqrt(squares[node]) + 1e-10), atol=1e-3)


@pytest.mark.parametrize(("consistency_weight", "weight_decay"), [(0.3, 0.0), (0.3, 0.3)])
def test_a_step_has_the_gradients_that_torch_finds(layout, rng, monkeypatch, consistency_weight, weight_decay):
    """Of consistency_weight times the squared distances of children from their targets."""
    torch = pytest.importorskip("torch")
    projections, embeddings = random_projections(layout, rng), random_embeddings(layout, rng)
    parents = np.array([0, 1, 2, 4, 5], np.int32)
    nodes = layout.nodes
    arrays = {"embeddings": embeddings, "ups": projections.ups, "downs": projections.downs}
    tensor = {name: torch.tensor(array, dtype=torch.float64, requires_grad=True) for name, array in arrays.items()}
    shared = [torch.tensor(part.value, dtype=torch.float64, requires_grad=True) for part in projections.shared]
    targets, residuals, loss = projections.targets(parents, embeddings), np.zeros((5, 5), np.float32), 0
    for at, parent in enumerate(parents.tolist()[1:], start=1):
        level, width = int(layout.level[parent]), int(layout.widths[layout.level[parent] + 1])
        vector = embedding_of(layout, tensor["embeddings"], parent)
        low_rank = tensor["ups"][parent, :, :width].T @ tensor["downs"][parent, :, : len(vector)]
        target = vector @ shared[level] + low_rank @ vector
        assert np.allclose(targets[at, :width], target.detach().numpy(), atol=1e-4)
        assert not targets[at, width:].any()
        for child in range(nodes.first_child[parent], nodes.last_child[parent]):
            residuals[at, :width] += embedding_of(layout, embeddings, child) - targets[at, :width]
            constant = torch.tensor(embedding_of(layout, embeddings, child), dtype=torch.float64)  # see the kernel
            loss = loss + consistency_weight * (constant - target).square().sum()
        loss = loss + weight_decay / 2 * tensor["ups"][parent, :, :width].square().sum()
        loss = loss + weight_decay / 2 * tensor["downs"][parent, :, : len(vector)].square().sum()
    for part in shared:
        loss = loss + weight_decay / 2 * (part - torch.eye(*part.shape, dtype=torch.float64)).square().sum()
    loss.backward()
    before = {
        name: array.copy()
        for name, array in [("embeddings", embeddings), ("ups", projections.ups), ("downs", projections.downs)]
    }
    squares, gradients = np.zeros(len(nodes), np.float32), record_adam(monkeypatch)
    trained = TrainedNodes(embeddings, np.zeros_like(squares), squares, np.zeros_like(squares))
    projections.backward(parents, trained, residuals, Penalties(consistency_weight, 1, weight_decay), 0.1, 1)
    for part, twin in zip(projections.shared, shared, strict=True):
        assert np.allclose(gradients[id(part)], twin.grad.numpy(), atol=1e-3)
    for name, optimizer in (("ups", projections.optimizers[0]), ("downs", projections.optimizers[1])):
        gradient = tensor[name].grad.numpy().reshape(len(nodes), -1)
        assert np.allclose(optimizer.squares, np.mean(gradient**2, axis=1), rtol=1e-3)
        step = (getattr(projections, name) - before[name]).reshape(len(nodes), -1)
        assert np.allclose(step, -0.1 * gradient / (np.sqrt(optimizer.squares)[:, None] + 1e-10), atol=1e-3)
    for node in range(1, len(nodes)):
        gradient = embedding_of(layout, tensor["embeddings"].grad.numpy(), node)
        assert squares[node] == pytest.approx(np.mean(gradient**2), rel=1e-3)
        step = embedding_of(layout, embeddings - before["embeddings"], node)
        assert np.allclose(step, -0.1 * gradient / (np.sqrt(squares[node]) + 1e-10), atol=1e-3)
