"""The choices in which the paper differs from our defaults, and the presets that combine them."""

import json

import numpy as np
import pytest

from labelspace.errors import ParameterError
from labelspace.models.glas import Glas, training
from labelspace.store.model_folder import sealed
from tests.checks import precision_at_1, same_topk
from tests.models.glas.cases import after_one_epoch, quick, small_data, trained_arrays

TINY = {"embedding_dim": 32, "batch_size": 16}


@pytest.fixture(scope="module")
def small():
    return small_data()


@pytest.mark.parametrize("preset", ["paper", "algorithm_1"])
def test_a_preset_lists_what_differs_from_the_defaults_and_learns(small, preset):
    defaults, listed = Glas.defaults(), Glas.presets[preset]
    assert all(defaults[key] != value for key, value in listed.items()), "else it need not be listed"
    model = Glas.from_preset(preset, **TINY, patience=10).fit(small.X, small.Y)
    assert precision_at_1(model, small) > 0.7


def test_without_biases_there_are_none(small):
    net, _ = after_one_epoch(quick(bias=False, hidden_bias=False, n_layers=3), small)
    assert not net.bias.value.any()
    assert not net.encoder.bias.value.any()
    assert not any(layer.bias.value.any() for layer in net.encoder.dense)
    net, _ = after_one_epoch(quick(n_layers=3), small)
    assert net.bias.value.any()
    assert all(layer.bias.value.any() for layer in net.encoder.dense)


def test_a_label_can_be_added_to_a_model_without_biases(small):
    model = Glas.paper(**TINY).fit(small.X, small.Y, labels=small.labels)
    assert model.index_.kind == "exact"
    before = model.predict_topk(small.X[:1], 30)
    model.add_label("new", small.X[:1])
    after = model.predict_topk(small.X[:1], 31)
    assert after.labels[0, 0] == 30, "it points to this document"
    assert np.allclose(after.scores[0, 1:], before.scores[0], atol=0.02)


def test_embeddings_have_length_1_only_where_they_are_normalized(small):
    params = {"normalize_document_embeddings": False, "normalize_label_embeddings": False}
    for changed in ({}, params):
        net, data = after_one_epoch(quick(**changed), small)
        for embeddings in (net.encoder.embed(data.X), net.label_embeddings[:, :-1]):
            lengths = np.linalg.norm(embeddings, axis=1)
            assert np.allclose(lengths, 1, atol=1e-4) == (not changed)


def test_the_scale_is_honored_with_every_loss(small):
    for loss in ("bce", "softmax", "margin"):
        start = {"bce": 20, "softmax": 20, "margin": 1}[loss]
        assert np.isclose(training.initial_net(quick(loss=loss), small.X, small.Y).scale, start)
        net, _ = after_one_epoch(quick(loss=loss, scale=7.0, learn_scale=False), small)
        assert np.isclose(net.scale, 7)
        net, _ = after_one_epoch(quick(loss=loss, scale=7.0, learn_scale=True), small)
        assert abs(net.scale - 7) > 0.01
    net, _ = after_one_epoch(quick(loss="margin"), small)
    assert net.scale == 1


def test_learning_rates_are_constant_without_decay(small, monkeypatch):
    decays = []
    monkeypatch.setattr(
        training, "train_step", lambda model, net, data, rows, hard, lr_decay, rng: decays.append(lr_decay)
    )
    quick(epochs=2, decay=False).fit(small.X, small.Y)
    assert set(decays) == {1.0}


def test_the_regularizer_counts_labels_as_often_as_they_are_drawn(small, monkeypatch):
    drawn, seen = [], []
    draw, gradient = training.sample_positives, training.regularizer_gradient
    monkeypatch.setattr(training, "sample_positives", lambda *args: drawn.append(draw(*args)) or drawn[-1])
    monkeypatch.setattr(training, "regularizer_gradient", lambda *args: seen.append(args) or gradient(*args))
    _, data = after_one_epoch(quick(repeat_labels=True, batch_size=64), small)
    order = np.random.default_rng([0, 1, 0]).permutation(260)
    for at, (positives, (_, _, labels, _, phi, _, counts)) in enumerate(zip(drawn, seen, strict=True)):
        of_batch = data.Y[order[64 * at : 64 * at + 64]].indices[positives[positives >= 0]]
        assert counts.sum() == len(of_batch) == (positives >= 0).sum() <= len(phi), "B of them"
        assert np.array_equal(np.repeat(labels, counts), np.sort(of_batch))
    assert max(counts.max() for *_, counts in seen) > 1


def test_documents_are_used_as_given_without_normalize(small):
    X = small.X.multiply(np.linspace(0.5, 5, 260)[:, None]).tocsr().astype(np.float32)
    one, other = (trained_arrays(quick(epochs=1, normalize=normalize), X, small.Y) for normalize in (True, False))
    assert not np.allclose(one["feature_embeddings"], other["feature_embeddings"])
    unscaled = trained_arrays(quick(epochs=1), small.X, small.Y)
    assert np.allclose(one["feature_embeddings"], unscaled["feature_embeddings"], atol=1e-4)


@pytest.mark.parametrize("params", [{"loss": "bce", "positives": "one"}, {"loss": "margin", "positives": "all"}])
def test_losses_refuse_true_labels_that_they_cannot_count(small, params):
    with pytest.raises(ParameterError, match="positives must be .* with .*, but is .*; leave it out"):
        quick(**params).fit(small.X, small.Y)


@pytest.mark.parametrize("n_layers", [1, 3, 5])
def test_any_number_of_layers_is_saved_and_loaded(small, tmp_path, n_layers):
    model = quick(n_layers=n_layers, epochs=1).fit(small.X, small.Y)
    assert model.encoder_.dense_bias.shape == (16 * (n_layers - 1),)
    model.save(tmp_path / "model")
    assert same_topk(Glas.load(tmp_path / "model").predict_topk(small.X, 5), model.predict_topk(small.X, 5))


def test_a_training_that_diverges_is_one_clear_line(small):
    with (
        np.errstate(all="ignore"),
        pytest.raises(ParameterError, match="weights overflowed in epoch .*; set a smaller"),
    ):
        Glas.from_preset("algorithm_1", **TINY, learning_rate=1e4, feature_learning_rate=1e4).fit(small.X, small.Y)


@pytest.mark.parametrize("n_layers", [1, 2])
def test_a_model_that_was_saved_before_these_choices_loads(small, tmp_path, n_layers):
    model = quick(n_layers=n_layers, epochs=1).fit(small.X, small.Y)
    model.save(tmp_path)
    manifest = json.loads((tmp_path / "model.json").read_text())
    saved = manifest["model"]
    del saved["state"]["curve_"]
    saved["params"] = {"embedding_dim": 16, "n_layers": n_layers, "epochs": 1, "scale": 20.0, "learn_scale": True}
    (tmp_path / "model.json").write_text(json.dumps(sealed(manifest)))
    loaded = Glas.load(tmp_path)
    assert same_topk(loaded.predict_topk(small.X, 5), model.predict_topk(small.X, 5))
    assert loaded.report() == {}
