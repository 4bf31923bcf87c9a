import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace.errors import DataError, NotFittedError, ParameterError
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.quantize import quantize_int8
from labelspace.models.neuralxc import model as neuralxc
from labelspace.models.neuralxc.model import NeuralXC, Objective
from labelspace.models.popular import Popular
from labelspace.training import negative_sampling as negatives
from labelspace.training import output_layer as output
from labelspace.training.autoencoder import DECODER_SHARE, TrainingPhase
from labelspace.training.dense_layers import ACTIVATIONS
from labelspace.training.losses import log_odds
from labelspace.training.negative_sampling import SampledLabels
from labelspace.training.optimizers import AdamParameter

pytestmark = pytest.mark.slow  # many small trainings

SMALL = {"input_layers": 16, "output_layers": 16, "epochs": 1}
N, FEATURES, LABELS = 6, 9, 7
STACKS = ("phi_i", "f", "phi_o", "psi_o", "psi_i")
DEEP = {"input_layers": "8,5", "output_layers": "6,5,4", "regressor": "7", "activation": "tanh", "input_code": "elu"}
WRONG = ["a", "0", "64,,32", "64,", ",", "-3", "1.5", "1e3", -1, 0, 1.5, True, None, 2**20, ""]


def hits(model, documents, k):
    return model.predict_topk(documents.X, k).to_csr(documents.Y.shape[1]).multiply(documents.Y).sum()


@pytest.fixture
def small(data):
    return data[0].rows(range(200))


def test_it_beats_the_most_frequent_labels(data):
    train, test = data
    ours, theirs = (hits(model.fit(train.X, train.Y), test, 3) for model in (NeuralXC(), Popular()))
    assert ours > 2 * theirs


@pytest.fixture(name="tiny")
def tiny_data():
    rng = np.random.default_rng(3)
    X = sp.random(N, FEATURES, 0.5, "csr", np.float32, rng=rng)
    Y = (rng.random((N, LABELS)) < 0.4).astype(np.float32)
    Y[2] = 0  # a document without labels
    return normalize_rows(X), sp.csr_matrix(Y)


def parts_of(net):
    """Every table of a net by name: what Adam moves, and the rows that Adagrad moves."""
    stacks = dict(zip(STACKS, (net.phi_i.stack, net.f, net.phi_o.stack, net.psi_o, net.psi_i.stack), strict=True))
    dense = {
        f"{name}{at}{kind}": getattr(layer, kind)
        for name, stack in stacks.items()
        for at, layer in enumerate(stack.layers)
        for kind in ("rows", "offset")
    }
    dense |= {"phi_i": net.phi_i.offset, "phi_o": net.phi_o.offset}
    rows = {"E_i": net.phi_i.features, "E_o": net.phi_o.features, "D_i": net.psi_i.features}
    if hasattr(net.output, "rows"):
        rows["W"] = net.output.rows
    else:
        dense |= {"W": net.output.weights, "b": net.output.bias}
    return dense, rows


def copies(net):
    dense, rows = parts_of(net)
    return {
        **{key: part.value.copy() for key, part in dense.items()},
        **{key: part.vectors.copy() for key, part in rows.items()},
    }


