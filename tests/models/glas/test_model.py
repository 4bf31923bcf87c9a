import hashlib
import json

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace.data.synthetic import planted
from labelspace.errors import DataError, ModelError, ParameterError
from labelspace.features.normalize import normalize_rows
from labelspace.index import Approximate
from labelspace.models.blend import model as blend
from labelspace.models.blend.model import Blend
from labelspace.models.glas import model as glas
from labelspace.models.glas.encoder import Encoder
from labelspace.models.glas.model import SampledLabels, Glas, Objective, Net, RegularizerGradient
from labelspace.models.network import Network
from labelspace.training.dense_layers import Dense
from labelspace.training.optimizers import AdagradParameter, AdamParameter
from labelspace.training.sparse_layers import SPREAD, SparseLayer

pytestmark = pytest.mark.slow  # many small trainings

N, FEATURES, LABELS, WIDTH = 7, 9, 17, 6  # of the tiny case
RATES = {"rate": 0.05, "feature_rate": 0.2}


@pytest.fixture(scope="module")
def small():
    """Documents that are learned in a moment."""
    return planted(n=260, d=150, l=30, seed=2)


def quick(**params):
    return Glas(**{"dimension": 16, "epochs": 3, **params})


def net_of(model, *documents, **aids):
    """The net as it is when training ends: a copy of its arrays by name."""
    found = {}
    keep = model._keep

    def spy(net, *rest):
        found.update({key: value.copy() for key, value in net.arrays().items()})
        keep(net, *rest)

    model._keep = spy
    model.fit(*documents, **aids)
    del model._keep
    return found


