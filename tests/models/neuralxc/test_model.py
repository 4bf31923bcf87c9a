import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import DataError, NotFittedError, ParameterError
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.quantize import quantize_int8
from labelspace.models.neuralxc import model as neuralxc
from labelspace.models.neuralxc.model import NeuralXC
from labelspace.training import epochs, losses
from labelspace.training.autoencoder import SparseDecoder
from labelspace.training.dense_layers import ACTIVATIONS, SampledOutputLayer
from labelspace.training.losses import log_odds
from labelspace.training.optimizers import AdamParameter
from tests.checks import precision_at_1, same_topk
from tests.models.neuralxc.parameters import copies

SMALL = {"input_layers": 16, "output_layers": 16, "epochs": 1}
WRONG_SIZES = ["a", "0", "64,,32", "64,", ",", "-3", "1.5", "1e3", -1, 0, 1.5, True, None, 2**20, ""]


@pytest.fixture
def small(data):
    return data[0].rows(range(200))


@pytest.fixture
def trained(monkeypatch):
    """The nets that are trained from now on, and copies of their parameters at the start of each phase."""
    nets, states = [], []
    build, batches = neuralxc.NeuralXCNet, epochs.batches

    def remember(*args):
        nets.append(build(*args))
        states.append([])
        return nets[-1]

    def copy_first(*args):
        states[-1].append(copies(nets[-1]))
        yield from batches(*args)

    monkeypatch.setattr(neuralxc, "NeuralXCNet", remember)
    monkeypatch.setattr(epochs, "batches", copy_first)
    return nets, states


@pytest.mark.parametrize("all_labels", [20_000, 5])
def test_staged_training_freezes_the_autoencoders_and_trains_f(small, monkeypatch, trained, all_labels):
    monkeypatch.setattr(losses, "MAX_UNSAMPLED_LABELS", all_labels)
    NeuralXC(**{**SMALL, "input_layers": "16,8", "output_layers": "16,8", "training": "staged"}).fit(small.X, small.Y)
    nets, states = trained
    (start, middle), end = states[0], copies(nets[0])
    for key in start:
        is_f = key.startswith("f")
        assert np.array_equal(start[key], middle[key]) == is_f, key
        assert np.array_equal(middle[key], end[key]) != is_f, key


def test_pretrained_training_updates_everything_in_the_second_phase(small, trained):
    NeuralXC(**SMALL, training="pretrained").fit(small.X, small.Y)
    NeuralXC(**SMALL, training="staged").fit(small.X, small.Y)
    nets, states = trained
    middle, end = states[0][1], copies(nets[0])
    assert all(not np.array_equal(middle[key], end[key]) for key in middle)
    assert all(np.array_equal(middle[key], states[1][1][key]) for key in middle), "the same first phase"


def test_adam_counts_the_steps_of_f_from_its_first(small, monkeypatch, trained):
    """Else its first steps would be too long: nothing would correct the bias of moments that start at 0."""
    counts, step = {}, AdamParameter.step

    def count(self, gradient, rate, number, part=slice(None)):
        counts.setdefault(id(self), []).append(number)
        step(self, gradient, rate, number, part)

    monkeypatch.setattr(AdamParameter, "step", count)
    for training in ("joint", "staged", "pretrained"):
        counts.clear()
        NeuralXC(**SMALL, training=training).fit(small.X, small.Y)
        net = trained[0][-1]
        for part in (net.f.layers[0].rows, net.phi_i.bias, net.output.bias):
            numbers = counts[id(part)]
            assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("training", ["joint", "staged", "pretrained"])
@pytest.mark.parametrize("depth", [{}, {"input_layers": "64,32", "output_layers": "64,32", "regressor": "32"}])
def test_every_training_finds_planted_labels(data, training, depth):
    train, test = data
    model = NeuralXC(**{"input_layers": 128, "output_layers": 64, "training": training, **depth}, epochs=20)
    expected = {"joint": 0.8, "staged": 0.3, "pretrained": 0.8}
    assert precision_at_1(model.fit(train.X, train.Y), test) > expected[training]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_runs_in_every_layer(small, activation):
    params = {key: activation for key in ("activation", "input_code", "output_code")}
    model = NeuralXC(input_layers="16,8", output_layers="16,8", regressor="9", epochs=1, **params)
    top = model.fit(small.X, small.Y).predict_topk(small.X, 5)
    assert (top.labels >= 0).all()
    assert ((top.scores > 0) & (top.scores < 1)).all()


