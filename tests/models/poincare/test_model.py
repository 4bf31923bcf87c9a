import threading

import numpy as np
import pytest

from labelspace.errors import NotFittedError, ParameterError
from labelspace.models.baselines import Popular
from labelspace.models.poincare import model as poincare
from labelspace.models.poincare import training
from labelspace.models.poincare.model import Poincare
from labelspace.models.poincare.training import Net
from tests.checks import digest, same_topk
from tests.models.poincare.reference import quick

NEIGHBORS = {"loss": "neighbors", "negatives": "per_document", "n_negatives": 10, "route": "vote", "stop_by": "votes"}


def precision(model, documents, k=1):
    hits = model.predict_topk(documents.X, k).to_csr(documents.Y.shape[1]).multiply(documents.Y).sum()
    return hits / (k * len(documents))


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_learner_does_not_depend_on_the_number_of_learners(small, ensemble, monkeypatch, threads):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)
    for n_estimators in (1, 2, 3):
        model = quick(n_estimators=n_estimators).fit(small.X, small.Y)
        assert model.theta_.shape == (n_estimators, 150, 8)
        for i in range(n_estimators):
            assert np.array_equal(model.theta_[i], ensemble.theta_[i])
            assert np.array_equal(model.label_indexes_[i].points, ensemble.label_indexes_[i].points)
            assert np.array_equal(model.document_indexes_[i].points, ensemble.document_indexes_[i].points)
            assert model.report_["accuracy_by_epoch"][i] == ensemble.report_["accuracy_by_epoch"][i]
    assert not np.array_equal(ensemble.theta_[0], ensemble.theta_[1])


# ---- progress and interrupts


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("patience", [None, 1])
def test_progress_never_falls_and_ends_at_the_total_in_the_callers_thread(small, monkeypatch, threads, patience):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)
    for n_estimators in (1, 3):
        calls = []
        quick(n_estimators=n_estimators, patience=patience, optimizer="sgd", learning_rate=1e4).fit(
            small.X, small.Y, progress=lambda *call, calls=calls: calls.append((*call, threading.current_thread()))
        )
        assert {thread for *_, thread in calls} == {threading.current_thread()}
        batches = [call[1:3] for call in calls if call[0] == "batches"]
        assert {total for _, total in batches} == {n_estimators * 3 * 16}
        done = [step for step, _ in batches]
        assert done == sorted(done)
        assert done[-1] == n_estimators * 3 * 16
        assert threads == "2" or done[0] == 1
        tried = [call[1:3] for call in calls if call[0] == "choosing vote weights"]
        assert len(tried) > 20
        assert tried == [(i + 1, len(tried)) for i in range(len(tried))]


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("n_estimators", [1, 3])
def test_an_interrupt_ends_all_learners_and_leaves_no_model(small, monkeypatch, threads, n_estimators):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)
    model, steps = quick(n_estimators=n_estimators, epochs=1).fit(small.X, small.Y), []
    model.set_params(epochs=100_000)
    train_batch = training.train_batch
    monkeypatch.setattr(training, "train_batch", lambda *args: steps.append(1) or train_batch(*args))
    running = threading.active_count()

    def progress(step, done, total):
        if done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(small.X, small.Y, progress=progress)
    assert 20 < len(steps) < 100_000
    assert threading.active_count() == running
    assert not model.is_fitted
    assert not hasattr(model, "document_indexes_")
    for use in (lambda: model.predict_topk(small.X), model.label_points, model.report):
        with pytest.raises(NotFittedError):
            use()