def digest(folder):
    files = sorted(path for path in folder.iterdir() if path.suffix != ".json")
    return [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


def hits(model, documents, k=1):
    return model.predict_topk(documents.X, k).to_csr(documents.Y.shape[1]).multiply(documents.Y).sum()


# ---- gradients: one step on a tiny case, against a float64 twin of the loss


def tiny(seed=4):
    """Documents of which one has no label and two labels have no document."""
    rng = np.random.default_rng(seed)
    X = rng.random((N, FEATURES)) * (rng.random((N, FEATURES)) < 0.7)
    X[:, 0] = 1.0  # no document is empty
    Y = rng.random((N, LABELS)) < 0.2
    Y[5] = True  # a document that is not in the batch
    Y[:, [3, 8]] = False
    Y[2] = False
    Y[4, 5] = True
    return sp.csr_matrix(X, dtype=np.float32), sp.csr_matrix(Y, dtype=np.float32)


def tiny_net(model, seed=5):
    """A net with every weight away from where it begins."""
    rng = np.random.default_rng(seed)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    second = None
    if model.layers == 2:
        second = Dense(normal(WIDTH, WIDTH), model.weight_normalization)
        second.offset.value[:], second.length.value[:] = normal(WIDTH), 0.8
    features = SparseLayer(normal(FEATURES, WIDTH), model.weight_normalization)
    encoder = Encoder(features, second, WIDTH, model.activation == "relu")
    encoder.offset.value[:], encoder.length.value[:] = 0.5 * normal(WIDTH), 1.3
    points = np.full((LABELS, WIDTH + 1), np.nan, np.float32)  # what stands in the last column is the index's
    points[:, :-1] = normal(LABELS, WIDTH)
    points[:, :-1] /= np.linalg.norm(points[:, :-1], axis=1, keepdims=True)
    return Net(encoder, points, AdagradParameter(normal(LABELS)), AdamParameter(np.array([1.1], np.float32)))


def weights_of(net):
    """Every weight of a net in float64, by the twin's names."""
    encoder = net.encoder
    found = {"E": encoder.features.vectors, "c": encoder.offset.value, "g": encoder.length.value}
    if encoder.second is not None:
        dense = encoder.second
        found |= {"R": dense.rows.value, "c2": dense.offset.value, "g2": dense.length.value}
    found |= {"V": net.points[:, :-1], "b": net.bias.value, "log_s": net.log_scale.value}
    return {key: value.astype(np.float64) for key, value in found.items()}


def one_step(model, monkeypatch):
    """Run one step of training; the weights before, what was drawn, and the gradients of every weight."""
    monkeypatch.setattr(glas, "LABEL_BLOCK", 4)  # blocks that do not divide the labels
    monkeypatch.setattr(glas, "ROW_BLOCK", 3)
    X, Y = tiny()
    net, lesson = tiny_net(model), Objective.of(X, Y, model)
    before, drawn, found = weights_of(net), {}, {}
    encoder = net.encoder
    owners = {id(encoder.offset): "c", id(encoder.length): "g", id(net.bias): "b", id(net.log_scale): "log_s"}
    if encoder.second is not None:
        dense = encoder.second
        owners |= {id(dense.rows): "R", id(dense.offset): "c2", id(dense.length): "g2"}

    def record(cls):
        step = cls.step

        def spy(self, gradient, rate, *rest):
            which = rest[0] if cls is AdagradParameter else slice(None)
            found.setdefault(owners[id(self)], np.zeros(self.value.shape))[which] = gradient
            step(self, gradient, rate, *rest)

        monkeypatch.setattr(cls, "step", spy)

    def label_spy(gradient, ids, start, stop, *rest):
        found.setdefault("V", np.zeros((LABELS, WIDTH)))[ids[start:stop]] = gradient

    def remember(name, function):
        def spy(*args):
            drawn[name] = function(*args)
            return drawn[name]

        return spy

    record(AdamParameter)
    record(AdagradParameter)
    monkeypatch.setattr(glas, "descend_unit_rows", label_spy)
    monkeypatch.setattr(glas, "draw", remember("places", glas.draw))
    monkeypatch.setattr(model, "_chosen", remember("chosen", model._chosen), raising=False)
    monkeypatch.setattr(encoder, "forward", remember("trace", encoder.forward), raising=False)
    rows = np.array([4, 0, 2, 6, 1], np.int32)
    near = None if lesson.all_labels else np.random.default_rng(7).choice(lesson.labels, (N, 1))
    model._step(net, lesson, rows, near, 1.0, np.random.default_rng(6))
    moved = encoder.features.vectors - before["E"]  # Adagrad's first step: its memory is the gradient's mean square
    found["E"] = -moved * np.sqrt(encoder.features.squares)[:, None] / model.feature_rate
    return before, drawn | {"true": Y[rows].toarray()}, found


def alike(Y, measure):
    """U, label by label."""
    n, both = len(Y), Y.T @ Y
    U = np.eye(Y.shape[1])
    for i, j in np.argwhere(both > 0):
        one, other, shared = both[i, i], both[j, j], both[i, j]
        U[i, j] = {
            "arithmetic": (shared / one + shared / other) / 2,
            "geometric": np.sqrt(shared / one * shared / other),
            "jaccard": shared / (one + other - shared),
            "pmi": max(np.log(shared * n / (one * other)) / -np.log(shared / n), 0) if i != j else 1,
        }[measure]
    return U


def as_given(array, xp):
    return xp.asarray(np.asarray(array, np.float64))


def length(rows, xp):
    return xp.sqrt((rows * rows).sum(1))[:, None]


def twin(w, drawn, model, xp):
    """What a step descends on, as the paper has it; ``xp`` is numpy or torch."""
    chosen = drawn["chosen"]
    ids = chosen.ids.astype(np.int64)
    points, V = twin_points(w, drawn["trace"], model, xp), w["V"] / length(w["V"], xp)
    z = xp.exp(w["log_s"]) * (points @ V[ids].T) + w["b"][ids]
    labeled = np.diff(chosen.ends) > 0
    labels = np.unique(ids[chosen.columns[drawn["places"][labeled]]])
    loss = {"bce": twin_bce, "softmax": twin_softmax, "margin": twin_margin}[model.loss](z, drawn, model, xp)
    return loss / len(points) + model.strength * twin_pull(points, V[labels], labels, model, xp)


def twin_points(w, trace, model, xp):
    E = w["E"]
    if model.weight_normalization:
        E = E / xp.sqrt((E * E).sum(0)) * (SPREAD * FEATURES**0.5) * w["g"]
    given = sp.csr_matrix(trace.given, shape=(len(trace.points), FEATURES)).toarray()
    hidden = as_given(given, xp) @ E + w["c"]
    if model.activation == "relu":
        hidden = hidden * (hidden > 0)
    hidden = hidden * as_given(trace.gate > 0, xp) / (1 - model.dropout)  # which units were dropped was drawn
    if model.layers == 2:
        R = w["R"] / length(w["R"], xp) * w["g2"] if model.weight_normalization else w["R"]
        hidden = hidden @ R.T + w["c2"]
    return hidden / length(hidden, xp)


def marked(drawn):
    return drawn["true"][:, drawn["chosen"].ids]


def counts(drawn, xp):
    """How many labels each chosen one stands for."""
    chosen = drawn["chosen"]
    return as_given(np.ones(len(chosen.ids)) if chosen.weights is None else chosen.weights, xp)


def twin_bce(z, drawn, model, xp):
    return (counts(drawn, xp) * xp.logaddexp(0 * z, z) - as_given(marked(drawn), xp) * z).sum()


def twin_softmax(z, drawn, model, xp):
    """Rows without labels have nothing to say."""
    some = np.flatnonzero(drawn["true"].any(axis=1))
    shares = as_given(marked(drawn)[some] / drawn["true"][some].sum(axis=1, keepdims=True), xp)
    return (xp.log((counts(drawn, xp) * xp.exp(z[some])).sum(1)) - (shares * z[some]).sum(1)).sum()


def twin_margin(z, drawn, model, xp):
    """Eq. 1 for one true label a document, and the hardest of the wrong ones."""
    total, plain = 0.0, z if xp is np else z.detach().numpy()
    for row in np.flatnonzero(drawn["true"].any(axis=1)):
        own = z[row, drawn["chosen"].columns[drawn["places"][row]]]
        wrong = np.flatnonzero(marked(drawn)[row] == 0)
        for i in wrong[np.argsort(-plain[row, wrong])[: model.hardest]]:
            loss = z[row, i] - own + model.margin
            total = total + loss * (loss > 0) / model.hardest
    return total


def twin_pull(points, V, labels, model, xp):
    """Eq. 3, eq. 2, or the mean square of the products of documents and labels."""
    if model.regularizer == "glas":
        U = alike(tiny()[1].toarray(), model.similarity)[np.ix_(labels, labels)]
        return ((V @ V.T - as_given(U, xp)) ** 2).sum() / len(labels) ** 2
    if model.regularizer == "spread_out":
        return ((V @ V.T) ** 2).sum() / len(labels) ** 2
    return ((points @ V.T) ** 2).mean() if model.regularizer == "gravity" else 0.0


def by_differences(w, drawn, model, step=1e-6, places=12):
    """Central differences at some places of each weight, nan at the others."""
    slopes = {key: np.full(value.shape, np.nan) for key, value in w.items()}
    for key, value in w.items():
        for place in np.random.default_rng(8).permutation(list(np.ndindex(value.shape)))[:places]:
            ends = []
            for sign in (1, -1):
                moved = value.copy()
                moved[tuple(place)] += sign * step
                ends.append(float(np.sum(twin({**w, key: moved}, drawn, model, np))))
            slopes[key][tuple(place)] = (ends[0] - ends[1]) / (2 * step)
    return slopes


def by_torch(w, drawn, model):
    torch = pytest.importorskip("torch")
    given = {key: torch.tensor(value, requires_grad=True) for key, value in w.items()}
    twin(given, drawn, model, torch).sum().backward()
    return {key: (value * 0 if value.grad is None else value.grad).detach().numpy() for key, value in given.items()}


def across(gradient, vectors):
    """The part of each row of a gradient that is across the row of some vectors."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return gradient - (gradient * units).sum(axis=1, keepdims=True) * units


PHI = [
    {"layers": layers, "activation": activation, "weight_normalization": normalized}
    for layers in (1, 2)
    for activation in ("relu", "linear")
    for normalized in (False, True)
]
LOSSES = [{"loss": loss, "all_labels": every} for loss in ("bce", "softmax", "margin") for every in (True, False)]
PULLS = [{"regularizer": pull} for pull in ("spread_out", "gravity", "none")]
MEASURES = [{"similarity": measure} for measure in ("geometric", "jaccard", "pmi")]
BOTH = [{"layers": 2, "weight_normalization": True, "regularizer": "gravity", "loss": "softmax", "all_labels": False}]


@pytest.mark.parametrize("way", [by_torch, by_differences])
@pytest.mark.parametrize(
    "params", PHI + LOSSES + PULLS + MEASURES + BOTH, ids=lambda params: "-".join(map(str, params.values()))
)
def test_gradients_are_those_of_the_paper_s_loss(monkeypatch, params, way):
    model = Glas(
        **{"dimension": WIDTH, "input_dropout": 0.1, "dropout": 0.3, "strength": 3.0, "hardest": 3, "negatives": 4}
        | RATES
        | params
    )
    w, drawn, ours = one_step(model, monkeypatch)
    theirs = way(w, drawn, model)
    if not model.weight_normalization:
        theirs = {key: value for key, value in theirs.items() if key not in ("g", "g2")}
    else:
        ours["E"] = across(ours["E"].T, w["E"].T).T  # the rest changes the length alone
    if model.loss == "margin":
        theirs = {key: value for key, value in theirs.items() if key != "log_s"}
    ours["V"] = across(ours["V"], w["V"])
    assert ours.keys() == theirs.keys()
    for key, slope in theirs.items():
        known = np.isfinite(slope)
        large = np.abs(slope[known]).max()
        assert large > 1e-3, f"{key} is tested by something"
        assert np.allclose(ours[key][known], slope[known], rtol=1e-3, atol=1e-4 * large), key
    if model.all_labels is False:
        assert drawn["chosen"].weights.max() > 1, "some labels stand for others"


# ---- a step


def learned(model, data):
    """A net after one epoch, with its lesson."""
    X, Y = data.X.copy(), data.Y
    net, lesson = model._begin(X, Y), Objective.of(X, Y, model)
    model._epoch(net, lesson, 0, lambda *news: None)
    return net, lesson


@pytest.mark.parametrize("loss", ["bce", "softmax", "margin"])
@pytest.mark.parametrize("every", [True, False])
def test_label_points_keep_length_1(small, loss, every):
    net, _ = learned(quick(loss=loss, all_labels=every, negatives=8, rate=0.5), small)
    assert np.allclose(np.linalg.norm(net.points[:, :-1], axis=1), 1, atol=1e-5)


def test_a_step_touches_only_the_features_and_labels_it_names(small):
    model = quick(all_labels=False, negatives=3, layers=2, weight_normalization=True)
    net, lesson = learned(model, small)
    net.arm()
    before = {key: value.copy() for key, value in net.arrays().items()}
    rows = np.array([3, 200], np.int32)
    chosen = []
    model._chosen = lambda *args: chosen.append(Glas._chosen(model, *args)) or chosen[0]
    model._step(net, lesson, rows, None, 0.5, np.random.default_rng(0))
    after = net.arrays()
    others = np.setdiff1d(np.arange(30), chosen[0].ids)
    assert 0 < len(others) < 30
    for key in ("points", "squares", "bias", "bias_square"):
        assert np.array_equal(after[key][others], before[key][others])
        assert not np.array_equal(after[key], before[key])
    named = np.unique(lesson.X[rows].indices)
    moved = np.flatnonzero((after["vectors"] != before["vectors"]).any(axis=1))
    assert 0 < len(moved) <= len(named)
    assert np.isin(moved, named).all()
    assert np.array_equal(np.flatnonzero(after["vector_squares"] != before["vector_squares"]), moved)
    assert np.array_equal(after["points"][:, -1], before["points"][:, -1]), "the index's column is not learned"


def test_a_drawn_label_is_one_of_the_document_s_each_as_likely():
    ends = np.array([0, 2, 2, 5], np.int32)
    drawn = np.array([glas.draw(ends, np.random.default_rng(seed)) for seed in range(3000)])
    assert (drawn[:, 1] == -1).all()
    assert set(drawn[:, 0]) == {0, 1}
    assert np.allclose(np.bincount(drawn[:, 2])[2:] / 3000, 1 / 3, atol=0.04)


def test_rates_fall_to_nothing_in_a_straight_line(small):
    model, left = quick(epochs=2), []
    model._step = lambda net, lesson, rows, near, share, rng: left.append(share)
    model.fit(small.X, small.Y)
    assert np.allclose(left, 1 - np.arange(len(left)) / len(left))


def test_every_epoch_has_all_documents_in_an_order_of_its_own(small):
    model, seen = quick(epochs=2), []
    model._step = lambda net, lesson, rows, *rest: seen.append(rows)
    model.fit(small.X, small.Y)
    one, other = np.concatenate(seen[: len(seen) // 2]), np.concatenate(seen[len(seen) // 2 :])
    assert sorted(one) == sorted(other) == list(range(260))
    assert not np.array_equal(one, other)


def test_blocks_and_threads_change_nothing_but_time(small, monkeypatch):
    nets = []
    monkeypatch.setattr(glas, "LABEL_BLOCK", 7)
    monkeypatch.setattr(glas, "ROW_BLOCK", 4)
    for threads in ("1", "3"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        model = quick(all_labels=False, negatives=8, layers=2, weight_normalization=True)
        nets.append(net_of(model, small.X, small.Y))
    assert all(np.array_equal(nets[0][key], nets[1][key]) for key in nets[0])


# ---- labels that are drawn


def test_labels_drawn_by_chance_give_the_whole_gradient_on_average(small):
    model = quick(all_labels=False, negatives=6, regularizer="none")
    net, lesson = learned(model, small)
    rows = np.arange(0, 40, 8, dtype=np.int32)
    true, some = lesson.Y[rows], lesson.X[rows]
    assert len(lesson.labels) == 30
    points = net.encoder.points((some.data, some.indices, some.indptr))

    def gradient(chosen):
        errors = net.scores(points, chosen)
        model._to_errors(errors, chosen, np.zeros(0, np.int64))
        return net.descend_labels(
            errors, points, chosen, RegularizerGradient(np.zeros(0, np.int32), np.zeros((0, 16))), 0.0
        )

    whole = gradient(SampledLabels(np.arange(30, dtype=np.int32), true.indices, true.indptr))
    near = np.tile(np.array([4, 7, -1], np.int32), (lesson.X.shape[0], 1))
    rng = np.random.default_rng(1)
    draws = np.array([gradient(model._chosen(lesson, true, rows, near, rng)) for _ in range(600)])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - whole) < 5 * error + 1e-6).all()
    assert draws.std() > 0.05 * np.abs(whole).mean(), "draws differ"


def test_hard_labels_are_the_nearest_and_learned_on_with_a_weight_of_one(small, monkeypatch):
    monkeypatch.setattr(glas, "MINING_EFFORT", 1000)  # every list
    model = quick(all_labels=False, negatives=2, hard=4)
    net, lesson = learned(model, small)
    near = model._nearest(net, lesson, lambda *news: None)
    X = lesson.X
    points = net.encoder.points((X.data, X.indices, X.indptr))
    scores = net.scores(
        points, SampledLabels(np.arange(30, dtype=np.int32), np.zeros(0, np.int32), np.zeros(1, np.int32))
    )
    best = np.argsort(-scores, axis=1)[:, :4]
    found = np.mean([len(set(one) & set(other)) for one, other in zip(near, best, strict=True)]) / 4
    assert found > 0.95, "but for the rounding of the index"
    rows = np.array([1, 9], np.int32)
    chosen = model._chosen(lesson, lesson.Y[rows], rows, near, np.random.default_rng(0))
    assert np.isin(near[rows], chosen.ids[: chosen.n_sure]).all()
    assert (chosen.weights[: chosen.n_sure] == 1).all()
    assert len(set(chosen.ids)) == len(chosen.ids)
    assert np.array_equal(chosen.ids[chosen.columns], lesson.Y[rows].indices)


def test_hard_labels_are_looked_up_from_the_second_epoch_on(small, monkeypatch):
    built = []

    def build(*args, **settings):
        built.append(args[0].shape)
        return Approximate(*args, **settings)

    monkeypatch.setattr(glas, "Approximate", build)
    quick(all_labels=False, epochs=3).fit(small.X, small.Y)
    assert built == [(30, 17)] * 2
    quick(all_labels=False, epochs=3, hard=0).fit(small.X, small.Y)
    quick(all_labels=True, epochs=3).fit(small.X, small.Y)
    assert len(built) == 2


@pytest.mark.parametrize("loss", ["bce", "softmax"])
def test_few_drawn_labels_teach_about_as_well_as_all(data, loss):
    train, test = data
    settings = {"dimension": 32, "epochs": 8, "loss": loss}
    every, some = (
        hits(Glas(all_labels=every, negatives=6, hard=4, **settings).fit(train.X, train.Y), test)
        for every in (True, False)
    )
    assert every > 0.85 * len(test)
    assert some > every - 0.04 * len(test)


def test_the_number_of_labels_decides_whether_all_are_learned_on(small, monkeypatch):
    assert Objective.of(small.X, small.Y, Glas()).all_labels
    monkeypatch.setattr(glas, "ALL_LABELS", 29)
    assert not Objective.of(small.X, small.Y, Glas()).all_labels
    assert Objective.of(small.X, small.Y, Glas(all_labels=True)).all_labels


# ---- the regularizer


def together():
    """Labels in pairs that share every document, and documents that show nothing of it."""
    rng = np.random.default_rng(9)
    Y = np.kron(rng.random((200, 6)) < 0.3, [1, 1])
    Y[0] = 1
    return sp.csr_matrix(rng.random((200, 30)), dtype=np.float32), sp.csr_matrix(Y, dtype=np.float32)


@pytest.mark.parametrize("every", [True, False])
def test_the_regulariser_pulls_labels_to_what_their_documents_share(every):
    X, Y = together()
    U, apart = alike(Y.toarray(), "arithmetic"), ~np.eye(12, dtype=bool)
    misses = {}
    for regularizer in ("glas", "none"):
        V = net_of(quick(regularizer=regularizer, all_labels=every, epochs=12), X, Y)["points"][:, :-1]
        misses[regularizer] = np.abs(V @ V.T - U)[apart].mean()
    assert misses["glas"] < 0.5 * misses["none"]


def test_spread_out_labels_stand_across_each_other():
    X, Y = together()
    V = net_of(quick(regularizer="spread_out", epochs=12), X, Y)["points"][:, :-1]
    assert np.abs(V @ V.T)[~np.eye(12, dtype=bool)].mean() < 0.1


# ---- early stopping


def watched(model, monkeypatch, *documents, **aids):
    """The net at the end, and its accuracy and arrays after each epoch."""
    told = []
    measure = Net.accuracy

    def spy(net, *held):
        told.append((measure(net, *held), {key: value.copy() for key, value in net.arrays().items()}, held))
        return told[-1][0]

    monkeypatch.setattr(Net, "accuracy", spy)
    return net_of(model, *documents, **aids), told


def test_training_ends_where_accuracy_stalls_and_the_best_epoch_is_kept(monkeypatch):
    X, Y = together()  # nothing can be learned of them
    net, told = watched(quick(epochs=40, patience=2), monkeypatch, X, Y)
    accuracies = [accuracy for accuracy, *_ in told]
    best = int(np.argmax(accuracies))
    assert len(told) == best + 1 + 2 < 40
    for key, value in told[best][1].items():
        assert np.array_equal(net[key], value), key
    assert not np.array_equal(net["vectors"], told[-1][1]["vectors"])


def test_documents_to_stop_by_are_parted_from_train_where_none_are_given(small, monkeypatch):
    sizes = []
    make = Objective.of
    monkeypatch.setattr(Objective, "of", lambda X, Y, model: sizes.append(X.shape[0]) or make(X, Y, model))
    _, told = watched(quick(patience=1), monkeypatch, small.X, small.Y)
    assert told[0][2][0].shape[0] == 26
    assert (told[0][2][0] != normalize_rows(small.X)[:26]).nnz, "by chance, not the first"
    other = small.rows(range(50))
    _, told = watched(quick(patience=1), monkeypatch, small.X, small.Y, validation=(other.X, other.Y))
    assert told[0][2][0].shape[0] == 50
    quick().fit(small.X, small.Y, validation=(other.X, other.Y))
    assert sizes == [234, 260, 260]


def test_accuracy_is_the_share_of_right_labels_among_five(small):
    net, lesson = learned(quick(), small)
    points = net.encoder.points((lesson.X.data, lesson.X.indices, lesson.X.indptr))
    z = net.scale * points @ net.points[:, :-1].T + net.bias.value
    best, Y = np.argsort(-z, axis=1)[:, :5], lesson.Y.toarray()
    Y[3], Y[7] = 0, 1  # without labels: not counted; with more than five
    labeled = np.flatnonzero(Y.any(axis=1))
    expected = [Y[i, best[i]].sum() / min(Y[i].sum(), 5) for i in labeled]
    assert np.isclose(net.accuracy(lesson.X, sp.csr_matrix(Y), np.arange(30)), np.mean(expected))


def test_too_few_documents_to_stop_by_are_one_clear_line(small):
    few = small.rows(range(4))
    with pytest.raises(DataError, match="early stopping needs some documents .* but there are 4 in all; give validat"):
        quick(patience=1).fit(few.X, few.Y)
    quick(patience=1, epochs=1).fit(few.X, few.Y, validation=(small.X, small.Y))


# ---- checkpoints


def cut_off(model, at, *documents, **aids):
    """Fit until a progress of ``at`` batches is told."""

    def progress(step, done, total):
        if step == "batches" and done == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(*documents, progress=progress, **aids)
    assert not model.is_fitted


@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("patience", [None, 3])
def test_a_training_that_was_cut_off_ends_in_the_same_bytes(small, tmp_path, every, patience):
    model = quick(
        layers=2, weight_normalization=True, all_labels=every, negatives=6, hard=2, epochs=4, patience=patience
    )
    model.fit(small.X, small.Y).save(tmp_path / "whole")
    for batches in (25, 49):  # epochs have 16: within the second and just after the third
        cut_off(model, batches, small.X, small.Y, checkpoint=tmp_path / "kept")
    told = []
    aids = {"checkpoint": tmp_path / "kept", "progress": lambda *news: told.append(news)}
    model.fit(small.X, small.Y, **aids).save(tmp_path / "parts")
    assert next(done for step, done, _ in told if step == "batches") == 49
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")
    told.clear()
    model.fit(small.X, small.Y, **aids).save(tmp_path / "again")
    assert not [news for news in told if news[0] == "batches"], "all was done"
    assert digest(tmp_path / "again") == digest(tmp_path / "whole")


def test_a_checkpoint_of_another_training_is_refused(small, tmp_path):
    kept = {"checkpoint": tmp_path}
    quick(epochs=1).fit(small.X, small.Y, **kept)
    X, Y = small.X.copy(), small.Y.copy()
    X.data[5] += 0.5
    Y = sp.csr_matrix(np.roll(Y.toarray(), 1, axis=1))
    refused = "^a checkpoint must be of the same data and parameters, but .* is of others; delete it, or give another"
    for model, *documents in (
        (quick(epochs=1), X, small.Y),
        (quick(epochs=1), small.X, Y),
        (quick(epochs=2), small.X, small.Y),
        (quick(epochs=1, rate=0.1), small.X, small.Y),
    ):
        with pytest.raises(ModelError, match=refused):
            model.fit(*documents, **kept)


def test_a_truncated_checkpoint_is_refused(small, tmp_path):
    quick(epochs=1).fit(small.X, small.Y, checkpoint=tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ModelError, match="must be a checkpoint of this version, but cannot be read .*delete it") as e:
        quick(epochs=1).fit(small.X, small.Y, checkpoint=tmp_path)
    assert "\n" not in str(e.value)


def test_a_method_without_checkpoints_says_so(small, tmp_path):
    with pytest.raises(ParameterError, match="network keeps no checkpoints, but was given '.*'; leave it out"):
        Network().fit(small.X, small.Y, checkpoint=tmp_path)


# ---- parameters, prediction and disk


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dimension", 8), ("dimension", 1025), ("dimension", 64.0), ("layers", 3), ("activation", "tanh"),
        ("weight_normalization", "yes"), ("loss", "x"), ("margin", 0), ("hardest", 0), ("regularizer", "l2"),
        ("similarity", "cosine"), ("strength", -1), ("scale", 0), ("train_scale", None), ("input_dropout", 1),
        ("dropout", 1), ("dropout", -0.1), ("epochs", 0), ("batch", 0), ("rate", 0), ("feature_rate", float("nan")),
        ("all_labels", "some"), ("negatives", 0), ("hard", -1), ("patience", 0), ("index", "flat"),
        ("recall_target", 0), ("recall_target", 1.5), ("seed", -1),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_by_rule(small, key, value):
    with pytest.raises(ParameterError, match=f"^{key} of glas must be .*, but is .*; set it so$"):
        Glas(**{key: value}).fit(small.X, small.Y)


def test_scores_are_those_of_the_formula(small):
    model = quick(epochs=2)
    net = net_of(model, small.X, small.Y)
    top = model.predict_topk(small.X[:40], 30)
    X = small.X[:40].toarray() / np.linalg.norm(small.X[:40].toarray(), axis=1, keepdims=True)
    hidden = np.maximum(X @ net["vectors"] + net["offset"], 0)
    points = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
    z = np.exp(net["log_scale"]) * points @ net["points"][:, :-1].T + net["bias"]
    expected = 1 / (1 + np.exp(-z))
    assert np.allclose(top.scores, np.take_along_axis(expected, top.labels, axis=1), atol=0.02)


@pytest.mark.parametrize("every", [True, False])
def test_a_label_without_documents_is_never_suggested(small, every):
    Y = small.Y.tolil()
    Y[:, 11] = 0
    model = quick(all_labels=every).fit(small.X, Y.tocsr())
    top = model.predict_topk(small.X, 30)
    assert 11 not in top.labels
    assert (top.labels[:, -1] == -1).all()


def same(one, other):
    return np.array_equal(one.labels, other.labels) and np.array_equal(one.scores, other.scores)


def test_a_saved_index_of_faiss_comes_back(tmp_path):
    many = planted(n=400, d=300, l=300, seed=3)
    model = quick(index="ivf", recall_target=0.2).fit(many.X, many.Y, labels=many.labels)
    assert model.index_.kind == "ivf"
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / "index.faiss").is_file()
    report = json.loads((tmp_path / "model" / "model.json").read_text())["index"]["report"]
    assert report == model.index_.report
    assert report["kind"] == "ivf"
    assert report["recall"] >= report["recall_target"] == 0.2
    loaded = labelspace.load(tmp_path / "model")
    assert loaded.index_.kind == "ivf"
    assert same(loaded.predict_topk(many.X, 5), model.predict_topk(many.X, 5))
    loaded.save(tmp_path / "again")
    assert digest(tmp_path / "again") == digest(tmp_path / "model")


def test_an_index_is_chosen_by_documents_as_they_will_be_asked(small, monkeypatch):
    given, choose = {}, glas.index.choose

    def spy(vectors, ids, queries, **settings):
        given.update(vectors=vectors.copy(), ids=ids, queries=queries)
        return choose(vectors, ids, queries, **settings)

    monkeypatch.setattr(glas.index, "choose", spy)
    model = quick(epochs=1).fit(small.X, small.Y)
    asked = given["queries"]
    assert np.allclose(np.linalg.norm(asked[:, :-1], axis=1), 1, atol=1e-5)
    assert (asked[:, -1] == np.float32(model.bias_scale_)).all()
    assert np.allclose(np.linalg.norm(given["vectors"][:, :-1], axis=1), model.scale_, rtol=1e-5)
    assert given["ids"].tolist() == list(range(30))


def test_a_blend_carries_the_index_of_its_member(tmp_path, monkeypatch):
    settings = {"dimension": 16, "epochs": 2, "index": "ivf", "recall_target": 0.2}
    monkeypatch.setitem(blend.SETTINGS, "glas", settings)
    many = planted(n=300, d=300, l=200, seed=3)
    model = Blend(members="neighbors,glas", folds=2, rounds=5).fit(many.X, many.Y, labels=many.labels)
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / "member1.index.faiss").is_file()
    values = json.loads((tmp_path / "model" / "model.json").read_text())
    assert values["members"][1]["index"]["report"]["kind"] == "ivf"
    assert same(labelspace.load(tmp_path / "model").predict_topk(many.X, 5), model.predict_topk(many.X, 5))


@pytest.mark.parametrize("params", PHI, ids=lambda params: "-".join(map(str, params.values())))
def test_documents_are_where_training_had_them(small, params):
    model, points = quick(**params), {}
    keep = model._keep

    def spy(net, X, *rest):
        points.update(training=net.encoder.points((X.data, X.indices, X.indptr)))
        keep(net, X, *rest)

    model._keep = spy
    model.fit(small.X, small.Y)
    lengths = np.linalg.norm(small.X.toarray(), axis=1)
    found = model._points(sp.csr_matrix(sp.diags(1 / lengths) @ small.X, dtype=np.float32))
    assert np.allclose(found, points["training"], atol=0.01), "but for the rounding to bytes"


@pytest.mark.parametrize("params", PHI, ids=lambda params: "-".join(map(str, params.values())))
def test_a_document_without_features_moves_no_offset(monkeypatch, params):
    model = quick(input_dropout=0.0, **params)
    X = sp.csr_matrix((4, 9), dtype=np.float32)
    Y = sp.csr_matrix(np.eye(4, 5), dtype=np.float32)
    net, steps = model._begin(X, Y), []
    monkeypatch.setattr(AdamParameter, "step", lambda self, gradient, *rest: steps.append(np.abs(gradient).max()))
    model._step(net, Objective.of(X, Y, model), np.arange(4, dtype=np.int32), None, 1.0, np.random.default_rng(0))
    assert max(steps) == 0, "a point in no direction has none to turn to"


def test_a_checkpoint_of_other_validation_documents_is_refused(small, tmp_path):
    model, one, other = quick(epochs=2, patience=1), small.rows(range(50)), small.rows(range(50, 100))
    model.fit(small.X, small.Y, validation=(one.X, one.Y), checkpoint=tmp_path)
    with pytest.raises(ModelError, match="^a checkpoint must be of the same data and parameters"):
        model.fit(small.X, small.Y, validation=(other.X, other.Y), checkpoint=tmp_path)


def test_numbers_of_numpy_are_parameters_as_any_other(small):
    one, other = (net_of(quick(epochs=kind(2), seed=kind(3)), small.X, small.Y) for kind in (int, np.int64))
    assert np.array_equal(one["points"], other["points"])


def test_validation_documents_of_other_features_or_without_their_labels_are_refused(small):
    model, some = quick(patience=1), small.rows(range(50))
    with pytest.raises(DataError, match="validation documents must have the 150 features of X, but have 149; give"):
        model.fit(small.X, small.Y, validation=(some.X[:, :-1], some.Y))
    with pytest.raises(DataError, match="validation must have one row a document, but has 49 and 50 rows; give the"):
        model.fit(small.X, small.Y, validation=(some.X[1:], some.Y))


@pytest.mark.parametrize("every", [True, False])
def test_training_stops_by_the_labels_that_are_suggested(small, monkeypatch, every):
    Y = small.Y.tolil()
    Y[:, 11] = 0
    found, search = [], glas.index.Exact.search

    def spy(self, *asked):
        found.append(search(self, *asked).labels)
        return search(self, *asked)

    monkeypatch.setattr(glas.index.Exact, "search", spy)
    model = quick(patience=1, all_labels=every, loss="margin", epochs=2)
    model.fit(small.X, Y.tocsr(), validation=(small.X, small.Y))
    assert len(found) == 2
    assert not any((labels == 11).any() for labels in found), "it has no training document"


def test_validation_documents_of_unknown_labels_alone_are_as_none(small):
    known, unknown = small.Y[:, :20], small.Y.toarray()
    unknown[:, :20] = 0
    assert unknown.any()
    one = net_of(quick(patience=1), small.X, known, validation=(small.X, unknown))
    other = net_of(quick(patience=1), small.X, known)
    assert np.array_equal(one["points"], other["points"])