def eq1(torch, X, Y, w, model, phase, gate):
    """The loss of eq. 1 in torch, with the net's tables as tensors."""
    acts = {"relu": torch.relu, "tanh": torch.tanh, "elu": torch.nn.functional.elu, "linear": lambda z: z}
    inner = acts[model.activation]

    def through(values, name, depth, last):
        for at in range(depth):
            values = values @ w[f"{name}{at}rows"].T + w[f"{name}{at}offset"]
            values = (last if at == depth - 1 else inner)(values)
        return values

    depths = {name: sum(f"{name}{at}rows" in w for at in range(5)) for name in STACKS}
    x, y = (torch.tensor(M.toarray(), dtype=torch.float64) for M in (X, Y))

    def encode(values, name, table, last, gate):
        first = (inner if depths[name] else last)(values @ table + w[name])
        return through(first * gate, name, depths[name], last)

    code = encode(x, "phi_i", w["E_i"], acts[model.input_code], torch.tensor(gate))
    of_labels = encode(y, "phi_o", w["E_o"], acts[model.output_code], 1.0)
    weights, bias = (w["W"], w["b"]) if "b" in w else (w["W"][:, :-1], w["W"][:, -1])

    def scores(values):
        return through(values, "psi_o", depths["psi_o"], inner) @ weights.T + bias

    over = (X.shape[1], Y.shape[1]) if model.reduction == "mean" else (1, 1)
    guess = through(code, "psi_i", depths["psi_i"], inner) @ w["D_i"].T
    total = phase.alpha * (guess - x).square().sum() / over[0]
    total = total + phase.beta * (torch.sigmoid(scores(of_labels)) - y).square().sum() / over[1]
    if phase.classify:
        z = scores(through(code, "f", depths["f"], acts[model.output_code]))
        total = total + torch.nn.functional.binary_cross_entropy_with_logits(z, y, reduction="sum") / over[1]
    return total / X.shape[0]


CASES = {
    "plain": {},
    "mean": {"reduction": "mean"},
    "deep": DEEP,
    "shallow f": {"input_layers": "8,5", "output_layers": 6, "output_code": "elu", "reduction": "mean"},
    "dropped": {"dropout": 0.4},
}
PHASES = {
    "all": TrainingPhase(0.7, 0.4, True),
    "codes": TrainingPhase(0.7, 0.4, False),
    "classes": TrainingPhase(0.0, 0.0, True),
    "inputs": TrainingPhase(0.7, 0.0, True),
    "outputs": TrainingPhase(0.0, 0.4, True),
}


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("phase", PHASES.values(), ids=PHASES)
@pytest.mark.parametrize("given", CASES.values(), ids=CASES)
def test_a_step_has_the_gradients_of_eq_1_that_torch_finds(tiny, monkeypatch, given, phase, sampled):
    torch = pytest.importorskip("torch")
    X, Y = tiny
    monkeypatch.setattr(output, "LABEL_BLOCK", 3)  # blocks that do not divide the labels
    if sampled:  # every label is chosen, so that the sums are exact
        monkeypatch.setattr(neuralxc, "ALL_LABELS", 1)
    model = NeuralXC(**{"input_layers": 8, "output_layers": 6, "dropout": 0.0, "negatives": 200, **given})
    rng = np.random.default_rng(1)
    net = model._begin(X, Y, rng)
    dense, rows = parts_of(net)
    for table in [part.value for part in dense.values()] + [part.vectors for part in rows.values()]:
        table[:] = 0.5 * rng.standard_normal(table.shape)
    before, found, gates = copies(net), {}, []
    names = {id(part): key for key, part in dense.items()}

    def record(self, gradient, rate, number, part=slice(None)):
        found.setdefault(names[id(self)], np.full(self.value.shape, np.nan))[part] = gradient

    forward = net.phi_i.forward
    monkeypatch.setattr(AdamParameter, "step", record)
    monkeypatch.setattr(net.phi_i, "forward", lambda *args: gates.append(forward(*args)) or gates[-1])
    order = rng.permutation(N).astype(np.int32)
    model._step(net, phase, X, Y, order, np.arange(LABELS, dtype=np.int32), 1.0, rng)

    w = {key: torch.tensor(value, dtype=torch.float64, requires_grad=True) for key, value in before.items()}
    eq1(torch, X[order], Y[order], w, model, phase, gates[0].gate).backward()
    slopes = {key: np.zeros(t.shape) if t.grad is None else t.grad.numpy() for key, t in w.items()}
    for key in dense:
        assert np.allclose(found.get(key, 0), slopes[key], atol=1e-5), key
    after = copies(net)
    of_features = model.feature_rate if phase.classify else model.rate
    rates = {"E_i": of_features, "E_o": of_features, "W": of_features, "D_i": DECODER_SHARE * model.rate}
    for key in rows:
        sizes = np.sqrt(np.square(slopes[key]).mean(axis=1, keepdims=True))  # Adagrad's memory after one step
        expected = -rates[key] * slopes[key] / np.where(sizes > 1e-9, sizes, 1)
        assert np.allclose(after[key] - before[key], expected, atol=1e-4), key
    assert np.abs(slopes["W"]).max() > 0.001


