"""Bounded norms of documents in the Poincaré ball, and their gradient."""

import numpy as np
import pytest

from labelspace.models.treespace.ball import bound_norms, bound_norms_backward
from labelspace.models.treespace.kernels import MAX_NORM


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
