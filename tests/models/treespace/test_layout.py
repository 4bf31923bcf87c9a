"""Dimensions, offsets and quantization of the embeddings of a tree."""

import numpy as np
import pytest

from labelspace.models.treespace.layout import level_dims, quantize_nodes
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
    assert layout.document_offset.tolist() == [0, 0, 0, 0, 2, 2, 2, 6, 6, 6]
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
