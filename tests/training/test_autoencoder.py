import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.quantize import quantize_int8
from labelspace.training.autoencoder import (
    LearningRates,
    QuantizedEncoder,
    SparseDecoder,
    SparseEncoder,
    TrainingPhase,
    phases,
)
from labelspace.training.dense_layers import ACTIVATIONS, MLP, flatten_layers
from labelspace.training.sparse_layers import SparseLayer
from tests.training.torch_twin import Twins, in_torch

BATCH, FEATURES = 8, 30
RATES = LearningRates(0.1, 0.3, 1)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture(name="X")
def documents(rng):
    dense = np.where(rng.random((BATCH, FEATURES)) < 0.25, rng.standard_normal((BATCH, FEATURES)), 0)
    dense[3] = 0  # an empty document
    dense[0, :3] = [1, -1, 0.5]
    return sp.csr_matrix(dense, dtype=np.float32)


def parts(X):
    return X.data, X.indices, X.indptr


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def first_step(gradient, rate):
    """The first update of row-wise Adagrad."""
    sizes = np.sqrt(np.square(gradient).mean(axis=1, keepdims=True))
    return -rate * gradient / np.where(sizes > 0, sizes, 1)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("widths", [[6], [6, 5], [6, 5, 4]])
@pytest.mark.parametrize("last", ACTIVATIONS)
def test_an_encoder_has_the_codes_and_gradients_of_torch(X, rng, recorded, widths, last, dropout):
    torch = pytest.importorskip("torch")
    encoder = SparseEncoder.random(X, widths, "elu", last, rng)
    encoder.features.vectors[:] *= 10
    encoder.bias.value[:] = normal(rng, widths[0])
    before, by_code = encoder.features.vectors.copy(), normal(rng, BATCH, widths[-1])
    trace = encoder.forward(parts(X), dropout, rng)
    encoder.backward(trace, by_code, RATES)

    twins = Twins(torch)
    E = twins(before)
    first = in_torch(torch, torch.tensor(X.toarray(), dtype=torch.float64) @ E + twins.of(encoder.bias),
                     "elu" if len(widths) > 1 else last)  # fmt: skip
    code = twins.mlp(encoder.mlp, first * torch.tensor(trace.dropout_mask))
    (code * torch.tensor(by_code)).sum().backward()
    assert np.allclose(trace.code, code.detach().numpy(), atol=1e-5)
    twins.agree(recorded)
    assert np.allclose(encoder.features.vectors - before, first_step(E.grad.numpy(), RATES.sparse), atol=1e-4)


def test_dropped_units_are_made_up_for_by_the_others(X, rng):
    encoder = SparseEncoder.random(X, [200], "relu", "sigmoid", rng)
    mask = encoder.forward(parts(X), 0.25, rng).dropout_mask
    assert set(np.unique(mask)) == {np.float32(0), np.float32(1) / np.float32(0.75)}
    assert np.isclose(mask.mean(), 1, atol=0.05)
    assert (encoder.forward(parts(X), 0.0, rng).dropout_mask == 1).all()


def random_decoder(X, rng, n_sampled, widths=(4, 6)):
    decoder = SparseDecoder.random(X, widths, "tanh", n_sampled, rng)
    decoder.features.vectors[:] = normal(rng, FEATURES, widths[-1])
    return decoder


def error_by_torch(torch, decoder, vectors, code, X, weight):
    """The twins after the backward pass, the tensors of the embeddings and the code, and the error."""
    twins = Twins(torch)
    V, c = twins(vectors), twins(code)
    error = (twins.mlp(decoder.mlp, c) @ V.T - torch.tensor(X.toarray(), dtype=torch.float64)).square().sum()
    (weight * error).backward()
    return twins, V, c, float(error.detach())


