import hashlib
import threading
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace.data.synthetic import planted
from labelspace.errors import DataError, NotFittedError, ParameterError
from labelspace.features.normalize import normalize_rows
from labelspace.models.poincare import model as poincare
from labelspace.models.poincare.geometry import Ball, Flat
from labelspace.models.poincare.losses import PULL, label_gradients, similarity_gradient
from labelspace.models.poincare.model import Objective, Net, Poincare, fading
from labelspace.models.popular import Popular
from labelspace.training.negative_sampling import SampledLabels, choose

pytestmark = pytest.mark.slow  # many small trainings

BALL, CLIP, FLAT = Ball(), Ball(exponential=False), Flat()
SPACES = pytest.mark.parametrize("space", [BALL, FLAT], ids=["ball", "flat"])
WAYS = pytest.mark.parametrize("way", ["differences", "torch"])


@pytest.fixture(scope="module")
def small():
    """Documents that are learned in a moment."""
    return planted(n=260, d=150, l=30, seed=2)


@pytest.fixture(scope="module")
def ensemble(small):
    return quick(learners=3).fit(small.X, small.Y)


def quick(**params):
    return Poincare(**{"dimension": 8, "epochs": 3, **params})


def same(one, other):
    return np.array_equal(one.labels, other.labels) and np.array_equal(one.scores, other.scores)


