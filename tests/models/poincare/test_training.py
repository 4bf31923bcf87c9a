import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.errors import DataError
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.quantize import quantize_int8
from labelspace.models.baselines import Popular
from labelspace.models.poincare import losses, training
from labelspace.models.poincare.model import Poincare
from labelspace.models.poincare.training import LEARNING_RATES, Net, TrainingData, embed_documents, train_batch
from tests.checks import digest, precision_at_1, same_topk
from tests.models.poincare.reference import distances, project, quick

EXTREME = {"learning_rate": 100.0, "feature_learning_rate": 100.0, "alpha": 100.0, "similarity_weight": 100.0}
GEOMETRIES = pytest.mark.parametrize(
    ("geometry", "projection"),
    [("poincare", "exponential"), ("poincare", "clip"), ("euclidean", "exponential"), ("cosine", "exponential")],
)
OPTIMIZERS = pytest.mark.parametrize("optimizer", ["adagrad", "adam", "sgd"])


@pytest.mark.slow
@GEOMETRIES
@OPTIMIZERS
@pytest.mark.parametrize(("dimension", "all_labels"), [(1, True), (2, False)])
def test_extreme_learning_rates_end_in_finite_predictions(
    small, geometry, projection, optimizer, dimension, all_labels
):
    model = quick(
        geometry=geometry, projection=projection, optimizer=optimizer, embedding_dim=dimension, all_labels=all_labels,
        n_negatives=3, epochs=2, **EXTREME,
    ).fit(small.X, small.Y)  # fmt: skip
    top = model.predict_topk(small.X[:50], k=5)
    assert (top.labels[:, 0] >= 0).all()
    assert np.isfinite(top.scores[top.labels >= 0]).all()
    for indexes in (model.label_indexes_, model.document_indexes_):
        assert np.isfinite(indexes[0].points).all()
        norms = np.linalg.norm(indexes[0].points.astype(np.float64), axis=1)
        assert geometry != "poincare" or norms.max() < 1
    assert model.report()["mean_norm_of_documents"] > 0


@pytest.mark.slow
@GEOMETRIES
@OPTIMIZERS
def test_every_geometry_learns_with_every_optimizer(small, geometry, projection, optimizer):
    model = quick(geometry=geometry, projection=projection, optimizer=optimizer, epochs=12)
    model.fit(small.X, small.Y)
    popular = Popular().fit(small.X, small.Y)
    assert precision_at_1(model, small) > (1.5 if optimizer == "sgd" else 2) * precision_at_1(popular, small)
    assert precision_at_1(model, small) > 0.5


# ---- batches and epochs


@OPTIMIZERS
def test_learning_rates_fall_linearly_to_0_by_adagrad_and_are_constant_as_in_the_paper_otherwise(
    small, monkeypatch, optimizer
):
    decays = []
    monkeypatch.setattr(training, "train_batch", lambda *args: decays.append(args[4]))
    quick(optimizer=optimizer, epochs=2).fit(small.X, small.Y)
    expected = 1 - np.arange(len(decays)) / len(decays) if optimizer == "adagrad" else np.ones(len(decays))
    assert np.allclose(decays, expected)


@pytest.mark.parametrize("optimizer", ["adagrad", "adam"])
def test_the_schedule_of_an_optimizer_can_be_set(small, monkeypatch, optimizer):
    decays = {}
    for schedule in ("linear", "constant"):
        seen = decays[schedule] = []
        monkeypatch.setattr(training, "train_batch", lambda *args, seen=seen: seen.append(args[4]))
        quick(optimizer=optimizer, schedule=schedule, epochs=2).fit(small.X, small.Y)
    assert np.allclose(decays["linear"], 1 - np.arange(32) / 32)
    assert decays["constant"] == [1.0] * 32


