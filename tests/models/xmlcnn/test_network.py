"""One training step against finite differences of the loss."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.models.xmlcnn import network
from labelspace.models.xmlcnn.kernels import Documents
from labelspace.models.xmlcnn.network import ConvolutionalNet, Sizes
from tests.models.recorded_gradients import first_adagrad_step, record_adam
from tests.models.xmlcnn.test_convolution import pooled_twin

WIDTHS, N_FILTERS, N_CHUNKS = [2, 3], 3, 2


def case(batch_norm=True):
    """Three documents, of one of which a word has no vector, and a tiny network."""
    rng = np.random.default_rng(4)
    documents = Documents(np.array([0, 1, -1, 3, 5, 5, 1, 3], np.int32), np.array([0, 4, 7, 8]))
    Y = sp.csr_matrix((rng.random((3, 4)) < 0.5).astype(np.float32))
    vectors = rng.standard_normal((6, 4)).astype(np.float32)
    sizes = Sizes(WIDTHS, N_FILTERS, N_CHUNKS, 5)
    net = ConvolutionalNet(vectors.copy(), sizes, np.zeros(4, np.float32), rng, batch_norm)
    return documents, Y, vectors, net


def weights(net):
    """All weights, in double precision, and whether the net normalizes by the batch."""
    w = {
        "words": net.words.vectors, "filters": net.filter_columns(), "c": net.filter_norm.shift.value,
        "W_h": net.bottleneck.value, "b_h": net.hidden_norm.shift.value, "W_o": net.output.weights.value,
        "b": net.output.bias.value,
    }  # fmt: skip
    return {key: value.astype(np.float64) for key, value in w.items()} | {"batch_norm": net.filter_norm.on}


def normalized(values, batch_norm):
    return (values - values.mean(axis=0)) / np.sqrt(values.var(axis=0) + 1e-5) if batch_norm else values


def largest_windows(documents, products):
    pooled, first = [], 0
    for width in WIDTHS:
        part = np.ascontiguousarray(products[:, first : first + width * N_FILTERS])
        pooled.append(pooled_twin(part, width, N_FILTERS, documents.tokens, documents.ends, N_CHUNKS)[0])
        first += width * N_FILTERS
    return np.concatenate(pooled, axis=2)


def hidden(documents, w):
    """The bottleneck's units for a batch."""
    pooled = largest_windows(documents, w["words"] @ w["filters"])
    P = np.maximum(normalized(pooled.reshape(-1, pooled.shape[2]), w["batch_norm"]) + w["c"], 0)
    return np.maximum(normalized(P.reshape(documents.n, -1) @ w["W_h"].T, w["batch_norm"]) + w["b_h"], 0)


def loss(documents, Y, w):
    """Binary cross-entropy, summed over the labels, averaged over the documents."""
    z = hidden(documents, w) @ w["W_o"].T + w["b"]
    return (np.logaddexp(0, z) - Y.toarray() * z).sum() / documents.n


def finite_differences(documents, Y, w, key):
    out = np.empty_like(w[key])
    for at in np.ndindex(out.shape):
        values = []
        for sign in (1, -1):
            shifted = {**w, key: w[key].copy()}
            shifted[key][at] += sign * 1e-6
            values.append(loss(documents, Y, shifted))
        out[at] = (values[0] - values[1]) / 2e-6
    return out


@pytest.fixture(params=[True, False])
def step(monkeypatch, request):
    """The weights before a step, the gradients that Adam gets in it, and the step of the word vectors."""
    monkeypatch.setattr(network, "FILTER_BLOCK", 2)  # blocks that do not divide the filters
    documents, Y, vectors, net = case(request.param)
    before = weights(net)
    gradients = record_adam(monkeypatch)
    rows = np.arange(3, dtype=np.int32)
    net.train_step(documents, Y, rows, 0.0, (0.1, 0.1), np.random.default_rng(0))
    found = {"words": net.words.vectors - vectors}
    adam = {
        "c": net.filter_norm.shift, "W_h": net.bottleneck, "b_h": net.hidden_norm.shift, "W_o": net.output.weights,
        "b": net.output.bias,
    }  # fmt: skip
    found |= {key: gradients[id(parameter)] for key, parameter in adam.items()}
    for block in net.blocks:
        block.weights.value[:] = gradients[id(block.weights)]
    return documents, Y, before, found | {"filters": net.filter_columns()}


@pytest.mark.parametrize("key", ["filters", "c", "W_h", "b_h", "W_o", "b"])
def test_gradients_agree_with_finite_differences(step, key):
    documents, Y, before, found = step
    assert np.allclose(found[key], finite_differences(documents, Y, before, key), atol=1e-5)


def test_the_step_of_the_word_vectors_is_their_scaled_gradient(step):
    documents, Y, before, found = step
    expected = first_adagrad_step(finite_differences(documents, Y, before, "words"), 0.1)
    assert np.allclose(found["words"], expected, atol=1e-4)
    assert not found["words"][[2, 4]].any(), "words that the batch does not have"


def test_rows_and_dropped_words():
    documents = case()[0]
    rows = documents.rows(np.array([2, 0], np.int32))
    assert (rows.tokens.tolist(), rows.ends.tolist()) == ([3, 0, 1, -1, 3], [0, 1, 5])
    many = Documents(np.arange(10_000, dtype=np.int32), np.array([0, 10_000]))
    assert 0.25 < (many.without_words(0.3, np.random.default_rng(0)).tokens < 0).mean() < 0.35


@pytest.mark.parametrize("batch_norm", [True, False])
def test_prediction_normalizes_by_a_sample_of_documents(monkeypatch, batch_norm):
    monkeypatch.setattr(network, "PART", 2)  # parts that do not divide the documents
    documents, _, _, net = case(batch_norm)
    net.filter_norm.shift.value[:] = np.linspace(-1, 1, len(WIDTHS) * N_FILTERS)
    net.hidden_norm.shift.value[:] = np.linspace(-1, 1, 5)
    filters, filter_bias, bottleneck, hidden_bias = net.prediction_weights(documents)
    P = np.maximum(largest_windows(documents, net.words.vectors @ filters) + filter_bias, 0).reshape(documents.n, -1)
    assert np.allclose(np.maximum(P @ bottleneck.T + hidden_bias, 0), hidden(documents, weights(net)), atol=1e-4)


def test_filters_start_with_pooled_values_of_mean_0_and_deviation_1(monkeypatch):
    monkeypatch.setattr(network, "FILTER_BLOCK", 2)
    documents, _, _, net = case(batch_norm=False)
    net.standardize_filters(documents)
    values = largest_windows(documents, net.words.vectors @ net.filter_columns()) + net.filter_norm.shift.value
    values = values.reshape(-1, len(WIDTHS) * N_FILTERS)
    assert np.allclose(values.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(values.std(axis=0), 1, atol=1e-4)