@pytest.mark.parametrize("n_sampled", [FEATURES, 10 * FEATURES])
@pytest.mark.parametrize("widths", [(6,), (4, 6), (4, 5, 6)])
def test_with_all_features_sampled_a_decoder_is_exact(X, rng, recorded, widths, n_sampled):
    torch = pytest.importorskip("torch")
    decoder, code = random_decoder(X, rng, n_sampled, widths), normal(rng, BATCH, widths[0])
    before = decoder.features.vectors.copy()
    twins, V, c, exact = error_by_torch(torch, decoder, before, code, X, 0.3)
    back = decoder.backward(code, parts(X), 0.3, RATES, rng)
    assert np.isclose(BATCH * decoder.errors[-1], exact, rtol=1e-5)
    assert np.allclose(back, c.grad.numpy(), atol=1e-4)
    twins.agree(recorded)
    assert np.allclose(decoder.features.vectors - before, first_step(V.grad.numpy(), RATES.decoder), atol=1e-4)


@pytest.mark.parametrize("n_sampled", [3, 12])
def test_with_fewer_features_sampled_it_is_right_on_average(X, rng, recorded, monkeypatch, n_sampled):
    torch = pytest.importorskip("torch")
    decoder, code = random_decoder(X, rng, n_sampled), normal(rng, BATCH, 4)
    by_vectors = np.zeros_like(decoder.features.vectors)

    def backward(self, batch, gradient, rate):
        features, by_features = self.gradients(batch, gradient)
        by_vectors[features] += by_features

    def update_rows(self, ids, gradient, rate):
        by_vectors[ids] += gradient

    monkeypatch.setattr(SparseLayer, "backward", backward)
    monkeypatch.setattr(SparseLayer, "update_rows", update_rows)
    twins, V, c, exact = error_by_torch(torch, decoder, decoder.features.vectors, code, X, 0.3)
    draws = []
    for _ in range(1500):
        by_vectors[:] = 0
        back = decoder.backward(code, parts(X), 0.3, RATES, rng)
        dense = [recorded[key].ravel() for key in twins.known]
        draws.append(np.concatenate([[BATCH * decoder.errors[-1]], back.ravel(), by_vectors.ravel(), *dense]))
    expected = [twin.grad.numpy().ravel() for twin in (c, V, *twins.known.values())]
    means, spread = np.mean(draws, axis=0), np.std(draws, axis=0)
    deviation = np.abs(means - np.concatenate([[exact], *expected])) / (spread / np.sqrt(len(draws)) + 1e-5)
    assert deviation[0] < 4, "of the error"
    assert deviation.max() < 6
    assert deviation.mean() < 1.2
    assert (decoder._sampled_column == -1).all(), "reset"


def test_a_feature_that_is_sampled_and_present_counts_once(X, rng, monkeypatch):
    decoder, code = random_decoder(X, rng, 3), normal(rng, BATCH, 4)
    hidden = decoder.mlp.forward(code)[-1]
    ids = np.array([1, 2, 29], np.int32)  # the first document has two of them
    monkeypatch.setattr(SparseDecoder, "_sample_features", lambda self, n, rng: ids)
    given, guesses = X.toarray(), hidden @ decoder.features.vectors.T
    weights = np.where(np.isin(np.arange(FEATURES), ids), 10.0, 0.0) * np.ones((BATCH, 1))
    weights[given != 0] = 1
    decoder.backward(code, parts(X), 0.3, RATES, rng)
    assert np.isclose(len(code) * decoder.errors[-1], (weights * np.square(guesses - given)).sum(), rtol=1e-5)


def test_sampled_features_are_sorted_and_none_is_repeated(X, rng):
    decoder = random_decoder(X, rng, 12)
    for _ in range(50):
        ids = decoder._sample_features(FEATURES, rng)
        assert ids.dtype == np.int32
        assert (np.diff(ids) > 0).all()
        assert 1 <= len(ids) <= 12
    assert decoder._sample_features(12, rng).tolist() == list(range(12))