def test_every_epoch_has_all_training_documents_in_a_new_order(small, monkeypatch):
    batches = []
    monkeypatch.setattr(training, "train_batch", lambda *args: batches.append(args[3]))
    quick(epochs=2).fit(small.X, small.Y)
    first, second = (np.concatenate(half) for half in (batches[: len(batches) // 2], batches[len(batches) // 2 :]))
    assert sorted(first) == sorted(second) == list(range(247))
    assert not np.array_equal(first, second)


def test_the_number_of_labels_decides_whether_all_are_trained_on(small, monkeypatch):
    assert TrainingData(small.X, small.Y, None, Poincare()).all_labels
    monkeypatch.setattr(training, "MAX_UNSAMPLED_LABELS", 29)
    assert not TrainingData(small.X, small.Y, None, Poincare()).all_labels
    assert TrainingData(small.X, small.Y, None, Poincare(all_labels=True)).all_labels


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"all_labels": False, "n_negatives": 4},
        {"optimizer": "adam"},
        {"negatives": "per_document", "n_negatives": 4},
        {"loss": "neighbors", "negatives": "per_document", "n_negatives": 4, "route": "vote", "stop_by": "votes"},
    ],
)
def test_small_blocks_and_several_threads_do_not_change_the_model(small, tmp_path, monkeypatch, params):
    monkeypatch.setattr(training, "ROW_BLOCK", 4)
    monkeypatch.setattr(losses, "ROW_BLOCK", 4)
    for threads in ("1", "3"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        quick(epochs=2, **params).fit(small.X, small.Y).save(tmp_path / threads)
    assert digest(tmp_path / "1") == digest(tmp_path / "3")


# ---- early stopping


def fit_with_scores(model, monkeypatch, scores, documents):
    """Fit with given validation scores; returns theta and the label points after each epoch."""
    epochs = []

    def validation_score(net, X, Y):
        epochs.append((net.theta.vectors.copy(), net.label_points.copy()))
        return scores[len(epochs) - 1]

    monkeypatch.setattr(Net, "validation_score", validation_score)
    model.fit(documents.X, documents.Y)
    return epochs


def is_final(model, epoch):
    theta, scales = quantize_int8(epoch[0])
    same_theta = np.array_equal(model.theta_[0], theta) and np.array_equal(model.theta_scales_[0], scales)
    return same_theta and np.array_equal(model.label_indexes_[0].points, epoch[1])


@pytest.mark.parametrize("all_labels", [True, False])
@pytest.mark.parametrize("optimizer", ["adagrad", "sgd"])
def test_training_stops_without_improvement_and_the_best_epoch_is_used(small, monkeypatch, all_labels, optimizer):
    model = quick(epochs=9, patience=2, optimizer=optimizer, all_labels=all_labels, n_negatives=4)
    epochs = fit_with_scores(model, monkeypatch, [0.1, 0.3, 0.2, 0.3, 0.9, 0.9, 0.9], small)
    assert len(epochs) == 4, "an equal score is no improvement"
    assert [is_final(model, epoch) for epoch in epochs] == [False, True, False, False]
    assert model.report_["accuracy_by_epoch"] == [[0.1, 0.3, 0.2, 0.3]]


def test_without_patience_all_epochs_run_and_the_last_is_used(small, monkeypatch):
    model = quick(epochs=4)
    epochs = fit_with_scores(model, monkeypatch, [0.9, 0.1, 0.0, 0.0], small)
    assert [is_final(model, epoch) for epoch in epochs] == [False, False, False, True]


def test_a_training_that_only_gets_worse_stops(small):
    settings = {"optimizer": "sgd", "learning_rate": 1e4, "feature_learning_rate": 1e4, "n_estimators": 2}
    model = quick(patience=1, epochs=60, **settings).fit(small.X, small.Y)
    for scores in model.report_["accuracy_by_epoch"]:
        assert len(scores) < 60
        assert len(scores) == int(np.argmax(scores)) + 2


@pytest.mark.parametrize(
    "params",
    [{}, {"sharpness": 0.0, "n_neighbors": 5}, {"geometry": "cosine", "sharpness": 2.0}],
    ids=["default", "counted", "cosine"],
)
def test_training_stops_by_the_votes_of_the_nearest_documents(small, params, monkeypatch):
    model, nets = quick(stop_by="votes", patience=1, epochs=2, **params), []
    train, validation = small.rows(range(200)), small.rows(range(200, 260))
    vote_score = training.vote_score

    def remembered(net, data, params):
        X = [rows.toarray() @ net.theta.vectors for rows in (data.X, data.held_out[0])]
        nets.append([project(model.manifold, r.astype(np.float64)) for r in X])
        return vote_score(net, data, params)

    monkeypatch.setattr(training, "vote_score", remembered)
    model.fit(train.X, train.Y, validation=(validation.X, validation.Y))
    m, sharpness = params.get("n_neighbors", 40), params.get("sharpness", 4.0)
    for (documents, queries), score in zip(nets, model.report_["accuracy_by_epoch"][0], strict=True):
        to_documents, precisions = distances(model.manifold, queries, documents), []
        if model.geometry == "cosine":
            to_documents = np.sqrt(2 * np.maximum(to_documents, 0))  # the length of the chord
        for i, row in enumerate(to_documents):
            nearest = np.argsort(row)[:m]
            votes = np.exp(-sharpness * row[nearest]) @ train.Y[nearest].toarray()
            truth = validation.Y[i].indices
            best = [label for label in np.argsort(-votes, kind="stable")[:5] if votes[label] > 0]
            precisions.append(np.isin(best, truth).sum() / min(5, len(truth)) if len(truth) else np.nan)
        assert np.isclose(score, np.nanmean(precisions), atol=0.02), "but for ties"
    scores = quick(stop_by="labels", epochs=2).fit(train.X, train.Y).report_["accuracy_by_epoch"]
    assert scores != model.report_["accuracy_by_epoch"]


def test_the_best_epoch_by_votes_is_used(small, monkeypatch):
    scores, nets = [0.1, 0.3, 0.2, 0.3, 0.9], []

    def vote_score(net, data, params):
        nets.append((net.theta.vectors.copy(), net.label_points.copy()))
        return scores[len(nets) - 1]

    monkeypatch.setattr(training, "vote_score", vote_score)
    model = quick(epochs=9, patience=2, stop_by="votes").fit(small.X, small.Y)
    assert len(nets) == 4
    assert [is_final(model, net) for net in nets] == [False, True, False, False]


# ---- held-out documents


def test_documents_are_held_out_unless_some_are_given_and_all_vote_in_the_end(small, monkeypatch):
    sizes = []
    monkeypatch.setattr(
        training,
        "TrainingData",
        lambda X, Y, held_out, model: (
            sizes.append((X.shape[0], held_out[0].shape[0])) or TrainingData(X, Y, held_out, model)
        ),
    )
    other = planted(n=50, d=150, l=30, seed=9)
    for given in ({}, {"validation": (other.X, other.Y)}, {"validation": (other.X, 0 * other.Y)}):
        for clusters in (None, 3):
            model = quick(epochs=1, n_clusters=clusters).fit(small.X, small.Y, **given)
            documents = model.document_indexes_[0]
            assert sorted(documents.ids) == list(range(260))
            points = model._embed(normalize_rows(small.X), 0)
            assert np.array_equal(documents.points, points[documents.ids]), "ids are rows of Y"
    assert sizes == [(247, 13)] * 2 + [(260, 50)] * 2 + [(247, 13)] * 2
    for params, given, expected in (
        ({"max_validation": 20}, {"validation": (other.X, other.Y)}, (260, 20)),
        ({"max_validation": 7}, {}, (253, 7)),
        ({"validation_share": 0.1, "max_validation": None}, {}, (234, 26)),
        ({"validation_share": 0.1, "max_validation": 20}, {}, (240, 20)),
    ):
        quick(epochs=1, **params).fit(small.X, small.Y, **given)
        assert sizes[-1] == expected


def test_labels_that_only_validation_documents_have_are_ignored(small):
    wide = sp.csr_matrix(np.c_[small.Y.toarray(), np.ones(260)])
    quick(epochs=1).fit(small.X, small.Y, validation=(small.X, wide.astype(np.float32)))
    Y = small.Y.tolil()
    Y[:, 0] = 0
    only_label_0 = sp.csr_matrix(np.eye(30, dtype=np.float32)[np.zeros(260, int)])
    for patience in (None, 1):
        model = quick(epochs=3, patience=patience).fit(small.X, Y.tocsr(), validation=(small.X, only_label_0))
        assert set(model.report_["accuracy_by_epoch"][0]) == {0.0}


def test_validation_documents_may_have_fewer_labels(small):
    X, narrow = small.X[:80], small.Y[:80, :20]
    wide = sp.csr_matrix(np.c_[narrow.toarray(), np.zeros((80, 10))].astype(np.float32))
    one, other = (quick().fit(small.X, small.Y, validation=(X, Y)) for Y in (narrow, wide))
    assert narrow.shape == (80, 20), "not changed"
    assert one.report() == other.report()
    assert same_topk(one.predict_topk(small.X), other.predict_topk(small.X))


def test_documents_with_one_label_each_that_no_other_has_are_learned_but_cannot_be_held_out():
    X = sp.random(60, 20, 0.4, "csr", np.float32, rng=np.random.default_rng(1))
    model = quick().fit(X, np.eye(60))
    assert (model.predict_topk(X, 1).labels[:, 0] == np.arange(60)).mean() > 0.3
    with pytest.raises(DataError, match="early stopping needs some documents"):
        quick(patience=1).fit(X, np.eye(60))


def test_too_few_documents_for_early_stopping_are_one_clear_line(small):
    few = small.rows(range(4))
    with pytest.raises(DataError, match="early stopping needs some documents .* but there are 4 in all; give validat"):
        quick(patience=1).fit(few.X, few.Y)
    quick(patience=1, epochs=1).fit(few.X, few.Y, validation=(small.X, small.Y))


def create_net(model, data, seed=0):
    return Net(model, data.X, len(data.label_ids), np.random.default_rng(seed))


@pytest.mark.parametrize("optimizer", LEARNING_RATES)
def test_a_batch_changes_only_its_features_and_sampled_labels(small, optimizer):
    model = quick(all_labels=False, n_negatives=3, optimizer=optimizer)
    X = normalize_rows(small.X)
    data = TrainingData(X, small.Y, None, model)
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
    data = TrainingData(X, small.Y, None, model)
    net, sample_pairs = create_net(model, data), training.losses.sample_pairs
    monkeypatch.setattr(training.losses, "sample_pairs", lambda *args: drawn.append(sample_pairs(*args)) or drawn[0])
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
        data = TrainingData(small.X, small.Y, None, quick())
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
    monkeypatch.setattr(training, "ROW_BLOCK", 7)
    assert np.array_equal(embed_documents(X, theta, scales, model.manifold), points)
    assert np.array_equal(embed_documents(X[5:6], theta, scales, model.manifold), points[5:6])
