import numpy as np
import pytest

from labelspace.features.normalize import normalize_rows
from labelspace.models.poincare import network, training
from labelspace.models.poincare.network import LEARNING_RATES, Net, embed_documents
from labelspace.models.poincare.training import TrainingData, train_batch
from tests.models.poincare.reference import quick


def create_net(model, data, seed=0):
    return Net.random(model, data.X, len(data.label_ids), np.random.default_rng(seed))


@pytest.mark.parametrize("optimizer", LEARNING_RATES)
def test_a_batch_changes_only_its_features_and_sampled_labels(small, optimizer):
    model = quick(all_labels=False, n_negatives=3, optimizer=optimizer)
    X = normalize_rows(small.X)
    data = TrainingData.build(X, small.Y, None, model)
    net = create_net(model, data)
    label_points, theta = net.label_points.copy(), net.theta.vectors.copy()
    rows = np.array([3, 200], np.int32)
    train_batch(net, data, model, rows, 0.5, np.random.default_rng(1))
    changed = np.flatnonzero((net.label_points != label_points).any(axis=1))
    positives = np.unique(data.Y[rows].indices)
    assert np.isin(positives, changed).all()
    assert len(changed) <= len(positives) + 3
    features = np.unique(X[rows].indices)
    changed = np.flatnonzero((net.theta.vectors != theta).any(axis=1))
    assert 0 < len(changed) <= len(features)
    assert np.isin(changed, features).all()


def test_a_batch_on_neighbors_compares_no_document_with_itself_and_moves_both_of_a_pair(small, monkeypatch):
    model = quick(loss="neighbors", negatives="per_document", n_negatives=2000, route="vote", stop_by="votes")
    X, drawn = normalize_rows(small.X), []
    data = TrainingData.build(X, small.Y, None, model)
    net, sample_pairs = create_net(model, data), training.sample_pairs
    monkeypatch.setattr(training, "sample_pairs", lambda *args: drawn.append(sample_pairs(*args)) or drawn[0])
    theta, rows = net.theta.vectors.copy(), np.array([3, 200], np.int32)
    train_batch(net, data, model, rows, 0.5, np.random.default_rng(1))
    targets = drawn[0].ids[drawn[0].targets]
    assert len(targets) == 2 * 2010
    assert (targets != rows[drawn[0].documents]).all()
    assert len(np.unique(targets[20:])) > 100
    changed = np.flatnonzero((net.theta.vectors != theta).any(axis=1))
    assert not np.isin(changed, X[rows].indices).all(), "targets move too"
    assert np.isin(changed, X[np.concatenate([rows, drawn[0].ids])].indices).all()


def test_learning_rates_are_those_given_or_those_of_the_optimizer(small):
    for optimizer, expected in LEARNING_RATES.items():
        data = TrainingData.build(small.X, small.Y, None, quick())
        net = create_net(quick(optimizer=optimizer), data)
        assert (net.learning_rate, net.theta_learning_rate) == expected
        net = create_net(quick(optimizer=optimizer, learning_rate=0.5, feature_learning_rate=0.25), data)
        assert (net.learning_rate, net.theta_learning_rate) == (0.5, 0.25)


@pytest.mark.parametrize("params", [{}, {"projection": "clip"}, {"geometry": "euclidean"}])
def test_documents_are_embedded_one_by_one_as_in_the_textbook(small, monkeypatch, params):
    model = quick(epochs=1, **params).fit(small.X, small.Y)
    X, theta, scales = normalize_rows(small.X), model.theta_[0], model.theta_scales_[0]
    points = embed_documents(X, theta, scales, model.manifold)
    expected = model.manifold.project(X.toarray().astype(np.float64) @ (theta * scales[:, None].astype(np.float64)))
    assert np.allclose(points, expected, atol=1e-5)
    monkeypatch.setattr(network, "ROW_BLOCK", 7)
    assert np.array_equal(embed_documents(X, theta, scales, model.manifold), points)
    assert np.array_equal(embed_documents(X[5:6], theta, scales, model.manifold), points[5:6])
