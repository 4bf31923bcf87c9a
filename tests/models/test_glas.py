import hashlib
import json

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace.data.synthetic import planted
from labelspace.errors import DataError, ModelError, ParameterError
from labelspace.index import Approximate
from labelspace.models import blend, glas
from labelspace.models.blend import Blend
from labelspace.models.glas import Chosen, Dense, Encoder, Glas, Lesson, Net, Pull
from labelspace.models.network import Network
from labelspace.training.layers import SPREAD, SparseLayer
from labelspace.training.optimizers import Adaptive, Moving

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
        second = Dense(normal(WIDTH, WIDTH), model.weight_normalisation)
        second.offset.value[:], second.length.value[:] = normal(WIDTH), 0.8
    features = SparseLayer(normal(FEATURES, WIDTH), model.weight_normalisation)
    encoder = Encoder(features, second, WIDTH, model.activation == "relu")
    encoder.offset.value[:], encoder.length.value[:] = 0.5 * normal(WIDTH), 1.3
    points = np.full((LABELS, WIDTH + 1), np.nan, np.float32)  # what stands in the last column is the index's
    points[:, :-1] = normal(LABELS, WIDTH)
    points[:, :-1] /= np.linalg.norm(points[:, :-1], axis=1, keepdims=True)
    return Net(encoder, points, Adaptive(normal(LABELS)), Moving(np.array([1.1], np.float32)))


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
    net, lesson = tiny_net(model), Lesson.of(X, Y, model)
    before, drawn, found = weights_of(net), {}, {}
    encoder = net.encoder
    owners = {id(encoder.offset): "c", id(encoder.length): "g", id(net.bias): "b", id(net.log_scale): "log_s"}
    if encoder.second is not None:
        dense = encoder.second
        owners |= {id(dense.rows): "R", id(dense.offset): "c2", id(dense.length): "g2"}

    def record(cls):
        step = cls.step

        def spy(self, gradient, rate, *rest):
            which = rest[0] if cls is Adaptive else slice(None)
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

    record(Moving)
    record(Adaptive)
    monkeypatch.setattr(glas, "descend_unit_rows", label_spy)
    monkeypatch.setattr(glas, "draw", remember("places", glas.draw))
    monkeypatch.setattr(model, "_chosen", remember("chosen", model._chosen), raising=False)
    monkeypatch.setattr(encoder, "forward", remember("trace", encoder.forward), raising=False)
    rows = np.array([4, 0, 2, 6, 1], np.int32)
    near = None if lesson.all_labels else np.random.default_rng(7).choice(lesson.seen, (N, 1))
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


def twin(w, drawn, model, xp):
    """What a step descends on, as the paper has it; ``xp`` is numpy or torch."""
    chosen, trace, true = drawn["chosen"], drawn["trace"], drawn["true"]

    def as_given(array):
        return xp.asarray(np.asarray(array, np.float64))

    def length(rows):
        return xp.sqrt((rows * rows).sum(1))[:, None]

    batch = len(true)
    given = as_given(sp.csr_matrix(trace.given, shape=(batch, FEATURES)).toarray())
    E, V = w["E"], w["V"] / length(w["V"])
    if model.weight_normalisation:
        E = E / xp.sqrt((E * E).sum(0)) * (SPREAD * FEATURES**0.5) * w["g"]
    hidden = given @ E + w["c"]
    if model.activation == "relu":
        hidden = hidden * (hidden > 0)
    kept = (trace.gate > 0) | (trace.first <= 0) if model.activation == "relu" else trace.gate > 0
    hidden = hidden * as_given(kept) / (1 - model.dropout)
    if model.layers == 2:
        R = w["R"] / length(w["R"]) * w["g2"] if model.weight_normalisation else w["R"]
        hidden = hidden @ R.T + w["c2"]
    points = hidden / length(hidden)
    ids = chosen.ids.astype(np.int64)
    z = xp.exp(w["log_s"]) * (points @ V[ids].T) + w["b"][ids]
    marked, labelled = as_given(true[:, ids]), as_given(true.any(axis=1))
    counts = as_given(np.ones(len(ids)) if chosen.weights is None else chosen.weights)
    firsts = np.flatnonzero(np.diff(chosen.ends))
    if model.loss == "bce":
        total = (counts * xp.logaddexp(0 * z, z) - marked * z).sum()
    elif model.loss == "softmax":
        shares = marked / as_given(np.maximum(true.sum(axis=1), 1))[:, None]
        total = (labelled * (xp.log((counts * xp.exp(z)).sum(1)) - (shares * z).sum(1))).sum()
    else:
        total, plain = 0.0, z if xp is np else z.detach().numpy()
        for row in firsts:
            own = z[row, chosen.columns[drawn["places"][row]]]
            wrong = np.flatnonzero(true[row, ids] == 0)
            for i in wrong[np.argsort(-plain[row, wrong])[: model.hardest]]:
                loss = z[row, i] - own + model.margin
                total = total + loss * (loss > 0) / model.hardest
    labels = np.unique(ids[chosen.columns[drawn["places"][firsts]]])
    some = V[labels]
    if model.regulariser == "glas":
        U = as_given(alike(tiny()[1].toarray(), model.similarity)[np.ix_(labels, labels)])
        pull = ((some @ some.T - U) ** 2).sum() / len(labels) ** 2
    elif model.regulariser == "spread_out":
        pull = ((some @ some.T) ** 2).sum() / len(labels) ** 2
    elif model.regulariser == "gravity":
        pull = ((points @ some.T) ** 2).mean()
    else:
        pull = 0.0
    return total / batch + model.strength * pull


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
    {"layers": layers, "activation": activation, "weight_normalisation": normalised}
    for layers in (1, 2)
    for activation in ("relu", "linear")
    for normalised in (False, True)
]
LOSSES = [{"loss": loss, "all_labels": every} for loss in ("bce", "softmax", "margin") for every in (True, False)]
PULLS = [{"regulariser": pull} for pull in ("spread_out", "gravity", "none")]
MEASURES = [{"similarity": measure} for measure in ("geometric", "jaccard", "pmi")]
BOTH = [{"layers": 2, "weight_normalisation": True, "regulariser": "gravity", "loss": "softmax", "all_labels": False}]


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
    if not model.weight_normalisation:
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