def test_the_error_of_a_learner_is_raised(small, monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    train_learner = training.train_learner

    def failing(data, model, number, tick):
        if number == 1:
            raise ZeroDivisionError("of the second")
        return train_learner(data, model, number, tick)

    monkeypatch.setattr(training, "train_learner", failing)
    with pytest.raises(ZeroDivisionError, match="of the second"):
        quick(n_estimators=3, epochs=50).fit(small.X, small.Y)


# ---- state, label points and report


def test_parameters_may_be_numpy_numbers_and_label_points_and_report_are_saved(small, tmp_path):
    integers = {"embedding_dim": 4, "n_estimators": 2, "epochs": 2, "batch_size": 16, "n_negatives": 5, "patience": 2}
    integers |= {"n_neighbors": 5, "random_state": 3, "n_clusters": 3, "label_weight": 1}
    reals = {"alpha": 8.0, "similarity_weight": 0.5, "learning_rate": 0.25, "feature_learning_rate": 0.125}
    reals["input_dropout"] = 0.25
    plain = Poincare(**integers, **reals).fit(small.X, small.Y)
    params = {key: np.int64(value) for key, value in integers.items()}
    params |= {key: np.float32(value) for key, value in reals.items()}
    model = Poincare(**params).fit(small.X, small.Y)
    plain.save(tmp_path / "plain")
    model.save(tmp_path / "model")
    assert digest(tmp_path / "plain") == digest(tmp_path / "model")
    loaded = Poincare.load(tmp_path / "model")
    assert same_topk(loaded.predict_topk(small.X, 5), plain.predict_topk(small.X, 5))
    assert loaded.report() == plain.report()
    assert np.array_equal(loaded.label_points(), plain.label_points(), equal_nan=True)
    assert [(len(index), index.n_clusters) for index in loaded.document_indexes_] == [(260, 3)] * 2


def test_label_points_are_in_the_ball_and_nan_for_labels_without_documents(small, ensemble):
    Y = small.Y.tolil()
    Y[:, [4, 11]] = 0
    model = quick().fit(small.X, Y.tocsr(), validation=(small.X, small.Y))
    points = model.label_points()
    assert points.shape == (30, 8)
    assert np.flatnonzero(np.isnan(points).any(axis=1)).tolist() == [4, 11]
    seen = np.delete(points, [4, 11], axis=0)
    assert np.linalg.norm(seen, axis=1).max() < 1
    assert np.array_equal(seen, model.label_indexes_[0].points)
    labels = ensemble.label_indexes_[0]
    assert np.array_equal(ensemble.label_points()[labels.ids], labels.points)
    with pytest.raises(ParameterError, match="geometry is euclidean; train with geometry=poincare"):
        quick(geometry="euclidean", epochs=1).fit(small.X, small.Y).label_points()
    with pytest.raises(ParameterError, match="loss is neighbors; train with loss=labels"):
        quick(**NEIGHBORS, epochs=1).fit(small.X, small.Y).label_points()


def test_the_report_has_norms_scores_by_epoch_and_vote_weights(ensemble):
    report = ensemble.report()
    assert set(report) == {
        "norm_against_frequency", "mean_norm_of_labels", "mean_norm_of_documents", "accuracy_by_epoch", "neighbors",
        "sharpness", "label_weight",
    }  # fmt: skip
    assert -1 <= report["norm_against_frequency"] <= 1
    assert [len(scores) for scores in report["accuracy_by_epoch"]] == [3] * 3
    assert report["accuracy_by_epoch"][0][-1] > 0.3
    for key, indexes in {"labels": ensemble.label_indexes_, "documents": ensemble.document_indexes_}.items():
        norms = np.linalg.norm(indexes[0].points, axis=1)
        assert np.isclose(report[f"mean_norm_of_{key}"], norms.mean(), atol=1e-4)


def test_validation_documents_are_not_changed_and_the_model_keeps_copies(small):
    X, Y = small.X.copy(), small.Y.copy()
    validation = (X[:30].copy(), Y[:30].copy())
    model = quick(n_estimators=2, all_labels=False, n_negatives=4).fit(X, Y, validation=validation)
    before = model.predict_topk(X, 5)
    for one, other in ((validation[0], small.X[:30]), (validation[1], small.Y[:30])):
        assert np.array_equal(one.data, other.data)
        assert np.array_equal(one.indices, other.indices)
    for one in (X, Y, *validation):
        one.data[:] = 7
    assert same_topk(model.predict_topk(small.X, 5), before)


# ---- presets and settings


@pytest.mark.slow
@pytest.mark.parametrize("preset", Poincare.presets)
def test_a_preset_lists_only_what_differs_from_the_defaults_and_is_learned(small, tmp_path, preset):
    defaults = Poincare.defaults()
    assert all(defaults[key] != value for key, value in Poincare.presets[preset].items())
    model = Poincare.from_preset(preset, embedding_dim=8, n_estimators=2).fit(small.X, small.Y)
    assert precision(model, small) > 2 * precision(Popular().fit(small.X, small.Y), small)
    model.save(tmp_path / "model")
    loaded = Poincare.load(tmp_path / "model")
    assert same_topk(loaded.predict_topk(small.X, 5), model.predict_topk(small.X, 5))
    assert loaded.report() == model.report()


def test_the_papers_preset_stops_25_epochs_after_the_best_and_counts_the_votes_of_one_cluster(small):
    model = Poincare.paper(embedding_dim=4, n_estimators=1).fit(small.X, small.Y)
    scores = model.report_["accuracy_by_epoch"][0]
    assert len(scores) == int(np.argmax(scores)) + 26
    assert model.vote_weights_.sharpness == 0
    assert (model.document_indexes_[0].n_clusters, model.document_indexes_[0].probes) == (1, 1)


@pytest.mark.parametrize("geometry", ["poincare", "euclidean", "cosine"])
@pytest.mark.parametrize(
    "params", [NEIGHBORS, {"negatives": "per_document", "n_negatives": 10}], ids=["docs", "labels"]
)
def test_both_losses_learn_in_every_geometry(data, geometry, params):
    train, test = data
    model = quick(geometry=geometry, embedding_dim=20, epochs=10, **params).fit(train.X, train.Y)
    assert precision(model, test) > 0.7
    norms = np.linalg.norm(model.document_indexes_[0].points, axis=1)
    assert (np.allclose(norms, 1, atol=1e-5)) == (geometry == "cosine")
    assert len(model.label_indexes_[0]) == (0 if "loss" in params else 40)
    report = model.report()
    assert (report["mean_norm_of_labels"] is None) == ("loss" in params)
    assert (report["norm_against_frequency"] is None) == ("loss" in params or geometry == "cosine")


def test_the_documents_nearest_on_the_sphere_have_the_largest_cosines(small):
    model = quick(geometry="cosine", route="vote", n_neighbors=5, sharpness=0.0).fit(small.X, small.Y)
    points = model._embed(model.scaled(small.X[:20]), 0).astype(np.float64)
    documents = model.document_indexes_[0]
    cosines = points @ documents.points.astype(np.float64).T
    found = documents.search(points.astype(np.float32), 5).labels
    best = -np.sort(-cosines, axis=1)[:, :5]
    assert np.allclose(np.take_along_axis(cosines, np.argsort(documents.ids)[found], axis=1), best, atol=1e-6)


def test_searches_are_chosen_for_held_out_documents_and_each_learner_by_its_own_points(small, monkeypatch):
    given, made = [], poincare.index.PointIndex

    def spied(points, *args, queries=None, **kwargs):
        given.append((len(points), queries))
        return made(points, *args, queries=queries, **kwargs)

    rows = np.arange(40)
    monkeypatch.setattr(poincare.index, "PointIndex", spied)
    model = quick(n_estimators=2).fit(small.X[40:], small.Y[40:], validation=(small.X[rows], small.Y[rows]))
    of_indexes = [queries for _, queries in given if queries is not None]
    assert len(of_indexes) == 4  # labels and documents of each learner
    for number in range(2):
        expected = model._embed(model.scaled(small.X[rows]), number)
        assert all(np.array_equal(queries, expected) for queries in of_indexes[2 * number : 2 * number + 2])


def test_documents_are_used_as_given_without_normalize(small):
    scaled = small.X.multiply(np.linspace(1, 3, 260)[:, None]).tocsr().astype(np.float32)
    models = [quick(normalize=n).fit(X, small.Y) for n in (True, False) for X in (small.X, scaled)]
    assert np.abs(models[0].theta_.astype(int) - models[1].theta_).max() <= 2, "but for rounding"
    assert not np.array_equal(models[2].theta_, models[3].theta_)
    lengths = [np.linalg.norm(model._embed(model.scaled(3 * small.X[:5]), 0), axis=1) for model in models]
    assert (lengths[3] > lengths[1]).all()


def test_the_document_map_starts_with_the_given_standard_deviation(small):
    for init_std in (1e-4, 0.3):
        theta = Net(quick(init_std=init_std), small.X, 30, np.random.default_rng(0)).theta.vectors
        used = theta[np.unique(small.X.indices)]
        assert np.isclose(used.std(), init_std, rtol=0.1)


@pytest.mark.parametrize("probes", [None, 1, 5, 100])
def test_as_many_clusters_are_searched_as_given(small, tmp_path, probes):
    model = quick(epochs=1, n_clusters=9, probes=probes).fit(small.X, small.Y)
    assert model.document_indexes_[0].probes == {None: 3, 100: 9}.get(probes, probes)
    assert model.document_indexes_[0].report["probes"] == model.document_indexes_[0].probes


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"geometry": "cosine", "projection": "clip"},
            "projection of poincare has an effect only with geometry=poincare",
        ),
        (
            {"probes": 2},
            "probes of poincare has an effect only with n_clusters, but n_clusters is none; leave probes out",
        ),
        ({"negatives": "per_document", "all_labels": True}, "all_labels of poincare .* only with .*negatives=shared"),
        (
            {**NEIGHBORS, "negatives": "shared"},
            "negatives of poincare must be per_document with loss=neighbors, but is",
        ),
        ({**NEIGHBORS, "route": "both"}, "route of poincare must be vote with loss=neighbors"),
        ({**NEIGHBORS, "stop_by": "labels"}, "stop_by of poincare must be votes with loss=neighbors"),
    ],
)
def test_settings_that_do_not_go_together_are_an_error(small, params, message):
    with pytest.raises(ParameterError, match=message):
        Poincare(**params).fit(small.X, small.Y)


