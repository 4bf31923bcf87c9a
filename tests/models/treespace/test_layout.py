"""Dimensions, offsets and quantization of the embeddings of a tree."""

import numpy as np
import pytest

from labelspace.models.treespace.kernels import MAX_NORM
from labelspace.models.treespace.layout import (
    bound_norms,
    bound_norms_backward,
    effective_dimensions,
    level_dims,
    quantize_nodes,
    shrink_dimensions,
)
from tests.models.treespace.embeddings import embedding_of, random_embeddings


@pytest.mark.parametrize(
    ("root", "leaf", "levels", "expected"),
    [
        (64, 256, 1, [256]),
        (64, 256, 2, [64, 256]),
        (8, 8, 3, [8, 8, 8]),
        (1, 1000, 4, [1, 10, 100, 1000]),
        (9, 1, 3, [9, 3, 1]),
    ],
)
def test_dimensions_go_from_root_to_leaf_by_a_constant_factor(root, leaf, levels, expected):
    assert level_dims(root, leaf, levels).tolist() == expected


def test_every_node_has_its_own_slice(layout):
    assert layout.level.tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert layout.width.tolist() == [0, 2, 2, 2, 4, 4, 4, 5, 5, 5]
    assert layout.arrays.document_offset.tolist() == [0, 0, 0, 0, 2, 2, 2, 6, 6, 6]
    covered = np.concatenate([np.arange(at, at + width) for at, width in zip(layout.offset, layout.width, strict=True)])
    assert covered.tolist() == list(range(int(layout.width.sum())))
    assert layout.level_slices() == [slice(0, 2), slice(2, 6), slice(6, 11)]
    assert layout.indices(np.array([4, 6])).tolist() == [[6, 7, 8, 9], [14, 15, 16, 17]]


def test_an_int8_is_at_most_half_a_scale_off(layout, rng):
    embeddings = random_embeddings(layout, rng)
    embeddings[layout.indices(np.array([2]))] = 0
    quantized, scales = quantize_nodes(layout, embeddings)
    assert quantized.dtype == np.int8
    for node in range(1, len(layout.nodes)):
        expected = embedding_of(layout, embeddings, node)
        assert np.allclose(embedding_of(layout, quantized, node) * scales[node], expected, atol=scales[node] * 0.5001)
        assert scales[node] == pytest.approx(np.abs(expected).max() / 127, abs=1e-30)


def test_documents_are_unchanged_without_the_ball(layout, rng):
    documents = rng.standard_normal((3, 11)).astype(np.float32)
    bounded, norms = bound_norms(layout, documents, ball=False)
    assert bounded is documents
    assert (norms == 1).all()


def test_norms_are_bounded_and_short_vectors_hardly_change(layout, rng):
    raw = rng.standard_normal((4, 11)).astype(np.float32)
    raw[0] *= 100
    raw[1] *= 1e-3
    raw[2, 2:6] = 0
    before = raw.copy()
    bounded, norms = bound_norms(layout, raw, ball=True)
    assert np.array_equal(raw, before)
    for level, part in enumerate(layout.level_slices()):
        raw_norms = np.linalg.norm(raw[:, part], axis=1)
        assert np.allclose(norms[:, level], MAX_NORM * np.tanh(raw_norms / MAX_NORM), atol=1e-5)
        assert np.allclose(np.linalg.norm(bounded[:, part], axis=1), norms[:, level], atol=1e-5)
    assert norms.max() <= MAX_NORM
    assert norms.min() > 0
    assert np.allclose(bounded[1], raw[1], rtol=1e-2)


def test_the_backward_pass_is_the_gradient(layout, rng):
    raw = rng.standard_normal((3, 11)).astype(np.float32)
    raw[0] *= 4
    by_bounded, by_norms = (
        rng.standard_normal((3, 11)).astype(np.float32),
        rng.standard_normal((3, 3)).astype(np.float32),
    )

    def loss(values):
        total = 0.0
        for level, part in enumerate(layout.level_slices()):
            raw_norms = np.linalg.norm(values[:, part], axis=1)
            norms = float(MAX_NORM) * np.tanh(raw_norms / float(MAX_NORM))
            total += (by_bounded[:, part] * values[:, part] * (norms / raw_norms)[:, None]).sum()
            total += by_norms[:, level] @ norms
        return total

    gradient = bound_norms_backward(layout, raw, *bound_norms(layout, raw, ball=True), by_bounded, by_norms)
    values, step = raw.astype(np.float64), 1e-5
    for at in np.ndindex(*raw.shape):
        up, down = values.copy(), values.copy()
        up[at] += step
        down[at] -= step
        assert gradient[at] == pytest.approx((loss(up) - loss(down)) / (2 * step), abs=1e-4)
    zero = np.zeros((1, 11), np.float32)
    gradient = bound_norms_backward(layout, zero, *bound_norms(layout, zero, ball=True), by_bounded[:1], by_norms[:1])
    assert np.isfinite(gradient).all()


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
