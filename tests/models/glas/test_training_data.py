import numpy as np
import pytest

from labelspace.models.glas import Glas
from labelspace.models.glas import training_data as training_data_module
from labelspace.models.glas.losses import loss_gradient
from labelspace.models.glas.regularizers import RegularizerGradient
from labelspace.models.glas.training_data import sample_positives
from labelspace.training.losses import SampledLabels
from tests.models.glas.cases import after_one_epoch, quick, similarities_by_definition, small_data, training_data

NO_REGULARIZER = RegularizerGradient(np.zeros(0, np.int32), np.zeros((0, 16), np.float32))


@pytest.fixture(scope="module")
def small():
    return small_data()


def test_a_sampled_positive_is_one_of_the_document_s_labels_with_equal_probability():
    ends = np.array([0, 2, 2, 5], np.int32)
    positions = np.array([sample_positives(ends, np.random.default_rng(seed)) for seed in range(3000)])
    assert (positions[:, 1] == -1).all()
    assert set(positions[:, 0]) == {0, 1}
    assert np.allclose(np.bincount(positions[:, 2])[2:] / 3000, 1 / 3, atol=0.04)


def test_sampled_labels_give_the_gradient_of_all_labels_on_average(small):
    model = quick(all_labels=False, n_negatives=6, regularizer="none")
    net, data = after_one_epoch(model, small)
    rows = np.arange(0, 40, 8, dtype=np.int32)
    Y_batch, phi = data.Y[rows], net.encoder.embed(data.X[rows])
    assert len(data.labels) == 30

    def phi_gradient(sampled):
        gradient = loss_gradient(net.scores(phi, sampled), sampled, np.zeros(0, np.int64), "bce", 0.0, 0)
        return net.update_labels(gradient, phi, sampled, NO_REGULARIZER, 0.0)

    of_all = phi_gradient(SampledLabels(np.arange(30, dtype=np.int32), Y_batch.indices, Y_batch.indptr))
    hard, rng = np.tile(np.array([4, 7, -1], np.int32), (len(rows), 1)), np.random.default_rng(1)
    draws = np.array([phi_gradient(data.sample_labels(Y_batch, 6, hard, rng)) for _ in range(600)])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - of_all) < 5 * error + 1e-6).all()
    assert draws.std() > 0.05 * np.abs(of_all).mean(), "draws differ"


def test_similarities_are_a_block_of_the_matrix(small):
    data = training_data(quick(), small.X, small.Y)
    labels = np.array([2, 5, 11, 29], np.int32)
    expected = similarities_by_definition(small.Y.toarray(), "arithmetic")[np.ix_(labels, labels)]
    for _ in range(2):  # the scratch array is left as it was
        assert np.allclose(data.similarities(labels), expected, atol=1e-6)


def test_the_number_of_labels_decides_whether_all_are_trained_on(small, monkeypatch):
    assert training_data(Glas(), small.X, small.Y).all_labels
    monkeypatch.setattr(training_data_module, "MAX_UNSAMPLED_LABELS", 29)
    assert not training_data(Glas(), small.X, small.Y).all_labels
    assert training_data(Glas(all_labels=True), small.X, small.Y).all_labels


def test_the_number_of_documents_decides_input_dropout(small, monkeypatch):
    assert training_data(Glas(), small.X, small.Y).input_dropout == 0.2
    monkeypatch.setattr(training_data_module, "MANY_DOCUMENTS", 259)
    assert training_data(Glas(), small.X, small.Y).input_dropout == 0.1
    assert training_data(Glas(input_dropout=0.3), small.X, small.Y).input_dropout == 0.3