def test_no_dense_matrix_of_all_features_is_made_where_they_are_many(rng):
    n_features, batch = 2_000_000, 64
    X = sp.random(batch, n_features, 1e-5, "csr", np.float32, rng=rng)
    vectors = np.zeros((n_features, 4), np.float32)
    encoder = SparseEncoder(SparseLayer(vectors), "relu", MLP.random([4], "relu", "relu", rng))
    decoder = SparseDecoder(MLP.random([4], "relu", "relu", rng), SparseLayer(vectors.copy()), 500)
    decoder.features.vectors[:, 0] = 0.1
    tracemalloc.start()
    trace = encoder.forward(parts(X), 0.1, rng)
    back = decoder.backward(trace.code, parts(X), 0.1, RATES, rng)
    encoder.backward(trace, back, RATES)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert decoder.errors[-1] > 0
    assert most < 2_000_000, "bytes: not even one number per feature"


def test_the_phases_of_each_training():
    codes, everything = TrainingPhase(0.5, 0.2, False), TrainingPhase(0.5, 0.2, True)
    assert phases("joint", 0.5, 0.2) == [everything]
    assert phases("pretrained", 0.5, 0.2) == [codes, everything]
    assert phases("staged", 0.5, 0.2) == [codes, TrainingPhase(0.0, 0.0, True, freeze_codes=True)]
    with pytest.raises(KeyError):
        phases("other", 0.5)


def test_autoencoders_of_weight_0_are_trained_all_the_same_where_they_come_first():
    assert phases("joint", 0.0, 0.0) == [TrainingPhase(0.0, 0.0, True)]
    for training in ("staged", "pretrained"):
        assert phases(training, 0.0, 0.0)[0] == TrainingPhase(1.0, 1.0, False)
        assert phases(training, 0.0)[0] == TrainingPhase(1.0, 0.0, False), "no second autoencoder"
    assert phases("pretrained", 0.0, 0.0)[1] == TrainingPhase(0.0, 0.0, True)


def test_frozen_weights_keep_their_bytes(X, rng):
    encoder, decoder = SparseEncoder.random(X, [6, 4], "elu", "tanh", rng), random_decoder(X, rng, 12)
    frozen = RATES.frozen()
    assert frozen == LearningRates(0.0, 0.0, 1)
    arrays = [encoder.bias.value, encoder.features.vectors, decoder.features.vectors]
    arrays += [part.value for stack in (encoder.mlp, decoder.mlp) for d in stack.layers for part in (d.rows, d.bias)]
    before = [array.copy() for array in arrays]
    for rates in (frozen, RATES):
        trace = encoder.forward(parts(X), 0.1, rng)
        encoder.backward(trace, decoder.backward(trace.code, parts(X), 0.1, rates, rng), rates)
        same = [np.array_equal(old, new) for old, new in zip(before, arrays, strict=True)]
        assert all(same) if rates is frozen else not any(same)


@pytest.mark.parametrize("widths", [[50], [50, 9], [50, 9, 7]])
@pytest.mark.parametrize("last", ["relu", "tanh"])
def test_a_stored_encoder_is_the_encoder_up_to_int8_rounding(X, rng, widths, last):
    encoder = SparseEncoder.random(X, widths, "elu", last, rng)
    encoder.bias.value[:] = normal(rng, 50) / 10
    vectors, scales = quantize_int8(encoder.features.vectors)
    specs = [(width, "elu") for width in widths[:-1]] + [(widths[-1], last)]
    stored = QuantizedEncoder(vectors, scales, encoder.bias.value, flatten_layers(encoder.mlp.layers), specs)
    stored_codes = stored(X, 0, BATCH)
    exact = encoder.forward(parts(X), 0.0, rng).code
    rounding = np.abs(X.toarray()).sum(axis=1).max() * scales.max() / 2  # of the first layer's sums, at most
    assert np.abs(stored_codes - exact).max() < 10 * rounding
    assert np.abs(stored_codes - exact).mean() < rounding
    assert not np.array_equal(stored_codes, exact)
    encoder.features.vectors[:] = vectors * scales[:, None]
    assert np.allclose(stored_codes, encoder.forward(parts(X), 0.0, rng).code, atol=1e-5), (
        "but for the rounding, the same"
    )
    for row in range(BATCH):
        assert np.array_equal(stored(X, row, row + 1)[0], stored_codes[row]), "whatever the other rows are"