def digest(folder):
    files = sorted(path for path in folder.iterdir() if path.suffix != ".json")
    return [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


def precision(model, documents, k=1):
    hits = model.predict_topk(documents.X, k).to_csr(documents.Y.shape[1]).multiply(documents.Y).sum()
    return hits / (k * len(documents))


# ---- gradients, against losses written straight from the paper


def as_given(array, xp):
    return xp.asarray(np.asarray(array, np.float64))


def placed(space, r, xp):
    """Where documents are."""
    if isinstance(space, Flat):
        return r
    size = xp.sqrt((r * r).sum(1))[:, None]
    return xp.tanh(size) * r / size


def distances(space, one, other, xp):
    squares = ((one[:, None] - other[None]) ** 2).sum(2)
    if isinstance(space, Flat):
        return xp.sqrt(squares)
    gaps = (1 - (one * one).sum(1))[:, None] * (1 - (other * other).sum(1))[None]
    return xp.arccosh(1 + 2 * squares / gaps)


def label_loss(space, r, points, Y, counts, alpha, xp):
    """Of each label of a document against those it does not have; the mean over its labels, then over documents."""
    powers = xp.exp(-alpha * distances(space, placed(space, r, xp), points, xp))
    total = 0.0
    for j in range(len(Y)):
        own, others = np.flatnonzero(Y[j]), np.flatnonzero(Y[j] == 0)
        wrong = (powers[j][others] * as_given(counts[others], xp)).sum()
        for i in own:
            total = total - xp.log(powers[j, i] / (wrong + powers[j, i])) / len(own)
    return total / len(Y)


def likeness_loss(space, r, Y, strength, xp):
    """Of each document that shares labels with others, between the softmax of -d and its share of cosines."""
    points = placed(space, r, xp)
    lengths = np.maximum(np.linalg.norm(Y, axis=1), 1)
    total = 0.0
    for j in range(len(Y)):
        others = np.flatnonzero(np.arange(len(Y)) != j)
        cosines = Y[others] @ Y[j] / (lengths[others] * lengths[j])
        if cosines.sum() > 0:
            powers = xp.exp(-PULL * distances(space, points[[j]], points[others], xp))[0]
            logs = xp.log(powers / powers.sum())
            total = total - (as_given(cosines / cosines.sum(), xp) * logs).sum()
    return strength * total / len(Y)


def slopes_of(loss, given, way):
    """The gradients of a loss by all that it is given, in float64."""
    given = [np.asarray(array, np.float64) for array in given]
    if way == "torch":
        torch = pytest.importorskip("torch")
        leaves = [torch.tensor(array, requires_grad=True) for array in given]
        loss(*leaves, torch).backward()
        return [leaf.grad.numpy() for leaf in leaves]
    found = [np.empty_like(array) for array in given]
    for which, array in enumerate(given):
        for place in np.ndindex(array.shape):
            ends = []
            for step in (1e-6, -1e-6):
                there = [other.copy() for other in given]
                there[which][place] += step
                ends.append(float(loss(*there, np)))
            found[which][place] = (ends[0] - ends[1]) / 2e-6
    return found


def case(space, documents, n_labels, share=0.3, dimension=3, seed=0):
    """Vectors of documents, label points and labels; one document has no label, and one label is on all others."""
    rng = np.random.default_rng(seed)
    r = 0.7 * rng.standard_normal((documents, dimension))
    points = rng.standard_normal((n_labels, dimension))
    points *= 0.9 * rng.random((n_labels, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    Y = (rng.random((documents, n_labels)) < share).astype(np.float32)
    Y[:, 1] = 1
    if documents > 2:
        Y[2] = 0
    return r.astype(np.float32), points.astype(np.float32), Y


def ours(space, r, points, chosen, alpha):
    by_lifted, by_points = label_gradients(space, space.lift_vectors(r), points, chosen, alpha)
    assert by_lifted.dtype == by_points.dtype == np.float32
    return space.vectors_back(r, by_lifted), by_points


def every(Y):
    true = sp.csr_matrix(Y)
    return SampledLabels(np.arange(Y.shape[1], dtype=np.int32), true.indices, true.indptr)


def close(one, other, share=1e-3):
    return np.allclose(one, other, rtol=share, atol=share * np.abs(other).max())


@WAYS
@SPACES
@pytest.mark.parametrize(
    ("documents", "n_labels", "share"), [(6, 9, 0.3), (1, 5, 0.4), (5, 2, 0.5), (70, 4, 0.4)]
)  # the last in two blocks
@pytest.mark.parametrize("alpha", [1.0, 6.0])
def test_the_gradient_by_labels_is_that_of_the_paper_s_loss(space, documents, n_labels, share, alpha, way):
    if documents > 64 and way == "differences":
        alpha, n_labels = 6.0, 3
    r, points, Y = case(space, documents, n_labels, share)
    found = ours(space, r, points, every(Y), alpha)
    counts = np.ones(n_labels)
    expected = slopes_of(lambda *at: label_loss(space, *at[:2], Y, counts, alpha, at[2]), (r, points), way)
    for one, other in zip(found, expected, strict=True):
        assert np.abs(other).max() > 1e-3
        assert close(one, other)
    assert documents < 3 or not found[0][2].any(), "no label, nothing to learn"


@SPACES
def test_the_gradient_by_drawn_labels_counts_each_as_often_as_it_stands_for(space):
    r, points, Y = case(space, 6, 20, 0.15)
    chosen = choose(sp.csr_matrix(Y), np.arange(20, dtype=np.int32), 5, np.random.default_rng(3))
    assert chosen.weights.max() > 1
    found = ours(space, r, points[chosen.ids], chosen, 4.0)
    expected = slopes_of(
        lambda *at: label_loss(space, *at[:2], Y[:, chosen.ids], chosen.weights, 4.0, at[2]),
        (r, points[chosen.ids]),
        "torch",
    )
    assert all(close(*both) for both in zip(found, expected, strict=True))


@SPACES
def test_a_batch_in_which_all_documents_have_all_labels_teaches_nothing(space):
    r, points, Y = case(space, 5, 4)
    found = ours(space, r, points, every(np.ones_like(Y)), 4.0)
    assert all(np.abs(gradient).max() < 1e-12 for gradient in found)


def test_documents_on_their_labels_have_a_gradient_that_is_finite():
    _, points, Y = case(BALL, 8, 8)
    r = points * (np.arctanh(np.linalg.norm(points, axis=1)) / np.linalg.norm(points, axis=1))[:, None]
    for space, vectors in ((BALL, r), (CLIP, points), (FLAT, points)):
        for gradient in ours(space, vectors, points, every(Y), 16.0):
            assert np.isfinite(gradient).all()
        like = similarity_gradient(space, space.lift_vectors(np.repeat(vectors[:2], 4, axis=0)), sp.csr_matrix(Y), 1.0)
        assert np.isfinite(like).all()


@SPACES
@WAYS
@pytest.mark.parametrize("documents", [2, 7])
def test_the_gradient_by_likeness_is_that_of_the_cross_entropy(space, way, documents):
    r, _, Y = case(space, documents, 6, seed=4)
    Y[0], Y[1] = [1, 0, 0, 1, 0, 0], [1, 1, 0, 0, 0, 0]
    if documents > 3:
        Y[3] = [0, 0, 0, 0, 0, 1]  # like no other
        Y[4:, 5] = 0
    expected = slopes_of(lambda *at: likeness_loss(space, at[0], Y, 0.7, at[1]), (r,), way)[0]
    found = space.vectors_back(r, similarity_gradient(space, space.lift_vectors(r), sp.csr_matrix(Y), 0.7))
    assert np.abs(expected).max() > 1e-2 or documents == 2
    assert np.allclose(found, expected, rtol=2e-3, atol=2e-3 * max(np.abs(expected).max(), 1e-3))


@SPACES
def test_likeness_says_nothing_where_no_document_is_like_another(space):
    r, _, _ = case(space, 5, 5)
    for true in (np.eye(5), np.zeros((5, 5)), np.ones((1, 5))):
        given = sp.csr_matrix(true.astype(np.float32))
        assert not similarity_gradient(space, space.lift_vectors(r[: len(true)]), given, 1.0).any()


def test_fading_is_a_power_of_what_is_lost_to_the_best():
    scores = np.array([[-1, -1.5, -np.inf], [-np.inf] * 3, [0, -2000, -1e30]], np.float32)
    assert np.allclose(fading(scores, 2.0), [[1, np.exp(-1), 0], [0, 0, 0], [1, 0, 0]])
    assert fading(scores, 0.0).tolist() == [[1, 1, 0], [0, 0, 0], [1, 1, 1]]
    assert fading(scores[:, :0], 2.0).shape == (3, 0)
    assert fading(scores[:1], 1e29).tolist() == [[1, 0, 0]]


# ---- whole trainings with absurd rates

ABSURD = {"rate": 100.0, "feature_rate": 100.0, "alpha": 100.0, "similarity": 100.0}
GEOMETRIES = [("poincare", "exponential"), ("poincare", "clip"), ("euclidean", "exponential")]


@pytest.mark.parametrize(("geometry", "projection"), GEOMETRIES)
@pytest.mark.parametrize("optimizer", ["adagrad", "adam", "sgd"])
@pytest.mark.parametrize(("dimension", "drawn"), [(1, False), (2, True)])
def test_absurd_rates_end_in_finite_answers(small, geometry, projection, optimizer, dimension, drawn):
    model = quick(
        geometry=geometry, projection=projection, optimizer=optimizer, dimension=dimension, all_labels=not drawn,
        negatives=3, epochs=2, **ABSURD,
    ).fit(small.X, small.Y)  # fmt: skip
    top = model.predict_topk(small.X[:50], k=5)
    assert (top.labels[:, 0] >= 0).all()
    assert np.isfinite(top.scores[top.labels >= 0]).all()
    for balls in (model.points_, model.documents_):
        assert np.isfinite(balls[0].points).all()
        norms = np.linalg.norm(balls[0].points.astype(np.float64), axis=1)
        assert geometry == "euclidean" or norms.max() < 1
    assert model.report()["mean_norm_of_documents"] > 0


@pytest.mark.parametrize(("geometry", "projection"), GEOMETRIES)
@pytest.mark.parametrize("optimizer", ["adagrad", "adam", "sgd"])
def test_every_way_of_learning_learns(small, geometry, projection, optimizer):
    model = quick(geometry=geometry, projection=projection, optimizer=optimizer, epochs=12)
    model.fit(small.X, small.Y)
    popular = Popular().fit(small.X, small.Y)
    assert precision(model, small) > (1.5 if optimizer == "sgd" else 2) * precision(popular, small)
    assert precision(model, small) > 0.5


# ---- what a training goes through


def test_rates_fall_to_nothing_in_a_straight_line_by_adagrad_and_stay_as_in_the_paper_otherwise(small):
    for optimizer in ("adagrad", "adam", "sgd"):
        model, left = quick(optimizer=optimizer, epochs=2), []
        model._step = lambda net, lesson, rows, share, rng, left=left: left.append(share)
        model.fit(small.X, small.Y)
        expected = 1 - np.arange(len(left)) / len(left) if optimizer == "adagrad" else np.ones(len(left))
        assert np.allclose(left, expected)


def test_every_epoch_has_all_documents_but_those_held_out_in_an_order_of_its_own(small):
    model, seen = quick(epochs=2), []
    model._step = lambda net, lesson, rows, *rest: seen.append(rows)
    model.fit(small.X, small.Y)
    one, other = np.concatenate(seen[: len(seen) // 2]), np.concatenate(seen[len(seen) // 2 :])
    assert sorted(one) == sorted(other) == list(range(247))
    assert not np.array_equal(one, other)


def test_a_step_touches_only_the_features_and_labels_it_names(small):
    for optimizer in ("adagrad", "adam", "sgd"):
        model = quick(all_labels=False, negatives=3, optimizer=optimizer)
        X = normalize_rows(small.X)
        lesson = Objective.of(X, small.Y, None, model)
        net = Net.random(lesson, model, np.random.default_rng(0))
        points, vectors = net.points.copy(), net.features.vectors.copy()
        rows = np.array([3, 200], np.int32)
        model._step(net, lesson, rows, 0.5, np.random.default_rng(1))
        moved = np.flatnonzero((net.points != points).any(axis=1))
        own = np.unique(lesson.Y[rows].indices)
        assert np.isin(own, moved).all()
        assert len(moved) <= len(own) + 3
        named = np.unique(X[rows].indices)
        moved = np.flatnonzero((net.features.vectors != vectors).any(axis=1))
        assert 0 < len(moved) <= len(named)
        assert np.isin(moved, named).all()


def test_the_number_of_labels_decides_whether_all_are_learned_on(small, monkeypatch):
    assert Objective.of(small.X, small.Y, None, Poincare()).all_labels
    monkeypatch.setattr(poincare, "ALL_LABELS", 29)
    assert not Objective.of(small.X, small.Y, None, Poincare()).all_labels
    assert Objective.of(small.X, small.Y, None, Poincare(all_labels=True)).all_labels


@pytest.mark.parametrize("params", [{}, {"all_labels": False, "negatives": 4}, {"optimizer": "adam"}, {"clusters": 3}])
def test_blocks_and_threads_change_nothing_but_time(small, tmp_path, monkeypatch, params):
    monkeypatch.setattr(poincare, "ROW_BLOCK", 4)
    for threads in ("1", "3"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        quick(epochs=2, **params).fit(small.X, small.Y).save(tmp_path / threads)
    assert digest(tmp_path / "1") == digest(tmp_path / "3")


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_learner_is_the_same_however_many_there_are_beside_it(small, ensemble, monkeypatch, threads):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)
    for learners in (1, 2, 3):
        model = quick(learners=learners).fit(small.X, small.Y)
        assert model.vectors_.shape == (learners, 150, 8)
        for i in range(learners):
            assert np.array_equal(model.vectors_[i], ensemble.vectors_[i])
            assert np.array_equal(model.points_[i].points, ensemble.points_[i].points)
            assert np.array_equal(model.documents_[i].points, ensemble.documents_[i].points)
            assert model.report_["accuracy_by_epoch"][i] == ensemble.report_["accuracy_by_epoch"][i]
    assert not np.array_equal(ensemble.vectors_[0], ensemble.vectors_[1])


def test_the_seed_is_all_that_chance_depends_on(small):
    one, again, other = (quick(seed=seed).fit(small.X, small.Y) for seed in (1, 1, 2))
    assert np.array_equal(one.vectors_, again.vectors_)
    assert not np.array_equal(one.vectors_, other.vectors_)


# ---- early stopping


def watched(model, monkeypatch, accuracies, *documents, **aids):
    """Fit with made-up accuracies; the net as it was after each epoch."""
    told = []

    def accuracy(net, X, Y):
        told.append((net.features.vectors.copy(), net.points.copy()))
        return accuracies[len(told) - 1]

    monkeypatch.setattr(Net, "accuracy", accuracy)
    model.fit(*documents, **aids)
    return told


def is_kept(model, epoch):
    vectors, points = epoch
    written, scales = poincare.quantize_int8(vectors)
    alike = np.array_equal(model.vectors_[0], written) and np.array_equal(model.vector_scales_[0], scales)
    return alike and np.array_equal(model.points_[0].points, points)


@pytest.mark.parametrize("every_label", [True, False])
@pytest.mark.parametrize("optimizer", ["adagrad", "sgd"])
def test_training_ends_where_accuracy_stalls_and_the_best_epoch_is_kept(small, monkeypatch, every_label, optimizer):
    model = quick(epochs=9, patience=2, optimizer=optimizer, all_labels=every_label, negatives=4)
    told = watched(model, monkeypatch, [0.1, 0.3, 0.2, 0.3, 0.9, 0.9, 0.9], small.X, small.Y)
    assert len(told) == 4, "as good is no better"
    assert [is_kept(model, epoch) for epoch in told] == [False, True, False, False]
    assert model.report_["accuracy_by_epoch"] == [[0.1, 0.3, 0.2, 0.3]]


def test_without_patience_all_epochs_are_made_and_the_last_is_kept(small, monkeypatch):
    model = quick(epochs=4)
    told = watched(model, monkeypatch, [0.9, 0.1, 0.0, 0.0], small.X, small.Y)
    assert [is_kept(model, epoch) for epoch in told] == [False, False, False, True]


def test_a_training_that_only_gets_worse_stops(small):
    settings = {"optimizer": "sgd", "rate": 1e4, "feature_rate": 1e4, "epochs": 60, "learners": 2}
    model = quick(patience=1, **settings).fit(small.X, small.Y)
    for accuracies in model.report_["accuracy_by_epoch"]:
        assert len(accuracies) < 60
        assert len(accuracies) == int(np.argmax(accuracies)) + 2


def test_documents_are_held_out_unless_some_are_given_and_all_vote_in_the_end(small, monkeypatch):
    sizes = []
    make = Objective.of
    monkeypatch.setattr(
        Objective,
        "of",
        lambda X, Y, held, model: sizes.append((X.shape[0], held[0].shape[0])) or make(X, Y, held, model),
    )
    other = planted(n=50, d=150, l=30, seed=9)
    for aids in ({}, {"validation": (other.X, other.Y)}, {"validation": (other.X, 0 * other.Y)}):
        for clusters in (None, 3):
            model = quick(epochs=1, clusters=clusters).fit(small.X, small.Y, **aids)
            assert sorted(model.documents_[0].ids) == list(range(260))
            places = model._places(normalize_rows(small.X), 0)
            found = model.documents_[0]
            assert np.array_equal(found.points, places[found.ids]), "each where its row in Y says"
    assert sizes == [(247, 13)] * 2 + [(260, 50)] * 2 + [(247, 13)] * 2
    monkeypatch.setattr(poincare, "HELD_DOCUMENTS", 20)
    quick(epochs=1).fit(small.X, small.Y, validation=(other.X, other.Y))
    assert sizes[-1] == (260, 20)


def test_labels_that_only_validation_knows_are_left_out_of_it(small):
    wide = sp.csr_matrix(np.c_[small.Y.toarray(), np.ones(260)])
    quick(epochs=1).fit(small.X, small.Y, validation=(small.X, wide.astype(np.float32)))
    narrow = small.Y.tolil()
    narrow[:, 0] = 0
    only = sp.csr_matrix(np.eye(30, dtype=np.float32)[np.zeros(260, int)])
    for patience in (None, 1):
        model = quick(epochs=3, patience=patience).fit(small.X, narrow.tocsr(), validation=(small.X, only))
        assert set(model.report_["accuracy_by_epoch"][0]) == {0.0}


def test_validation_may_name_fewer_labels(small):
    held, narrow = small.X[:80], small.Y[:80, :20]
    wide = sp.csr_matrix(np.c_[narrow.toarray(), np.zeros((80, 10))].astype(np.float32))
    one, other = (quick().fit(small.X, small.Y, validation=(held, Y)) for Y in (narrow, wide))
    assert narrow.shape == (80, 20), "left as it is"
    assert one.report() == other.report()
    assert same(one.predict_topk(small.X), other.predict_topk(small.X))


def test_documents_of_which_each_has_a_label_of_its_own_are_learned_without_fuss():
    X = sp.random(60, 20, 0.4, "csr", np.float32, rng=np.random.default_rng(1))
    model = quick().fit(X, np.eye(60))
    assert (model.predict_topk(X, 1).labels[:, 0] == np.arange(60)).mean() > 0.3
    with pytest.raises(DataError, match="early stopping needs some documents"):
        quick(patience=1).fit(X, np.eye(60))


def test_too_few_documents_to_stop_by_are_one_clear_line(small):
    few = small.rows(range(4))
    with pytest.raises(DataError, match="early stopping needs some documents .* but there are 4 in all; give validat"):
        quick(patience=1).fit(few.X, few.Y)
    quick(patience=1, epochs=1).fit(few.X, few.Y, validation=(small.X, small.Y))


# ---- progress and interrupts


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("patience", [None, 1])
def test_progress_never_falls_and_ends_at_the_total_in_the_callers_thread(small, monkeypatch, threads, patience):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)
    for learners in (1, 3):
        told = []
        quick(learners=learners, patience=patience, optimizer="sgd", rate=1e4).fit(
            small.X, small.Y, progress=lambda *news, told=told: told.append((*news, threading.current_thread()))
        )
        assert {thread for *_, thread in told} == {threading.current_thread()}
        batches = [news[1:3] for news in told if news[0] == "batches"]
        assert {total for _, total in batches} == {learners * 3 * 16}
        done = [step for step, _ in batches]
        assert done == sorted(done)
        assert done[-1] == learners * 3 * 16
        assert threads == "2" or done[0] == 1
        choices = [news[1:3] for news in told if news[0] == "weighing votes"]
        assert len(choices) > 20
        assert choices == [(i + 1, len(choices)) for i in range(len(choices))]


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("learners", [1, 3])
def test_an_interrupt_ends_all_learners_and_leaves_no_model(small, monkeypatch, threads, learners):
    monkeypatch.setenv("LABELSPACE_THREADS", threads)
    model, steps = quick(learners=learners).fit(small.X, small.Y), []
    model.set_params(epochs=100_000)
    step = Poincare._step
    monkeypatch.setattr(Poincare, "_step", lambda *args: steps.append(1) or step(*args))
    running = threading.active_count()

    def progress(what, done, total):
        if done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(small.X, small.Y, progress=progress)
    assert 20 < len(steps) < 100_000
    assert threading.active_count() == running
    assert not model.is_fitted
    assert not hasattr(model, "documents_")
    with pytest.raises(NotFittedError):
        model.predict_topk(small.X)
    with pytest.raises(NotFittedError):
        model.label_points()
    with pytest.raises(NotFittedError):
        model.report()


def test_a_learner_that_fails_is_the_error_that_is_seen(small, monkeypatch):
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    learn = Poincare._learn

    def broken(model, lesson, number, tick):
        if number == 1:
            raise ZeroDivisionError("of the second")
        return learn(model, lesson, number, tick)

    monkeypatch.setattr(Poincare, "_learn", broken)
    with pytest.raises(ZeroDivisionError, match="of the second"):
        quick(learners=3, epochs=50).fit(small.X, small.Y)


# ---- votes


def slow_votes(model, X, weighing):
    """The votes of all labels, from distances of the textbook in float64."""
    m, s, w = weighing
    share = {"vote": 0.0, "labels": 1.0, "both": w / (1 + w)}[model.route]
    votes = np.zeros((X.shape[0], model.n_labels_))
    for i, (documents, points) in enumerate(zip(model.documents_, model.points_, strict=True)):
        r = normalize_rows(X) @ (model.vectors_[i] * model.vector_scales_[i][:, None].astype(np.float64))
        places = r if model.geometry == "euclidean" else placed(BALL, r, np)
        if model.projection == "clip":
            places = CLIP.place(r)
        of_documents, of_labels = (
            distances(model.space, places, ball.points.astype(np.float64), np) for ball in (documents, points)
        )
        for row in range(len(votes)):
            near = np.argsort(of_documents[row])[:m]
            weights = np.exp(-s * (of_documents[row][near] - of_documents[row].min()))
            for j, weight in zip(documents.ids[near], weights / weights.sum(), strict=True):
                votes[row] += (1 - share) * weight * model.Y_[[j]].toarray()[0] / model.learners
            own = np.exp(-model.alpha / 4 * (of_labels[row] - of_labels[row].min()))
            votes[row, points.ids] += share * own / model.learners
    return votes


@pytest.mark.parametrize("route", ["both", "vote", "labels"])
@pytest.mark.parametrize(
    "params",
    [{"learners": 3}, {"geometry": "euclidean"}, {"projection": "clip", "optimizer": "adam"}, {"sharpness": 0.0}],
    ids=["three", "flat", "clip", "counted"],
)
def test_labels_are_ranked_by_the_mean_votes_of_learners(small, route, params):
    weighing = {"neighbors": 9, "sharpness": 3.0, "label_weight": 0.5} | params
    model = quick(route=route, **weighing).fit(small.X[:200], small.Y[:200])
    given = (9, weighing["sharpness"], 0.5)
    assert (model.neighbors_, model.sharpness_, model.label_weight_) == given, "used as given"
    X = small.X[200:]
    expected, top = slow_votes(model, X, given), model.predict_topk(X, 30)
    assert expected.max() <= 1 + 1e-6
    found = np.zeros_like(expected)
    rows, places = np.nonzero(top.labels >= 0)
    found[rows, top.labels[rows, places]] = top.scores[rows, places]
    right = np.isclose(found, expected, atol=2e-3).all(axis=1)
    assert right.mean() > 0.95, "but for documents that are as near as the last that votes"
    if route == "labels":
        assert right.all()


def test_the_weighing_of_votes_is_the_one_that_serves_the_given_documents_best(small):
    train, held = small.rows(range(180)), small.rows(range(180, 260))
    model = quick(learners=2).fit(train.X, train.Y, validation=(held.X, held.Y))
    chosen = (model.neighbors_, model.sharpness_, model.label_weight_)
    gains = {}
    for tried in product(poincare.NEIGHBORS, poincare.SHARPNESS, poincare.LABEL_WEIGHTS):
        model.neighbors_, model.sharpness_, model.label_weight_ = tried
        top = model.predict_topk(held.X, 5)
        hits = held.Y.toarray()[np.arange(80)[:, None], top.labels] * (top.labels >= 0)
        gains[tried] = (hits / np.log2(np.arange(2, 7))).sum()
    assert np.isclose(gains[chosen], max(gains.values()))
    assert len(set(np.round(list(gains.values()), 6))) > 5


def test_what_is_given_of_the_weighing_is_kept_and_the_rest_is_chosen(small):
    for key, value in {"neighbors": 7, "sharpness": 1.5, "label_weight": 0.7}.items():
        report = quick(**{key: value}).fit(small.X, small.Y).report()
        assert report.pop(key) == value
        assert report["neighbors" if key != "neighbors" else "sharpness"] in poincare.NEIGHBORS + poincare.SHARPNESS
    few = small.rows(range(6))
    report = quick().fit(few.X, few.Y).report()
    assert (report["neighbors"], report["sharpness"], report["label_weight"]) == (40, 4.0, 1.0), "the usual ones"


@pytest.mark.parametrize("route", ["both", "vote", "labels"])
def test_labels_without_a_document_are_not_suggested_and_lists_are_padded(small, route):
    Y = sp.csr_matrix(np.c_[small.Y.toarray(), np.zeros((260, 200))].astype(np.float32))
    model = quick(route=route).fit(small.X, Y)
    top = model.predict_topk(small.X[:40], k=500)
    assert top.labels.shape == (40, 500)
    assert top.labels.max() < 30
    assert (top.labels[:, 30:] == -1).all()
    empty = model.predict_topk(sp.csr_matrix((1, 150)), k=3)
    assert (empty.labels >= 0).all()
    assert np.isfinite(empty.scores).all()


def test_more_neighbors_than_documents_are_all_of_them(small):
    model = quick(neighbors=10_000, sharpness=0.0, route="vote", epochs=1).fit(small.X, small.Y)
    top = model.predict_topk(small.X[:3], k=30)
    assert np.allclose(np.sort(top.scores), np.sort(np.tile(small.Y.mean(axis=0).A1, (3, 1))), atol=1e-5)


# ---- what is kept


@pytest.mark.parametrize(
    "params", [{"learners": 3}, {"clusters": "auto"}, {"clusters": 4, "learners": 2}, {"geometry": "euclidean"}]
)
def test_it_comes_back_from_a_folder_as_it_was(small, tmp_path, params):
    model = quick(**params).fit(small.X, small.Y, labels=small.labels)
    model.save(tmp_path / "model")
    loaded = labelspace.load(tmp_path / "model")
    assert same(loaded.predict_topk(small.X, 5), model.predict_topk(small.X, 5))
    assert loaded.report() == model.report()
    assert [len(ball) for ball in loaded.documents_] == [260] * model.learners
    assert [ball.n_clusters for ball in loaded.documents_] == [ball.n_clusters for ball in model.documents_]
    if model.geometry == "poincare":
        assert np.array_equal(loaded.label_points(), model.label_points(), equal_nan=True)
    loaded.save(tmp_path / "again")
    assert digest(tmp_path / "again") == digest(tmp_path / "model")


def test_numbers_of_numpy_are_taken_and_saved(small, tmp_path):
    whole = {"dimension": 4, "learners": 2, "epochs": 2, "batch": 16, "negatives": 5, "patience": 2, "neighbors": 5}
    whole |= {"seed": 3, "clusters": 3, "label_weight": 1}
    real = {"alpha": 8.0, "similarity": 0.5, "rate": 0.25, "feature_rate": 0.125, "input_dropout": 0.25}
    plain = Poincare(**whole, **real).fit(small.X, small.Y)
    params = {key: np.int64(value) for key, value in whole.items()}
    model = Poincare(**params, **{key: np.float32(value) for key, value in real.items()}).fit(small.X, small.Y)
    for one, name in ((plain, "plain"), (model, "model")):
        one.save(tmp_path / name)
    assert digest(tmp_path / "plain") == digest(tmp_path / "model")
    assert same(labelspace.load(tmp_path / "model").predict_topk(small.X, 5), plain.predict_topk(small.X, 5))


def test_label_points_lie_in_the_ball_and_are_nan_for_labels_without_documents(small, ensemble):
    Y = small.Y.tolil()
    Y[:, [4, 11]] = 0
    model = quick().fit(small.X, Y.tocsr(), validation=(small.X, small.Y))
    points = model.label_points()
    assert points.shape == (30, 8)
    assert np.flatnonzero(np.isnan(points).any(axis=1)).tolist() == [4, 11]
    seen = np.delete(points, [4, 11], axis=0)
    assert np.linalg.norm(seen, axis=1).max() < 1
    assert np.array_equal(seen, model.points_[0].points)
    assert np.array_equal(ensemble.label_points()[ensemble.points_[0].ids], ensemble.points_[0].points)
    with pytest.raises(ParameterError, match="geometry is euclidean; train with geometry=poincare"):
        quick(geometry="euclidean", epochs=1).fit(small.X, small.Y).label_points()


def test_the_report_tells_of_norms_accuracies_and_votes(small, ensemble):
    report = ensemble.report()
    assert set(report) == {
        "norm_against_frequency", "mean_norm_of_labels", "mean_norm_of_documents", "accuracy_by_epoch", "neighbors",
        "sharpness", "label_weight",
    }  # fmt: skip
    assert -1 <= report["norm_against_frequency"] <= 1
    assert [len(accuracies) for accuracies in report["accuracy_by_epoch"]] == [3] * 3
    assert report["accuracy_by_epoch"][0][-1] > 0.3
    norms = np.linalg.norm(ensemble.points_[0].points, axis=1)
    assert np.isclose(report["mean_norm_of_labels"], norms.mean(), atol=1e-4)
    assert np.isclose(
        report["mean_norm_of_documents"], np.linalg.norm(ensemble.documents_[0].points, axis=1).mean(), atol=1e-4
    )


def test_inputs_and_validation_are_left_as_they_are(small):
    X, Y = small.X.copy(), small.Y.copy()
    held = (X[:30].copy(), Y[:30].copy())
    model = quick(learners=2, all_labels=False, negatives=4).fit(X, Y, validation=held)
    before = model.predict_topk(X, 5)
    for one, other in ((X, small.X), (Y, small.Y), (held[0], small.X[:30]), (held[1], small.Y[:30])):
        assert np.array_equal(one.data, other.data)
        assert np.array_equal(one.indices, other.indices)
    for one in (X, Y, *held):
        one.data[:] = 7
    assert same(model.predict_topk(small.X, 5), before)


# ---- little to learn from

LITTLE = {
    "one document": (np.eye(1, 5), [[0, 1, 0]]),
    "two documents": (np.eye(2, 5), [[0, 1, 0], [1, 1, 0]]),
    "one of two without labels": (np.eye(2, 5), [[0, 0, 0], [1, 1, 0]]),
    "all alike": (np.tile([[1, 2, 0, 0, 1]], (50, 1)), [[1, 0, 1]] * 50),
    "all with all labels": (np.random.default_rng(0).random((50, 5)), [[1, 1, 1]] * 50),
    "all empty": (np.zeros((50, 5)), [[1, 0, 0], [0, 1, 0]] * 25),
    "most without labels": (np.random.default_rng(1).random((50, 5)), [[0, 0, 0]] * 47 + [[1, 0, 0]] * 3),
    "one label": (np.random.default_rng(2).random((50, 5)), [[1]] * 50),
}


@pytest.mark.parametrize("params", [{"learners": 2}, {"all_labels": False, "negatives": 1, "optimizer": "adam"}])
@pytest.mark.parametrize("route", ["both", "vote", "labels"])
@pytest.mark.parametrize("name", LITTLE)
def test_little_suffices(name, route, params, tmp_path):
    X, Y = (np.array(table, np.float32) for table in LITTLE[name])
    model = quick(route=route, **params).fit(X, Y)
    top = model.predict_topk(X, k=4)
    assert top.labels.shape == (len(X), 4)
    known = np.flatnonzero(Y.any(axis=0))
    assert np.isin(top.labels[top.labels >= 0], known).all()
    assert (top.labels[:, 0] >= 0).all() or (route == "vote" and not Y.any(axis=1).all())
    assert np.isfinite(top.scores[top.labels >= 0]).all()
    model.save(tmp_path / "model")
    assert same(labelspace.load(tmp_path / "model").predict_topk(X, k=4), top)


@pytest.mark.parametrize("params", [{"batch": 1}, {"dimension": 1}, {"batch": 1, "all_labels": False, "negatives": 1}])
def test_the_smallest_parameters_serve(small, params):
    few = small.rows(range(60))
    model = quick(**params).fit(few.X, few.Y)
    assert np.isfinite(model.predict_topk(few.X, 1).scores).all()


# ---- accuracy


@pytest.mark.parametrize("route", ["both", "vote", "labels"])
@pytest.mark.parametrize("params", [{}, {"all_labels": False, "negatives": 12}, {"clusters": 8}])
def test_planted_labels_are_found_by_either_route(data, route, params):
    train, test = data
    model = quick(route=route, dimension=20, epochs=12, **params).fit(train.X, train.Y)
    assert precision(model, test) > 0.8
    assert precision(model, test, 3) > 2 * precision(Popular().fit(train.X, train.Y), test, 3)


def test_likeness_lays_documents_by_the_labels_they_share(small):
    misses = {}
    for similarity in (0.0, 10.0):
        model = quick(similarity=similarity, epochs=12, dimension=4).fit(
            small.X, small.Y, validation=(small.X, small.Y)
        )
        places = model.documents_[0].points.astype(np.float64)
        r = places * (np.arctanh(np.linalg.norm(places, axis=1)) / np.linalg.norm(places, axis=1))[:, None]
        misses[similarity] = likeness_loss(BALL, r, small.Y.toarray(), 1.0, np)
    assert misses[10.0] < misses[0.0] - 0.04
