import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.models.glas import encoder, losses, network, training
from labelspace.models.glas.training import TrainingData
from tests.models.glas.cases import after_one_epoch, copies, quick, small_data, trained_arrays


@pytest.fixture(scope="module")
def small():
    return small_data()


@pytest.mark.parametrize("loss", ["bce", "softmax", "margin"])
@pytest.mark.parametrize("all_labels", [True, False])
def test_label_embeddings_keep_length_1(small, loss, all_labels):
    net, _ = after_one_epoch(quick(loss=loss, all_labels=all_labels, n_negatives=8, learning_rate=0.5), small)
    assert np.allclose(np.linalg.norm(net.label_embeddings[:, :-1], axis=1), 1, atol=1e-5)


def test_a_step_touches_only_the_features_and_labels_of_the_batch(small, monkeypatch):
    model = quick(all_labels=False, n_negatives=3, n_layers=2, weight_norm=True)
    net, data = after_one_epoch(model, small)
    net.write_bias_column()
    before, rows, sampled = copies(net), np.array([3, 200], np.int32), []
    sample = TrainingData.sample_labels
    monkeypatch.setattr(TrainingData, "sample_labels", lambda *args: sampled.append(sample(*args)) or sampled[0])
    training.train_step(model, net, data, rows, None, 0.5, np.random.default_rng(0))
    after = net.arrays()
    others = np.setdiff1d(np.arange(30), sampled[0].ids)
    assert 0 < len(others) < 30
    for key in ("label_embeddings", "label_squares", "bias", "bias_square"):
        assert np.array_equal(after[key][others], before[key][others])
        assert not np.array_equal(after[key], before[key])
    in_batch = np.unique(data.X[rows].indices)
    moved = np.flatnonzero((after["feature_embeddings"] != before["feature_embeddings"]).any(axis=1))
    assert 0 < len(moved) <= len(in_batch)
    assert np.isin(moved, in_batch).all()
    assert np.array_equal(np.flatnonzero(after["feature_squares"] != before["feature_squares"]), moved)
    bias_columns = after["label_embeddings"][:, -1], before["label_embeddings"][:, -1]
    assert np.array_equal(*bias_columns), "the bias column is not learned"


@pytest.mark.parametrize("params", [{}, {"optimizer": "sgd", "loss": "margin", "pairs": "all", "n_layers": 3}])
def test_blocks_and_threads_change_nothing_but_time(small, monkeypatch, params):
    arrays = []
    monkeypatch.setattr(network, "LABEL_BLOCK", 7)
    monkeypatch.setattr(losses, "ROW_BLOCK", 4)
    monkeypatch.setattr(encoder, "ROW_BLOCK", 4)
    for threads in ("1", "3"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        settings = {"all_labels": False, "n_negatives": 8, "n_layers": 2, "weight_norm": True, "epochs": 2}
        model = quick(**settings | params)
        arrays.append(trained_arrays(model, small.X, small.Y))
    assert all(np.array_equal(arrays[0][key], arrays[1][key]) for key in arrays[0])


def test_inner_products_with_the_bias_column_are_the_scores(small):
    net, data = after_one_epoch(quick(), small)
    phi = net.encoder.embed(data.X)
    z = net.scale * phi @ net.label_embeddings[:, :-1].T + net.bias.value
    queries = network.append_bias(phi * np.float32(net.scale), net.write_bias_column())
    assert np.allclose(queries @ net.label_embeddings.T, z, atol=1e-4)


def test_the_validation_score_is_r_precision_at_5(small):
    net, data = after_one_epoch(quick(), small)
    z = net.scale * net.encoder.embed(data.X) @ net.label_embeddings[:, :-1].T + net.bias.value
    best, Y = np.argsort(-z, axis=1)[:, :5], data.Y.toarray()
    Y[3], Y[7] = 0, 1  # without labels: not counted; with more than five
    labeled = np.flatnonzero(Y.any(axis=1))
    expected = [Y[i, best[i]].sum() / min(Y[i].sum(), 5) for i in labeled]
    assert np.isclose(net.validation_score(data.X, sp.csr_matrix(Y), np.arange(30)), np.mean(expected))
