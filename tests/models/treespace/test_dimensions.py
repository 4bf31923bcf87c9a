"""The penalty on dimensions: the proximal step against its definition, and what it does to a training."""

import numpy as np
import pytest

from labelspace.models.treespace.dimensions import effective_dimensions, shrink_dimensions
from tests.models.treespace.embeddings import embedding_of, random_embeddings


def groups(layout, embeddings):
    """Each coordinate of each level, over the level's nodes, from the nodes one by one."""
    for level in range(layout.levels):
        nodes = [node for node in range(1, len(layout.nodes)) if layout.level[node] == level]
        matrix = np.array([embedding_of(layout, embeddings, node) for node in nodes])
        yield from matrix.T


def objective(layout, embeddings, given, threshold):
    """What the proximal step minimizes: half the squared distance, and the penalty."""
    penalty = sum(np.linalg.norm(group) for group in groups(layout, embeddings))
    return 0.5 * np.sum((embeddings - given) ** 2) + threshold * penalty


@pytest.mark.parametrize("threshold", [0.3, 1.5])
def test_a_proximal_step_minimizes_distance_plus_penalty(layout, rng, threshold):
    given = random_embeddings(layout, rng)
    stepped = given.copy()
    shrink_dimensions(layout, stepped, threshold)
    best = objective(layout, stepped.astype(np.float64), given, threshold)
    assert best < objective(layout, given.astype(np.float64), given, threshold) - 0.01
    for scale in (1e-3, 1e-2, 0.1):
        for _ in range(50):
            near = stepped + scale * rng.standard_normal(len(given))
            assert objective(layout, near, given, threshold) > best - 1e-6


def test_each_group_gets_shorter_by_the_threshold_and_short_ones_become_zero(layout, rng):
    given = random_embeddings(layout, rng)
    stepped = given.copy()
    shrink_dimensions(layout, stepped, 1.5)
    norms = [np.linalg.norm(group) for group in groups(layout, given)]
    after = [np.linalg.norm(group) for group in groups(layout, stepped)]
    assert np.allclose(after, np.maximum(np.array(norms) - 1.5, 0), atol=1e-5)
    assert 0 < sum(norm == 0 for norm in after) < len(after), "some are zero, not all"


def test_effective_dimensions_are_the_coordinates_with_a_norm(layout, rng):
    embeddings = np.abs(random_embeddings(layout, rng)) + 1
    assert effective_dimensions(layout, embeddings) == [2, 4, 5]
    shares = [layout.level_matrices(embeddings)[1], layout.level_matrices(embeddings)[2]]
    shares[0][:, [0, 3]] = 0
    shares[1][:, 1] *= 1e-4
    assert effective_dimensions(layout, embeddings) == [2, 2, 4]
    assert effective_dimensions(layout, np.zeros_like(embeddings)) == [0, 0, 0]


def test_level_matrices_are_views_of_the_nodes_of_each_level(layout, rng):
    embeddings = random_embeddings(layout, rng)
    matrices = layout.level_matrices(embeddings)
    for level, matrix in enumerate(matrices):
        nodes = [node for node in range(1, len(layout.nodes)) if layout.level[node] == level]
        assert np.array_equal(matrix, [embedding_of(layout, embeddings, node) for node in nodes])
        matrix[:] = 7
    assert (embeddings == 7).all()