@pytest.mark.parametrize("n_negatives", [5, 100])
def test_training_on_sampled_labels_finds_planted_labels(data, monkeypatch, n_negatives):
    monkeypatch.setattr(losses, "MAX_UNSAMPLED_LABELS", 5)
    train, test = data
    model = NeuralXC(n_negatives=n_negatives, input_layers=128, output_layers=128, epochs=15).fit(train.X, train.Y)
    assert precision_at_1(model, test) > 0.8


def test_few_sampled_features_suffice(data):
    train, test = data
    model = NeuralXC(n_sampled_features=20, alpha=0.5, input_layers=128, output_layers=128, epochs=10)
    assert precision_at_1(model.fit(train.X, train.Y), test) > 0.8


@pytest.mark.parametrize("limit", [20_000, 5])
@pytest.mark.parametrize("all_labels", [None, True, False])
def test_labels_are_sampled_as_asked_or_by_their_number(small, monkeypatch, trained, limit, all_labels):
    monkeypatch.setattr(losses, "MAX_UNSAMPLED_LABELS", limit)
    NeuralXC(**SMALL, all_labels=all_labels).fit(small.X, small.Y)
    is_sampled = limit == 5 if all_labels is None else not all_labels
    assert isinstance(trained[0][0].output, SampledOutputLayer) == is_sampled


def test_the_reconstruction_of_all_features_samples_none(small, monkeypatch):
    sampled, sample = [], SparseDecoder._sample_features
    monkeypatch.setattr(
        SparseDecoder, "_sample_features", lambda *args: sampled.append(sample(*args).tolist()) or sample(*args)
    )
    NeuralXC(**SMALL, n_sampled_features=None).fit(small.X, small.Y)
    assert set(map(tuple, sampled)) == {tuple(range(small.X.shape[1]))}


def test_the_layers_of_the_preset_authors(small):
    model = NeuralXC.from_preset("authors", epochs=1).fit(small.X, small.Y)
    relu = [(1152, "relu"), (600, "relu")]
    assert model.encoder_.specs == [*relu, (256, "linear"), (112, "relu"), (32, "tanh"), (96, "relu")]
    assert np.abs(model.encode(small.X)).max() > 0


def test_the_paper_finds_planted_labels_once_its_biases_start_at_the_frequencies(data):
    train, test = data
    model = NeuralXC.paper(input_layers=128, output_layers=128, epochs=15, prior_bias=True).fit(train.X, train.Y)
    assert precision_at_1(model, test) > 0.5


@pytest.mark.parametrize("normalize", [True, False])
def test_documents_are_normalized_or_used_as_given(small, normalize):
    scaled = sp.csr_matrix(small.X.multiply(np.linspace(0.5, 2, 200)[:, None]), dtype=np.float32)
    model, other = (NeuralXC(**SMALL, normalize=normalize).fit(X, small.Y) for X in (small.X, scaled))
    assert np.allclose(model.encode(small.X), model.encode(scaled), atol=1e-4) == normalize
    scores = [model.predict_topk(X, 3).scores for X in (small.X, scaled)]
    assert np.allclose(*scores, atol=1e-4) == normalize
    assert np.allclose(model.output_bias_, other.output_bias_, atol=1e-4) == normalize


@pytest.mark.parametrize("all_labels", [20_000, 5])
def test_label_biases_start_at_the_label_frequency_or_at_0(small, monkeypatch, all_labels):
    monkeypatch.setattr(losses, "MAX_UNSAMPLED_LABELS", all_labels)
    for prior_bias, expected in ((True, log_odds(small.Y)), (False, np.zeros(40))):
        net = neuralxc.NeuralXCNet(NeuralXC(prior_bias=prior_bias), small.X, small.Y)
        assert np.array_equal(net.output.bias_values, expected)


def test_the_stored_model_scores_as_the_trained_net(small, trained):
    model = NeuralXC(input_layers="40,20", output_layers="24,18,12", regressor="16,14", activation="elu", epochs=2)
    top = model.fit(small.X, small.Y).predict_topk(small.X, 40)
    net, X = trained[0][0], normalize_rows(small.X)
    net.phi_i.features.vectors[:] = np.multiply(*(part.T for part in quantize_int8(net.phi_i.features.vectors))).T
    code = net.phi_i.forward((X.data, X.indices, X.indptr), 0.0, np.random.default_rng(0)).code
    hidden = net.psi_o.forward(net.f.forward(code)[-1])[-1]
    weights = model.output_weights_.T * model.output_scales_[:, None]
    scores = 1 / (1 + np.exp(-(hidden @ weights.T + net.output.bias_values)))
    rows, ranks = np.nonzero(top.labels >= 0)
    assert np.allclose(scores[rows, top.labels[rows, ranks]], top.scores[rows, ranks], atol=1e-4)
    units, activations = zip(*model.encoder_.specs, strict=True)
    assert units == (40, 20, 16, 14, 12, 18, 24)
    assert activations == ("elu", "relu", "elu", "elu", "linear", "elu", "elu")