# ---- tiny data

TINY = {
    "one document": (np.eye(1, 5), [[0, 1, 0]]),
    "two documents": (np.eye(2, 5), [[0, 1, 0], [1, 1, 0]]),
    "one of two without labels": (np.eye(2, 5), [[0, 0, 0], [1, 1, 0]]),
    "all alike": (np.tile([[1, 2, 0, 0, 1]], (50, 1)), [[1, 0, 1]] * 50),
    "all with all labels": (np.random.default_rng(0).random((50, 5)), [[1, 1, 1]] * 50),
    "all empty": (np.zeros((50, 5)), [[1, 0, 0], [0, 1, 0]] * 25),
    "most without labels": (np.random.default_rng(1).random((50, 5)), [[0, 0, 0]] * 47 + [[1, 0, 0]] * 3),
    "one label": (np.random.default_rng(2).random((50, 5)), [[1]] * 50),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("route", "params"),
    [
        ("both", {"n_estimators": 2}),
        ("vote", {"n_estimators": 2}),
        ("labels", {"n_estimators": 2}),
        ("both", {"all_labels": False, "n_negatives": 1, "optimizer": "adam"}),
        ("both", {"negatives": "per_document", "n_negatives": 2, "stop_by": "votes", "geometry": "cosine"}),
        ("vote", NEIGHBORS),
    ],
    ids=["both", "vote", "labels", "sampled", "per document", "neighbors"],
)
@pytest.mark.parametrize("name", TINY)
def test_tiny_data_give_valid_predictions(name, route, params):
    X, Y = (np.array(table, np.float32) for table in TINY[name])
    model = quick(**{"route": route, **params}).fit(X, Y)
    top = model.predict_topk(X, k=4)
    assert top.labels.shape == (len(X), 4)
    known = np.flatnonzero(Y.any(axis=0))
    assert np.isin(top.labels[top.labels >= 0], known).all()
    assert (top.labels[:, 0] >= 0).all() or (route == "vote" and not Y.any(axis=1).all())
    assert np.isfinite(top.scores[top.labels >= 0]).all()


@pytest.mark.parametrize(
    "params", [{"batch_size": 1}, {"embedding_dim": 1}, {"batch_size": 1, "all_labels": False, "n_negatives": 1}]
)
def test_the_smallest_parameters_give_finite_scores(small, params):
    few = small.rows(range(60))
    model = quick(**params).fit(few.X, few.Y)
    assert np.isfinite(model.predict_topk(few.X, 1).scores).all()


# ---- accuracy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("route", "params"),
    [
        ("both", {}),
        ("vote", {}),
        ("labels", {}),
        ("labels", {"all_labels": False, "n_negatives": 12}),
        ("vote", {"n_clusters": 8}),
    ],
)
def test_planted_labels_are_predicted_by_each_route(data, route, params):
    train, test = data
    model = quick(route=route, embedding_dim=20, epochs=12, **params).fit(train.X, train.Y)
    assert precision(model, test) > 0.8
    assert precision(model, test, 3) > 2 * precision(Popular().fit(train.X, train.Y), test, 3)