@pytest.mark.parametrize("phase", [PHASES["all"], PHASES["codes"], PHASES["classes"]], ids=["all", "codes", "classes"])
def test_errors_at_chosen_labels_are_those_at_all_times_the_labels_they_stand_for(tiny, phase):
    Y = sp.csr_matrix(tiny[1].toarray() * (np.arange(LABELS) != 3))  # label 3 is drawn
    rows = np.array([4, 0, 2, 5], np.int32)
    true, n = Y[rows], 4 * (phase.classify + (phase.beta > 0))
    exact = np.random.default_rng(2).standard_normal((n, LABELS)).astype(np.float32)
    sampled = exact.copy()
    Objective(Y, rows, true, None, phase).to_errors(exact, 0)
    sure = np.unique(true.indices)
    ids, weights = np.append(sure, 3).astype(np.int32), np.append(np.ones(len(sure)), 3.5).astype(np.float32)
    chosen = SampledLabels(ids, np.searchsorted(sure, true.indices).astype(np.int32), true.indptr, weights, len(sure))
    sampled = sampled[:, ids]
    Objective(Y, rows, true, chosen, phase).to_errors(sampled, 0)
    assert np.allclose(sampled, exact[:, ids] * weights, atol=1e-6)


def last_net(monkeypatch):
    """The nets that fitting begins, and copies of their tables at the end of each phase."""
    nets, states = [], []
    begin = NeuralXC._begin

    def remember(self, *args):
        nets.append(begin(self, *args))
        states.append([])
        return nets[-1]

    batches = neuralxc.batches

    def told(*args):
        states[-1].append(copies(nets[-1]))
        yield from batches(*args)

    monkeypatch.setattr(NeuralXC, "_begin", remember)
    monkeypatch.setattr(neuralxc, "batches", told)
    return nets, states


@pytest.mark.parametrize("all_labels", [20_000, 5])
def test_staged_training_leaves_the_autoencoders_as_they_are_and_moves_f(small, monkeypatch, all_labels):
    monkeypatch.setattr(neuralxc, "ALL_LABELS", all_labels)
    nets, states = last_net(monkeypatch)
    NeuralXC(**{**SMALL, "input_layers": "16,8", "output_layers": "16,8", "training": "staged"}).fit(small.X, small.Y)
    (begun, coded), done = states[0], copies(nets[0])
    for key in begun:
        of_f = key.startswith("f")
        assert np.array_equal(begun[key], coded[key]) == of_f, key
        assert np.array_equal(coded[key], done[key]) != of_f, key


def test_pretrained_training_moves_everything_in_the_end(small, monkeypatch):
    nets, states = last_net(monkeypatch)
    NeuralXC(**SMALL, training="pretrained").fit(small.X, small.Y)
    NeuralXC(**SMALL, training="staged").fit(small.X, small.Y)
    coded, done = states[0][1], copies(nets[0])
    assert all(not np.array_equal(coded[key], done[key]) for key in coded)
    assert all(np.array_equal(coded[key], states[1][1][key]) for key in coded), "the same beginning"


def test_adam_counts_the_steps_of_f_from_the_first(small, monkeypatch):
    """Else its first steps would be some times too long: nothing would make up for a memory that begins at 0."""
    counts, step = {}, AdamParameter.step
    nets, _ = last_net(monkeypatch)

    def count(self, gradient, rate, number, part=slice(None)):
        counts.setdefault(id(self), []).append(number)
        step(self, gradient, rate, number, part)

    monkeypatch.setattr(AdamParameter, "step", count)
    for training in ("joint", "staged", "pretrained"):
        counts.clear()
        NeuralXC(**SMALL, training=training).fit(small.X, small.Y)
        for part in (nets[-1].f.layers[0].rows, nets[-1].phi_i.offset, nets[-1].output.bias):
            numbers = counts[id(part)]
            assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("training", ["joint", "staged", "pretrained"])
