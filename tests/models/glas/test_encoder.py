import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.estimator.state_constraints import StateError
from labelspace.features.normalize import normalize_rows
from labelspace.training.optimizers import AdamParameter
from tests.models.glas.cases import ENCODERS, before_store, quick, small_data, training_data

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
    net, steps = model._init_net(X, Y), []
    monkeypatch.setattr(AdamParameter, "step", lambda self, gradient, *rest: steps.append(np.abs(gradient).max()))
    rows = np.arange(4, dtype=np.int32)
    model._step(net, training_data(model, X, Y), rows, None, 1.0, np.random.default_rng(0))
    assert max(steps) == 0, "a zero vector has no direction to turn"


@pytest.mark.parametrize(("rows", "columns"), [(24, 16), (16, 8), (0, 16), (16, 0)])
def test_stored_dense_layers_of_another_width_are_refused(rows, columns):
    small = small_data()
    stored = quick(epochs=1, n_layers=2).fit(small.X, small.Y).encoder_
    stored.check_state()
    broken = stored._replace(dense_weights=np.zeros((rows, columns), np.float32), dense_bias=np.zeros(rows, np.float32))
    with pytest.raises(StateError, match="must have dense layers of the width of the embeddings"):
        broken.check_state()
