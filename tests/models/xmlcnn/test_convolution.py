"""Convolutions with max-pooling against plain NumPy."""

import numpy as np
import pytest

from labelspace.kernels.sparse_layers import Layer
from labelspace.models.xmlcnn.kernels import (
    Block,
    Convolutions,
    Documents,
    Network,
    convolution_topk,
    number_words,
    pool_documents,
    product_gradients,
    word_products,
)

LENGTHS = [7, 0, 1, 3, 12]  # none, fewer than chunks, and many


def documents(seed=0, n_words=6):
    rng = np.random.default_rng(seed)
    ends = np.append(0, np.cumsum(LENGTHS)).astype(np.int64)
    return rng.integers(-1, n_words, ends[-1]).astype(np.int32), ends


def windows(products, width, n_filters, words):
    """The value of each filter at each word: (words, filters)."""
    table = products.reshape(len(products), width, n_filters)
    values = np.zeros((len(words), n_filters))
    for t in range(len(words)):
        for offset, word in enumerate(words[t : t + width]):
            if word >= 0:
                values[t] += table[word, offset]
    return values


def chunks(n_words, n_chunks):
    """The words of each chunk: parts of almost the same size, of at least one word."""
    starts = [i * n_words // n_chunks for i in range(n_chunks)]
    return [range(start, max(start + 1, (i + 1) * n_words // n_chunks)) for i, start in enumerate(starts)]


def pooled_twin(products, width, n_filters, tokens, ends, n_chunks):
    out, at = np.zeros((len(ends) - 1, n_chunks, n_filters)), np.full((len(ends) - 1, n_chunks, n_filters), -1)
    for i in range(len(ends) - 1):
        values = windows(products, width, n_filters, tokens[ends[i] : ends[i + 1]])
        if len(values):
            for c, part in enumerate(chunks(len(values), n_chunks)):
                out[i, c], at[i, c] = values[part].max(axis=0), values[part].argmax(axis=0) + part[0]
    return out, at


@pytest.fixture(params=[(1, 1), (2, 3), (4, 2), (8, 5)])
def case(request):
    width, n_chunks = request.param
    tokens, ends = documents()
    products = np.random.default_rng(1).standard_normal((6, width * 3)).astype(np.float32)
    out, at = np.full((5, n_chunks, 5), 9, np.float32), np.full((5, n_chunks, 5), 9, np.int32)
    pool_documents(products, Block(width, 3, 1), Documents(tokens, ends), out, at)
    return width, n_chunks, tokens, ends, products, out, at


def test_the_largest_window_of_each_chunk(case):
    width, n_chunks, tokens, ends, products, out, at = case
    values, positions = pooled_twin(products, width, 3, tokens, ends, n_chunks)
    assert np.allclose(out[:, :, 1:4], values, atol=1e-5)
    assert np.array_equal(at[:, :, 1:4], positions)
    assert (out[:, :, [0, 4]] == 9).all(), "the columns of other blocks stay"


def test_gradients_go_to_the_words_of_the_largest_windows(case):
    width, n_chunks, tokens, ends, products, _, at = case
    gradient = np.random.default_rng(2).standard_normal(at.shape).astype(np.float32)
    out = np.full(products.shape, 7, np.float32)
    product_gradients(gradient, at, Block(width, 3, 1), Documents(tokens, ends), out)

    def weighted_sum(table):
        return (pooled_twin(table, width, 3, tokens, ends, n_chunks)[0] * gradient[:, :, 1:4]).sum()

    for place in np.ndindex(products.shape):
        up, down = products.astype(np.float64), products.astype(np.float64)
        up[place] += 1e-6
        down[place] -= 1e-6
        assert np.isclose(out[place], (weighted_sum(up) - weighted_sum(down)) / 2e-6, atol=1e-3)


@pytest.mark.parametrize("dim", [1, 4, 7])
def test_products_of_words(dim):
    rng = np.random.default_rng(dim)
    vectors, scales = rng.integers(-127, 128, (5, dim)).astype(np.int8), rng.random(5).astype(np.float32)
    weights, ids = rng.standard_normal((dim, 9)).astype(np.float32), np.array([4, 0, 2, 1], np.int32)
    out = np.full((4, 9), 7, np.float32)
    word_products(ids, 3, vectors, scales, weights, out)
    assert np.allclose(out[:3], (vectors * scales[:, None])[ids[:3]] @ weights, rtol=1e-4, atol=1e-3)
    assert (out[3] == 7).all()


def test_distinct_words_are_numbered():
    slots, ids, local = np.full(9, -1, np.int32), np.zeros(6, np.int32), np.zeros(6, np.int32)
    n = number_words(np.array([8, 3, -1, 8, 0], np.int32), slots, ids, local)
    assert (n, ids[:3].tolist(), local[:5].tolist()) == (3, [8, 3, 0], [0, 1, -1, 0, 2])
    assert (slots == -1).all()


def test_the_whole_forward_pass():
    rng, widths, n_filters, n_chunks, hidden, n_labels = np.random.default_rng(5), np.array([1, 3]), 4, 2, 6, 8
    tokens, ends = documents(n_words=5)
    vectors, dense, weights = (rng.integers(-127, 128, shape).astype(np.int8) for shape in ((5, 3), (16, 6), (6, 8)))
    scales, dense_scales, weight_scales = (rng.random(n).astype(np.float32) * 0.02 for n in (5, hidden, n_labels))
    filters = rng.standard_normal((3, 16)).astype(np.float32)
    biases = [rng.standard_normal(n).astype(np.float32) for n in (8, hidden, n_labels)]
    allowed = np.arange(n_labels) != 3
    labels, scores = np.full((5, 2), -1, np.int32), np.zeros((5, 2), np.float32)
    network = Network(
        vectors,
        scales,
        Convolutions(filters, biases[0], widths, n_filters, n_chunks),
        Layer(dense, dense_scales, biases[1]),
        Layer(weights, weight_scales, biases[2]),
    )
    for start, stop in ((0, 3), (3, 5)):
        convolution_topk(Documents(tokens, ends), start, stop, network, allowed, labels, scores)
    products = (vectors * scales[:, None]) @ filters
    pooled = [
        pooled_twin(np.ascontiguousarray(part), width, n_filters, tokens, ends, n_chunks)[0]
        for width, part in zip(widths, (products[:, :4], products[:, 4:]), strict=True)
    ]
    P = np.maximum(np.concatenate(pooled, axis=2) + biases[0], 0).reshape(5, -1)
    h = np.maximum(P @ (dense * dense_scales) + biases[1], 0)
    z = np.where(allowed, h @ (weights * weight_scales) + biases[2], -np.inf)
    assert np.array_equal(labels, np.argsort(-z, axis=1)[:, :2])
    assert np.allclose(scores, -np.sort(-z, axis=1)[:, :2], rtol=1e-4)