@pytest.mark.parametrize("all_labels", [20_000, 5])
def test_a_label_without_documents_is_never_suggested(small, monkeypatch, all_labels):
    monkeypatch.setattr(losses, "MAX_UNSAMPLED_LABELS", all_labels)
    Y = small.Y.tolil()
    Y[:, 11] = 0
    unseen = int((Y.tocsr().sum(axis=0).A1 == 0).sum())
    top = NeuralXC(**SMALL).fit(small.X, Y.tocsr()).predict_topk(small.X, 60)
    assert top.labels.shape == (200, 60)
    assert 11 not in top.labels
    assert (top.labels[:, 40 - unseen :] == -1).all()
    assert (top.labels[:, : 40 - unseen] >= 0).all()


def test_a_deep_net_is_saved_and_loaded(small, tmp_path):
    model = NeuralXC(input_layers="24,12", output_layers="20,10", regressor=8, epochs=1).fit(small.X, small.Y)
    model.save(tmp_path / "model")
    loaded = NeuralXC.load(tmp_path / "model")
    assert same_topk(loaded.predict_topk(small.X, 5), model.predict_topk(small.X, 5))
    assert np.array_equal(loaded.encode(small.X), model.encode(small.X))


def test_a_layer_size_may_be_a_number_or_its_text(small):
    models = [NeuralXC(**{**SMALL, "input_layers": size}).fit(small.X, small.Y) for size in (16, "16", " 16 ")]
    assert all(np.array_equal(models[0].encoder_.vectors, model.encoder_.vectors) for model in models)
    assert NeuralXC(**{**SMALL, "input_layers": "16, 8"}).fit(small.X, small.Y).encode(small.X).shape == (200, 8)


@pytest.mark.parametrize("key", ["input_layers", "output_layers", "regressor"])
@pytest.mark.parametrize("value", WRONG_SIZES)
def test_wrong_layer_sizes_are_refused_in_one_line(key, value):
    if (key, value) == ("regressor", ""):
        return  # no layer between
    with pytest.raises(ParameterError) as error:
        NeuralXC(**{key: value}).check_params()
    message = str(error.value)
    assert message.startswith(f"{key} of neuralxc must be an integer of at least 1 and below 2^20, or several")
    assert f", but is {value!r}; set it so" in message
    assert ("or nothing at all" in message) == (key == "regressor")
    assert "\n" not in message


def test_there_is_less_dropout_with_many_documents():
    few, many = sp.csr_matrix((30_000, 1)), sp.csr_matrix((30_001, 1))
    assert (NeuralXC()._dropout(few), NeuralXC()._dropout(many)) == (0.5, 0.1)
    assert NeuralXC(dropout=0.0)._dropout(few) == 0.0


@pytest.mark.parametrize(("training", "total"), [("joint", 2), ("staged", 4), ("pretrained", 4)])
def test_progress_is_reported_by_epoch_over_all_phases(small, training, total):
    events = []
    model = NeuralXC(**{**SMALL, "epochs": 2, "training": training})
    model.fit(small.X, small.Y, progress=lambda *event: events.append(event))
    assert events == [("epochs", at + 1, total) for at in range(total)]


@pytest.mark.parametrize("layers", ["16", "24,16"])
def test_codes_of_documents_are_those_that_predictions_start_from(data, layers):
    train, test = data
    model = NeuralXC(input_layers=layers, output_layers=16, input_code="tanh", epochs=2).fit(train.X, train.Y)
    codes = model.encode(test.X)
    assert codes.shape == (len(test), 16)
    assert np.array_equal(codes[7:9], model.encode(test.X[7:9])), "a code does not depend on the other rows"
    assert np.abs(codes).max() <= 1
    assert np.unique(codes.round(4), axis=0).shape[0] > 100, "documents differ"
    encoder = model.encoder_
    sums = normalize_rows(test.X).toarray() @ (encoder.vectors * encoder.scales[:, None]) + encoder.bias
    if layers == "16":
        assert np.allclose(codes, np.tanh(sums), atol=1e-4)
    with pytest.raises(DataError, match="must have the 600 features"):
        model.encode(test.X[:, :-1])
    with pytest.raises(NotFittedError):
        NeuralXC().encode(test.X)
