import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.estimator.state_constraints import StateError
from labelspace.features.normalize import normalize_rows
from labelspace.models.glas import training
from labelspace.models.glas.encoder import FixedNumbers, FixedParameter, SgdLayer, SgdNumbers, SgdParameter, update_rows
from labelspace.training.optimizers import AdamParameter
from tests.models.glas.cases import ENCODERS, before_store, copies, quick, small_data, training_data

encoders = pytest.mark.parametrize("params", ENCODERS, ids=lambda params: "-".join(map(str, params.values())))


@encoders
def test_stored_embeddings_are_those_of_training(params):
    model, small, trained = quick(epochs=1, **params), small_data(), {}
    before_store(model, lambda net, X: trained.update(phi=net.encoder.embed(X)), small.X, small.Y)
    stored = model.encoder_.embed(normalize_rows(small.X))
    assert np.allclose(stored, trained["phi"], atol=0.01), "but for the quantization to 8 bits"
    assert np.allclose(np.linalg.norm(stored, axis=1), 1, atol=1e-5)


@encoders
def test_a_document_without_features_updates_no_weights(monkeypatch, params):
    model = quick(input_dropout=0.0, **params)
    X = sp.csr_matrix((4, 9), dtype=np.float32)
    Y = sp.csr_matrix(np.eye(4, 5), dtype=np.float32)
    net, steps = training.initial_net(model, X, Y), []
    monkeypatch.setattr(AdamParameter, "step", lambda self, gradient, *rest: steps.append(np.abs(gradient).max()))
    rows = np.arange(4, dtype=np.int32)
    training.train_step(model, net, training_data(model, X, Y), rows, None, 1.0, np.random.default_rng(0))
    assert max(steps) == 0, "a zero vector has no direction to turn"


@pytest.mark.parametrize(("rows", "columns"), [(24, 16), (16, 8), (0, 16), (16, 0)])
def test_stored_dense_layers_of_another_width_are_refused(rows, columns):
    small = small_data()
    stored = quick(epochs=1, n_layers=2).fit(small.X, small.Y).encoder_
    stored.check_state()
    broken = stored._replace(dense_weights=np.zeros((rows, columns), np.float32), dense_bias=np.zeros(rows, np.float32))
    with pytest.raises(StateError, match="must have dense layers of the width of the embeddings"):
        broken.check_state()


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_sgd_subtracts_the_rate_times_the_gradient():
    weights, numbers = SgdParameter(normal(3, 2)), SgdNumbers(normal(5))
    weights.step(np.ones((3, 2), np.float32), 0.5, 1)
    numbers.step(np.array([1, -2], np.float32), 0.1, np.array([4, 1]))
    assert np.allclose(weights.value, normal(3, 2) - 0.5)
    assert np.allclose(numbers.value, normal(5) - [0, -0.2, 0, 0, 0.1])


def test_fixed_weights_stay():
    weights, numbers = FixedParameter(normal(3)), FixedNumbers(normal(3))
    weights.step(np.ones(3, np.float32), 0.5, 1)
    numbers.step(np.ones(3, np.float32), 0.5, slice(None))
    assert np.array_equal(weights.value, normal(3))
    assert np.array_equal(numbers.value, normal(3))


@pytest.mark.parametrize("normalized", [True, False])
def test_sgd_of_feature_embeddings_is_a_dense_step(normalized):
    X = sp.csr_matrix(np.where(normal(4, 6) > 0, normal(4, 6, seed=1), 0))
    layer, gradient = SgdLayer(normal(6, 3, seed=2), normalized), normal(4, 3, seed=3)
    scales = layer.unit_scales if normalized else np.ones(3, np.float32)
    layer.backward((X.data, X.indices, X.indptr), gradient, 0.1)
    assert np.allclose(layer.vectors, normal(6, 3, seed=2) - 0.1 * X.toarray().T @ (gradient * scales), atol=1e-6)
    if normalized:
        assert np.allclose(layer.squared_norms, (layer.vectors**2).sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize("adagrad", [True, False])
def test_rows_move_freely_or_along_the_sphere(adagrad):
    ids, gradient = np.array([5, 2]), normal(2, 3, seed=1)
    for normalized in (True, False):
        vectors = normal(7, 4)
        vectors[:, :3] /= np.linalg.norm(vectors[:, :3], axis=1, keepdims=True)
        before, squares = vectors.copy(), np.ones(7, np.float32)
        update_rows(gradient, ids, 0.1, vectors, squares if adagrad else None, normalized)
        step, v = gradient.copy(), before[ids, :3]
        if normalized:
            step -= (step * v).sum(axis=1, keepdims=True) * v
        if adagrad:
            step /= np.sqrt(1 + (step**2).mean(axis=1, keepdims=True))
        expected = v - 0.1 * step
        if normalized:
            expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        assert np.allclose(vectors[ids, :3], expected, atol=1e-6)
        others = [0, 1, 3, 4, 6]
        assert np.array_equal(vectors[others], before[others])
        assert np.array_equal(vectors[:, 3], before[:, 3]), "the bias column"


def moved(**params):
    """How far a step of SGD moved each array."""
    data = small_data()
    model = quick(optimizer="sgd", n_layers=3, dropout=0.0, input_dropout=0.0, **params)
    net, train = training.initial_net(model, data.X, data.Y), training_data(model, data.X, data.Y)
    before = copies(net)
    training.train_step(model, net, train, np.arange(20, dtype=np.int32), None, 1.0, np.random.default_rng(0))
    return {key: value - before[key] for key, value in net.arrays().items()}


def test_sgd_has_a_rate_for_the_encoder_and_one_for_labels():
    rates = {"learning_rate": 0.01, "feature_learning_rate": 0.02}
    free = {"normalize_label_embeddings": False}
    base = moved(**rates, **free)
    for key, doubled, same in (
        (
            "feature_learning_rate",
            ("feature_embeddings", "hidden_bias", "dense", "dense1"),
            ("label_embeddings", "bias"),
        ),
        ("learning_rate", ("label_embeddings", "bias", "log_scale"), ("feature_embeddings", "dense", "dense1")),
    ):
        other = moved(**{**rates, key: 2 * rates[key]}, **free)
        for name in doubled:
            assert np.abs(base[name]).max() > 1e-6, name
            assert np.allclose(other[name], 2 * base[name], atol=1e-6), name
        for name in same:
            assert np.allclose(other[name], base[name], atol=1e-6), name
