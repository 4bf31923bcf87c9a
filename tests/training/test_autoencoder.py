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
from labelspace.training.dense_layers import ACTIVATIONS, Stack, flatten_layers
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
    """What row-wise Adagrad makes of its first gradient."""
    sizes = np.sqrt(np.square(gradient).mean(axis=1, keepdims=True))
    return -rate * gradient / np.where(sizes > 0, sizes, 1)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("widths", [[6], [6, 5], [6, 5, 4]])
@pytest.mark.parametrize("last", ACTIVATIONS)
def test_an_encoder_has_the_codes_and_gradients_that_torch_finds(X, rng, recorded, widths, last, dropout):
    torch = pytest.importorskip("torch")
    encoder = SparseEncoder.random(X, widths, "elu", last, rng)
    encoder.features.vectors[:] *= 10
    encoder.offset.value[:] = normal(rng, widths[0])
    before, by_code = encoder.features.vectors.copy(), normal(rng, BATCH, widths[-1])
    trace = encoder.forward(parts(X), dropout, rng)
    encoder.backward(trace, by_code, RATES)

    twins = Twins(torch)
    E = twins(before)
    first = in_torch(torch, torch.tensor(X.toarray(), dtype=torch.float64) @ E + twins.of(encoder.offset),
                     "elu" if len(widths) > 1 else last)  # fmt: skip
    code = twins.stack(encoder.stack, first * torch.tensor(trace.gate))
    (code * torch.tensor(by_code)).sum().backward()
    assert np.allclose(trace.code, code.detach().numpy(), atol=1e-5)
    twins.agree(recorded)
    assert np.allclose(encoder.features.vectors - before, first_step(E.grad.numpy(), RATES.sparse), atol=1e-4)


def test_dropped_units_are_made_up_for_by_the_others(X, rng):
    encoder = SparseEncoder.random(X, [200], "relu", "sigmoid", rng)
    gate = encoder.forward(parts(X), 0.25, rng).gate
    assert set(np.unique(gate)) == {np.float32(0), np.float32(1) / np.float32(0.75)}
    assert np.isclose(gate.mean(), 1, atol=0.05)
    assert (encoder.forward(parts(X), 0.0, rng).gate == 1).all()


def a_decoder(X, rng, drawn, widths=(4, 6)):
    decoder = SparseDecoder.random(X, widths, "tanh", drawn, rng)
    decoder.features.vectors[:] = normal(rng, FEATURES, widths[-1])
    return decoder


def error_by_torch(torch, decoder, vectors, code, X, weight):
    """The twins after the way back, the tensors of the vectors and the code, and the error."""
    twins = Twins(torch)
    V, c = twins(vectors), twins(code)
    error = (twins.stack(decoder.stack, c) @ V.T - torch.tensor(X.toarray(), dtype=torch.float64)).square().sum()
    (weight * error).backward()
    return twins, V, c, float(error.detach())


@pytest.mark.parametrize("drawn", [FEATURES, 10 * FEATURES])
@pytest.mark.parametrize("widths", [(6,), (4, 6), (4, 5, 6)])
def test_with_all_features_drawn_a_decoder_is_exact(X, rng, recorded, widths, drawn):
    torch = pytest.importorskip("torch")
    decoder, code = a_decoder(X, rng, drawn, widths), normal(rng, BATCH, widths[0])
    before = decoder.features.vectors.copy()
    twins, V, c, exact = error_by_torch(torch, decoder, before, code, X, 0.3)
    back = decoder.descend(code, parts(X), 0.3, RATES, rng)
    assert np.isclose(BATCH * decoder.errors[-1], exact, rtol=1e-5)
    assert np.allclose(back, c.grad.numpy(), atol=1e-4)
    twins.agree(recorded)
    assert np.allclose(decoder.features.vectors - before, first_step(V.grad.numpy(), RATES.decoder), atol=1e-4)


@pytest.mark.parametrize("drawn", [3, 12])
def test_with_fewer_features_drawn_it_is_right_on_average(X, rng, recorded, monkeypatch, drawn):
    torch = pytest.importorskip("torch")
    decoder, code = a_decoder(X, rng, drawn), normal(rng, BATCH, 4)
    by_vectors = np.zeros_like(decoder.features.vectors)

    def descend(self, batch, gradient, rate):
        features, found = self.gradients(batch, gradient)
        by_vectors[features] += found

    def descend_rows(self, ids, gradient, rate):
        by_vectors[ids] += gradient

    monkeypatch.setattr(SparseLayer, "descend", descend)
    monkeypatch.setattr(SparseLayer, "descend_rows", descend_rows)
    twins, V, c, exact = error_by_torch(torch, decoder, decoder.features.vectors, code, X, 0.3)
    found = []
    for _ in range(1500):
        by_vectors[:] = 0
        back = decoder.descend(code, parts(X), 0.3, RATES, rng)
        own = [recorded[key].ravel() for key in twins.known]
        found.append(np.concatenate([[BATCH * decoder.errors[-1]], back.ravel(), by_vectors.ravel(), *own]))
    expected = [twin.grad.numpy().ravel() for twin in (c, V, *twins.known.values())]
    means, spread = np.mean(found, axis=0), np.std(found, axis=0)
    away = np.abs(means - np.concatenate([[exact], *expected])) / (spread / np.sqrt(len(found)) + 1e-5)
    assert away[0] < 4, "the error"
    assert away.max() < 6
    assert away.mean() < 1.2
    assert (decoder._place == -1).all(), "left as it was found"


