"""Theorem 2.1: label embeddings of d = O(s^2 log K) dimensions suffice for perfect training accuracy."""

import numpy as np

from labelspace.index import Exact


def test_a_low_dimension_suffices_for_perfect_training_accuracy():
    rng = np.random.default_rng(0)
    K, s, n = 5000, 3, 400
    d = int(np.ceil(18 * s * np.log(4 * float(K) ** s)))  # the proof's, for any number of documents
    assert d < K / 3
    true = np.array([rng.choice(K, s, replace=False) for _ in range(n)])
    V = rng.choice(np.array([-1, 1], np.float32), (K, d)) / np.float32(np.sqrt(d))
    phi = V[true].sum(axis=1)
    scores = phi @ V.T
    is_true = np.zeros((n, K), bool)
    np.put_along_axis(is_true, true, True, axis=1)
    assert np.allclose(np.linalg.norm(V, axis=1), 1, atol=1e-5)  # item 2
    assert scores[is_true].min() >= 2 / 3  # item 3
    assert scores[~is_true].max() <= 1 / 3  # item 4
    products = V[:500] @ V.T
    products[np.arange(500), np.arange(500)] = 0
    assert products.max() <= np.sqrt(2 * np.log(4 * K**2) / d)  # item 5
    largest = s + s * (s - 1) * np.sqrt(2 * np.log(4 * K**2) / d)
    assert (np.linalg.norm(phi, axis=1) ** 2 <= largest).all()  # item 6
    top = Exact(V, np.arange(K, dtype=np.int32)).search(phi, s)
    assert np.array_equal(np.sort(top.labels, axis=1), np.sort(true, axis=1)), "all documents get their labels"


def test_too_low_a_dimension_does_not():
    rng = np.random.default_rng(0)
    true = np.array([rng.choice(1000, 3, replace=False) for _ in range(100)])
    V = rng.choice(np.array([-1, 1], np.float32), (1000, 8)) / np.float32(np.sqrt(8))
    top = Exact(V, np.arange(1000, dtype=np.int32)).search(V[true].sum(axis=1), 3)
    assert not np.array_equal(np.sort(top.labels, axis=1), np.sort(true, axis=1))