@pytest.mark.parametrize("depth", [{}, {"input_layers": "64,32", "output_layers": "64,32", "regressor": "32"}])
def test_every_training_finds_planted_labels(data, training, depth):
    train, test = data
    model = NeuralXC(**{"input_layers": 128, "output_layers": 64, "training": training, **depth}, epochs=20)
    assert hits(model.fit(train.X, train.Y), test, 1) > {"joint": 0.8, "staged": 0.3, "pretrained": 0.8}[training] * 200


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_runs_at_every_place(small, activation):
    places = {key: activation for key in ("activation", "input_code", "output_code")}
    model = NeuralXC(input_layers="16,8", output_layers="16,8", regressor="9", epochs=1, **places)
    top = model.fit(small.X, small.Y).predict_topk(small.X, 5)
    assert (top.labels >= 0).all()
    assert ((top.scores > 0) & (top.scores < 1)).all()


@pytest.mark.parametrize("count", [5, 100])
def test_sampled_labels_learn_too(data, monkeypatch, count):
    monkeypatch.setattr(neuralxc, "ALL_LABELS", 5)
    train, test = data
    assert hits(NeuralXC(negatives=count, epochs=15).fit(train.X, train.Y), test, 1) > 160
    assert negatives.ALL_LABELS == 20_000


def test_few_drawn_features_do(data):
    train, test = data
    assert hits(NeuralXC(drawn=20, alpha=0.5, epochs=10).fit(train.X, train.Y), test, 1) > 160


@pytest.mark.parametrize("all_labels", [20_000, 5])
def test_labels_begin_at_their_frequency_or_at_0(small, monkeypatch, all_labels):
    monkeypatch.setattr(neuralxc, "ALL_LABELS", all_labels)
    rng = np.random.default_rng(0)
    for prior, expected in ((True, log_odds(small.Y)), (False, np.zeros(40))):
        assert np.array_equal(NeuralXC(prior=prior)._begin(small.X, small.Y, rng).output.bias_values, expected)


def test_what_is_kept_scores_as_what_was_learned(small, monkeypatch):
    nets, _ = last_net(monkeypatch)
    model = NeuralXC(input_layers="40,20", output_layers="24,18,12", regressor="16,14", activation="elu", epochs=2)
    top = model.fit(small.X, small.Y).predict_topk(small.X, 40)
    net, X = nets[0], normalize_rows(small.X)
    net.phi_i.features.vectors[:] = np.multiply(*(part.T for part in quantize_int8(net.phi_i.features.vectors))).T
    code = net.phi_i.forward((X.data, X.indices, X.indptr), 0.0, np.random.default_rng(0)).code
    hidden = net.psi_o.forward(net.f.forward(code)[-1])[-1]
    weights = model.weights_.T * model.weight_scales_[:, None]
    scores = 1 / (1 + np.exp(-(hidden @ weights.T + net.output.bias_values)))
    rows, places = np.nonzero(top.labels >= 0)
    assert np.allclose(scores[rows, top.labels[rows, places]], top.scores[rows, places], atol=1e-4)
    assert [width for width, _ in model._chain()] == [40, 20, 16, 14, 12, 18, 24]
    assert [name for _, name in model._chain()] == ["elu", "relu", "elu", "elu", "linear", "elu", "elu"]