def test_a_feature_that_is_drawn_and_present_counts_once(X, rng, monkeypatch):
    decoder, code = a_decoder(X, rng, 3), normal(rng, BATCH, 4)
    hidden = decoder.stack.forward(code)[-1]
    ids = np.array([1, 2, 29], np.int32)  # the first document has two of them
    monkeypatch.setattr(SparseDecoder, "_draw", lambda self, n, rng: ids)
    given, guesses = X.toarray(), hidden @ decoder.features.vectors.T
    weights = np.where(np.isin(np.arange(FEATURES), ids), 10.0, 0.0) * np.ones((BATCH, 1))
    weights[given != 0] = 1
    decoder.descend(code, parts(X), 0.3, RATES, rng)
    assert np.isclose(len(code) * decoder.errors[-1], (weights * np.square(guesses - given)).sum(), rtol=1e-5)


def test_features_drawn_stand_in_order_and_none_twice(X, rng):
    decoder = a_decoder(X, rng, 12)
    for _ in range(50):
        ids = decoder._draw(FEATURES, rng)
        assert ids.dtype == np.int32
        assert (np.diff(ids) > 0).all()
        assert 1 <= len(ids) <= 12
    assert decoder._draw(12, rng).tolist() == list(range(12))


def test_no_table_of_all_features_is_made_where_they_are_many(rng):
    n_features, batch = 2_000_000, 64
    X = sp.random(batch, n_features, 1e-5, "csr", np.float32, rng=rng)
    vectors = np.zeros((n_features, 4), np.float32)
    encoder = SparseEncoder(SparseLayer(vectors), "relu", Stack.random([4], "relu", "relu", rng))
    decoder = SparseDecoder(Stack.random([4], "relu", "relu", rng), SparseLayer(vectors.copy()), 500)
    decoder.features.vectors[:, 0] = 0.1
    tracemalloc.start()
    trace = encoder.forward(parts(X), 0.1, rng)
    back = decoder.descend(trace.code, parts(X), 0.1, RATES, rng)
    encoder.backward(trace, back, RATES)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert decoder.errors[-1] > 0
    assert most < 2_000_000, "bytes: not even one number a feature"


def test_the_phases_of_each_training():
    codes, everything = TrainingPhase(0.5, 0.2, False), TrainingPhase(0.5, 0.2, True)
    assert phases("joint", 0.5, 0.2) == [everything]
    assert phases("pretrained", 0.5, 0.2) == [codes, everything]
    assert phases("staged", 0.5, 0.2) == [codes, TrainingPhase(0.0, 0.0, True, freeze_codes=True)]
    with pytest.raises(KeyError):
        phases("other", 0.5)


def test_codes_that_count_for_nothing_are_learned_all_the_same_where_they_come_first():
    assert phases("joint", 0.0, 0.0) == [TrainingPhase(0.0, 0.0, True)]
    for training in ("staged", "pretrained"):
        assert phases(training, 0.0, 0.0)[0] == TrainingPhase(1.0, 1.0, False)
        assert phases(training, 0.0)[0] == TrainingPhase(1.0, 0.0, False), "no second autoencoder"
    assert phases("pretrained", 0.0, 0.0)[1] == TrainingPhase(0.0, 0.0, True)


def test_weights_that_rest_keep_their_bytes(X, rng):
    encoder, decoder = SparseEncoder.random(X, [6, 4], "elu", "tanh", rng), a_decoder(X, rng, 12)
    none = RATES.none()
    assert none == LearningRates(0.0, 0.0, 1)
    moving = [encoder.offset.value, encoder.features.vectors, decoder.features.vectors]
    moving += [
        part.value for stack in (encoder.stack, decoder.stack) for d in stack.layers for part in (d.rows, d.offset)
    ]
    before = [array.copy() for array in moving]
    for rates in (none, RATES):
        trace = encoder.forward(parts(X), 0.1, rng)
        encoder.backward(trace, decoder.descend(trace.code, parts(X), 0.1, rates, rng), rates)
        same = [np.array_equal(old, new) for old, new in zip(before, moving, strict=True)]
        assert all(same) if rates is none else not any(same)


@pytest.mark.parametrize("widths", [[50], [50, 9], [50, 9, 7]])
@pytest.mark.parametrize("last", ["relu", "tanh"])
def test_a_stored_encoder_is_the_encoder_within_the_rounding_of_bytes(X, rng, widths, last):
    encoder = SparseEncoder.random(X, widths, "elu", last, rng)
    encoder.offset.value[:] = normal(rng, 50) / 10
    vectors, scales = quantize_int8(encoder.features.vectors)
    chain = [(width, "elu") for width in widths[:-1]] + [(widths[-1], last)]
    stored = QuantizedEncoder(vectors, scales, encoder.offset.value, flatten_layers(encoder.stack.layers), chain)
    whole = stored(X, 0, BATCH)
    exact = encoder.forward(parts(X), 0.0, rng).code
    rounding = np.abs(X.toarray()).sum(axis=1).max() * scales.max() / 2  # of the first layer's sums, at most
    assert np.abs(whole - exact).max() < 10 * rounding
    assert np.abs(whole - exact).mean() < rounding
    assert not np.array_equal(whole, exact)
    encoder.features.vectors[:] = vectors * scales[:, None]
    assert np.allclose(whole, encoder.forward(parts(X), 0.0, rng).code, atol=1e-5), "but for the rounding, the same"
    for row in range(BATCH):
        assert np.array_equal(stored(X, row, row + 1)[0], whole[row]), "whatever rows are beside it"