@pytest.mark.parametrize("all_labels", [20_000, 5])
def test_a_label_without_documents_is_never_suggested(small, monkeypatch, all_labels):
    monkeypatch.setattr(neuralxc, "ALL_LABELS", all_labels)
    Y = small.Y.tolil()
    Y[:, 11] = 0
    unseen = int((Y.tocsr().sum(axis=0).A1 == 0).sum())
    top = NeuralXC(**SMALL).fit(small.X, Y.tocsr()).predict_topk(small.X, 60)
    assert top.labels.shape == (200, 60)
    assert 11 not in top.labels
    assert (top.labels[:, 40 - unseen :] == -1).all()
    assert (top.labels[:, : 40 - unseen] >= 0).all()


@pytest.mark.parametrize(
    "given", [{"input_layers": "24,12", "output_layers": "20,10", "regressor": 8}, {"output_layers": "20"}]
)
def test_a_deep_net_is_saved_and_read(small, tmp_path, given):
    model = NeuralXC(**{**SMALL, **given}).fit(small.X, small.Y)
    model.save(tmp_path / "model")
    again = labelspace.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    one, other = (it.predict_topk(small.X, 5) for it in (model, again))
    assert np.array_equal(one.labels, other.labels)
    assert np.array_equal(one.scores, other.scores)


def test_a_width_may_be_a_number_or_its_text(small):
    models = [NeuralXC(**{**SMALL, "input_layers": width}).fit(small.X, small.Y) for width in (16, "16", " 16 ")]
    assert all(np.array_equal(models[0].vectors_, model.vectors_) for model in models)
    assert NeuralXC(**{**SMALL, "input_layers": "16, 8"}).fit(small.X, small.Y).vectors_.shape == (600, 16)


@pytest.mark.parametrize("key", ["input_layers", "output_layers", "regressor"])
@pytest.mark.parametrize("value", WRONG)
def test_wrong_widths_are_one_line(key, value):
    if (key, value) == ("regressor", ""):
        return  # no layer between
    with pytest.raises(ParameterError) as error:
        NeuralXC(**{key: value}).fit(np.eye(2), np.eye(2))
    message = str(error.value)
    assert message.startswith(f"{key} of neuralxc must be a whole number of at least 1 and below 2^20, or several")
    assert f", but is {value!r}; set it so" in message
    assert ("or nothing at all" in message) == (key == "regressor")
    assert "\n" not in message


def test_fewer_units_are_dropped_where_there_are_many_documents(monkeypatch):
    few, many = sp.csr_matrix((30_000, 1)), sp.csr_matrix((30_001, 1))
    assert (NeuralXC()._dropout(few), NeuralXC()._dropout(many)) == (0.5, 0.1)
    assert NeuralXC(dropout=0.0)._dropout(few) == 0.0


@pytest.mark.parametrize(("training", "told"), [("joint", 2), ("staged", 4), ("pretrained", 4)])
def test_progress_is_told_by_epoch_over_all_phases(small, training, told):
    news = []
    model = NeuralXC(**{**SMALL, "epochs": 2, "training": training})
    model.fit(small.X, small.Y, progress=lambda *args: news.append(args))
    assert news == [("epochs", at + 1, told) for at in range(told)]


@pytest.mark.parametrize("layers", ["16", "24,16"])
def test_codes_of_documents_are_those_that_predictions_start_from(data, layers):
    train, test = data
    model = NeuralXC(input_layers=layers, output_layers=16, input_code="tanh", epochs=2).fit(train.X, train.Y)
    codes = model.encode(test.X)
    assert codes.shape == (len(test), 16)
    assert np.array_equal(codes[7:9], model.encode(test.X[7:9])), "a document's code is its own"
    assert np.abs(codes).max() <= 1
    assert np.unique(codes.round(4), axis=0).shape[0] > 100, "documents differ"
    sums = normalize_rows(test.X).toarray() @ (model.vectors_ * model.vector_scales_[:, None]) + model.offset_
    if layers == "16":
        assert np.allclose(codes, np.tanh(sums), atol=1e-4)
    with pytest.raises(DataError, match="must have the 600 features"):
        model.encode(test.X[:, :-1])
    with pytest.raises(NotFittedError):
        NeuralXC().encode(test.X)
